//! The standard streams of the process.
//!
//! They block, whatever they are (a terminal, a file, a pipe that nobody reads), so every
//! call of theirs is a job of the threads for blocking work.

pub(crate) mod blocking;
mod handles;
mod stdin;
mod stdout;

pub use self::{
    stdin::{Stdin, stdin},
    stdout::{Stderr, Stdout, stderr, stdout},
};
