//! `#[blitz_io::main]` must refuse a struct, because it makes a function run on a runtime.

#[blitz_io::main]
struct Main;

fn main() {}
