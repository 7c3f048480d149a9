//! Declarative macros; the attribute macros are in a crate of their own.
//!
//! The expansions refer only to [`support`], through `$crate`. So a program may rename this
//! crate, and needs no other feature than `macros`.

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
mod join_state;
#[cfg(feature = "macros")]
mod select_state;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod support;
