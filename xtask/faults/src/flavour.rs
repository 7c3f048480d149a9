//! The kinds of runtime that a scenario runs on.

use std::str::FromStr;

use blitz_io::runtime::{Builder, Runtime};

/// A kind of runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Only the thread of `block_on`.
    OneThread,
    /// Workers: more than small machines have cores, so that they are interrupted.
    Workers,
}

/// The number of workers. Picked: enough for a driver that moves between threads.
const WORKERS: usize = 4;

impl Flavour {
    pub(crate) fn runtime(self) -> Result<Runtime, String> {
        let mut builder = match self {
            Flavour::OneThread => Builder::new_current_thread(),
            Flavour::Workers => Builder::new_multi_thread(),
        };
        if self == Flavour::Workers {
            builder.worker_threads(WORKERS);
        }
        builder.enable_all().build().map_err(|why| format!("cannot make a runtime: {why}"))
    }
}

impl FromStr for Flavour {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "one-thread" => Ok(Flavour::OneThread),
            "workers" => Ok(Flavour::Workers),
            _ => Err(format!("`{name}` is no flavour: say one-thread or workers")),
        }
    }
}
