//! Tests fork-join.

mod hostile;
mod join;
mod pool;
mod scope;
mod stress;
mod tasks;
