//! The standard streams of the process.
//!
//! Standard streams block, whatever they are (a terminal, a file, a pipe that has no
//! reader), so every call of them is a job on the blocking pool.

pub(crate) mod blocking;
mod handles;
mod stdin;
mod stdout;

pub use self::{
    stdin::{Stdin, stdin},
    stdout::{Stderr, Stdout, stderr, stdout},
};
