//! The engine: private; it holds most of the unsafe code and of the atomics.
//!
//! Each folder uses only folders listed before it, and `pool` and `preempt` use each other (tidy
//! checks this).

pub(crate) mod prim;
pub(crate) mod queue;
pub(crate) mod lease;
pub(crate) mod work;
pub(crate) mod wait;
#[cfg(feature = "net")]
pub(crate) mod driver;
#[cfg(feature = "time")]
pub(crate) mod wheel;
#[cfg(all(feature = "net", target_os = "linux"))]
#[allow(dead_code, unused_imports, reason = "builds without sockets do not use all of them")]
pub(crate) mod uring;
#[cfg(feature = "signal")]
pub(crate) mod signals;
pub(crate) mod threads;
pub(crate) mod local;
pub(crate) mod pool;
#[cfg_attr(blitz_loom, allow(dead_code, unused_imports, reason = "models have no monitor"))]
pub(crate) mod preempt;
pub(crate) mod blocking;
#[cfg(feature = "parallel")]
pub(crate) mod fork;
#[cfg(all(feature = "fiber", unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod fiber;
