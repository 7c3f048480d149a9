//! What hyper asks of a runtime: streams, time, and a place for tasks.

mod io;
mod timer;
mod executor;

pub use self::{
    executor::HyperExecutor,
    io::HyperIo,
    timer::{HyperSleep, HyperTimer},
};
