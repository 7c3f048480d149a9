//! There is nothing to run on a runtime.

#[blitz_io::main]
fn main() {}
