//! The machine: private, home of the unsafe and the atomics.
//!
//! Each folder uses only folders listed before it (tidy looks).

pub(crate) mod prim;
pub(crate) mod queue;
pub(crate) mod work;
pub(crate) mod wait;
#[cfg(feature = "net")]
#[allow(dead_code, unused_imports, reason = "`net` and the pool will stand on it")]
pub(crate) mod driver;
#[cfg(feature = "time")]
#[allow(dead_code, reason = "the pool calls the rest")]
pub(crate) mod wheel;
#[cfg(all(feature = "net", target_os = "linux"))]
#[allow(dead_code, unused_imports, reason = "files will stand on the rest")]
pub(crate) mod ring;
pub(crate) mod threads;
pub(crate) mod local;
pub(crate) mod pool;
pub(crate) mod blocking;
