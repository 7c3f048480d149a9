//! `#[blitz_io::main]` must refuse a function without `async`, because it has no future to run.

#[blitz_io::main]
fn main() {}
