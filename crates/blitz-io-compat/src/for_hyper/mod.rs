//! The parts that hyper requires of a runtime: streams, timers, and an executor.

mod io;
mod timer;
mod executor;

pub use self::{
    executor::HyperExecutor,
    io::HyperIo,
    timer::{HyperSleep, HyperTimer},
};
