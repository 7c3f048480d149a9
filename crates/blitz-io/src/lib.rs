//! blitz-io
mod engine;
