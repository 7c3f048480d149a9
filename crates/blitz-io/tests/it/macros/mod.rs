//! Tests the macros.

mod join;
mod select;
