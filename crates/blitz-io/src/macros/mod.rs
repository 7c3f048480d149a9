//! Macros that are plain patterns; the attributes are in a crate of their own.
//!
//! What they expand to names only [`support`], through `$crate`: a program may
//! call this crate what it likes, and needs no other feature than `macros`.

mod pin;
#[cfg(feature = "macros")]
mod join;
#[cfg(feature = "macros")]
mod try_join;
#[cfg(feature = "macros")]
mod select;

#[cfg(feature = "macros")]
mod awaited;
#[cfg(feature = "macros")]
mod joined;
#[cfg(feature = "macros")]
mod branches;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod support;
