//! The attribute is for functions.

#[blitz_io::main]
struct Main;

fn main() {}
