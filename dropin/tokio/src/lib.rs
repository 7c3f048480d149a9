//! blitz-io under Tokio's name.
//!
//! Patched in for the published package, it serves a whole dependency graph that depends on
//! `tokio`:
//!
//! ```toml
//! [patch.crates-io]
//! tokio = { path = "blitz-io/dropin/tokio" }
//! ```
//!
//! Run `cargo update -p tokio --precise 1.999.0` once after that: if something does not fit, it
//! says what. Without `--precise` cargo falls back to the real Tokio with no more than a warning;
//! `cargo tree -i tokio` shows which one is used.
//!
//! This package has no code: each line below re-exports a part of blitz-io at the path where Tokio
//! has it.

#![forbid(unsafe_code)]

/// A constant that proves which `tokio` is linked; the real one has no such constant.
#[doc(hidden)]
pub const BLITZ_IO_DROPIN: &str = env!("CARGO_PKG_VERSION");

#[doc(inline)]
pub use blitz_io::{io, pin};

#[cfg(feature = "macros")]
#[doc(inline)]
pub use blitz_io::{join, select, try_join};

// Hidden in Tokio too; `thread_rng_n` has users all the same.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use blitz_io::macros;

#[cfg(feature = "rt")]
#[doc(inline)]
pub use blitz_io::{runtime, spawn, task, task_local};

#[cfg(feature = "fs")]
#[doc(inline)]
pub use blitz_io::fs;

#[cfg(feature = "net")]
#[doc(inline)]
pub use blitz_io::net;

#[cfg(feature = "process")]
#[doc(inline)]
pub use blitz_io::process;

#[cfg(feature = "signal")]
#[doc(inline)]
pub use blitz_io::signal;

#[cfg(feature = "sync")]
#[doc(inline)]
pub use blitz_io::sync;

/// An empty module, like Tokio's: streams are in `tokio-stream`.
pub mod stream {}

#[cfg(feature = "time")]
#[doc(inline)]
pub use blitz_io::time;

#[cfg(all(feature = "macros", feature = "rt-multi-thread"))]
#[doc(inline)]
pub use blitz_io_macros::{main_tokio as main, test_tokio as test};

#[cfg(all(feature = "macros", feature = "rt", not(feature = "rt-multi-thread")))]
#[doc(inline)]
pub use blitz_io_macros::{main_rt_tokio as main, test_rt_tokio as test};

#[cfg(all(feature = "macros", not(feature = "rt")))]
#[doc(inline)]
pub use blitz_io_macros::{no_rt as main, no_rt as test};

#[cfg(test)]
mod tests {
    //! Checks the feature names that Cargo needs against a list that is not the manifest.

    /// Features of Tokio 1.54.1, the implicit ones at the end.
    const FEATURES: &[&str] = &[
        "default",
        "fs",
        "full",
        "io-std",
        "io-uring",
        "io-util",
        "macros",
        "net",
        "process",
        "rt",
        "rt-multi-thread",
        "schedule-latency",
        "signal",
        "sync",
        "taskdump",
        "test-util",
        "time",
        "bytes",
        "libc",
        "mio",
        "parking_lot",
        "signal-hook-registry",
        "socket2",
        "tokio-macros",
        "tracing",
        "windows-sys",
    ];

    #[test]
    fn every_feature_of_tokio_is_declared() {
        let manifest = include_str!("../Cargo.toml");
        for feature in FEATURES {
            assert!(manifest.contains(&format!("\n{feature} = [")), "{feature} is missing");
        }
    }

    #[test]
    fn a_feature_that_blitz_io_has_is_passed_on() {
        let manifest = include_str!("../Cargo.toml");
        let runtime = include_str!("../../../crates/blitz-io/Cargo.toml");
        let has = |feature: &str| runtime.contains(&format!("\n{feature} = ["));
        assert!(has("rt") && has("sync"), "the runtime's manifest is written another way");
        for feature in FEATURES.iter().filter(|feature| !matches!(**feature, "default" | "full")) {
            let passed_on = manifest.contains(&format!("\"blitz-io/{feature}\""));
            assert_eq!(passed_on, has(feature), "{feature}");
        }
    }

    #[cfg(feature = "rt-multi-thread")]
    #[test]
    fn threads_have_the_name_that_tokio_gives_them() {
        let runtime =
            crate::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let name = || std::thread::current().name().map(str::to_owned);
        let worker = runtime.spawn(async move { name() });
        let blocking = runtime.spawn_blocking(name);
        assert_eq!(runtime.block_on(worker).unwrap().as_deref(), Some("tokio-rt-worker"));
        assert_eq!(runtime.block_on(blocking).unwrap().as_deref(), Some("tokio-rt-worker"));
    }

    #[test]
    fn the_version_is_above_every_published_one() {
        assert_eq!(crate::BLITZ_IO_DROPIN, "1.999.0");
    }
}
