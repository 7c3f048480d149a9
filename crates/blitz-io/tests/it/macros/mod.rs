//! The macros.

mod join;
mod select;
