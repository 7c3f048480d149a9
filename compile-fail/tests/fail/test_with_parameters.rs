//! `#[blitz_io::test]` must refuse parameters and a function without `async`.

#[blitz_io::test]
async fn adds(_left: u8) {}

#[blitz_io::test]
fn waits_for_nothing() {}

fn main() {}
