//! Tidy as a test, so that `cargo test --workspace` keeps the rules.

use xtask::tidy;

#[test]
fn the_repository_keeps_its_own_rules() {
    let files = tidy::tree();
    // A tree that was not found would pass as tidy.
    assert!(files.iter().any(|file| file.path == "crates/blitz-io/src/lib.rs"), "no tree");
    for note in tidy::length::long(&files) {
        println!("{note}");
    }
    let broken = tidy::check(&files);
    assert!(broken.is_empty(), "{} findings:\n{}", broken.len(), broken.join("\n"));
}
