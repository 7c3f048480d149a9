//! Tests that the compiler reports the misuse of a macro at the line of the misuse, and with
//! what to do.
//!
//! Each file of `tests/fail` is one misuse, and the file beside it with the ending
//! `stderr` is what Rust 1.95 prints. `TRYBUILD=overwrite cargo test` writes these
//! anew; read the difference before you keep it.

#[test]
fn misuse_is_explained_at_its_place() {
    trybuild::TestCases::new().compile_fail("tests/fail/*.rs");
}
