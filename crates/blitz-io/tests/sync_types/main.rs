//! The API of `sync`: its functions, its traits, and its auto traits, as in Tokio. Each list was
//! compiled against Tokio 1.54.1 itself, and fits it.
#![cfg(all(feature = "sync", not(blitz_loom)))]

mod signatures;
mod implemented;
mod auto_traits;
