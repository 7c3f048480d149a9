//! Windows-only types: named pipes.

pub mod named_pipe;
