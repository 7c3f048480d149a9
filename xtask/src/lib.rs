//! Automation of the project's own work: `cargo xtask --help` lists the subcommands.
//!
//! Nothing here depends on anything but std, so that a clean clone compiles this package in
//! seconds. Everything runs from the repository's root.

#![forbid(unsafe_code)]

use std::path::PathBuf;

pub mod ci;
pub mod tidy;
pub mod model;
pub mod conformance;
pub mod differential;
pub mod api;
pub mod bench;
pub mod stress;
pub mod leaks;
pub mod sanitize;
pub mod faults;
pub mod soak;
pub mod chaos;
pub mod hardy;
pub mod backends;
pub mod interrupt;
pub mod platforms;
pub mod shell;
pub mod transcript;
pub mod json;
pub mod source;

/// The result of a subcommand: an error is one sentence for the user, or empty if the subcommand
/// has already printed everything.
pub type Outcome = Result<(), String>;

/// Returns the repository's root.
pub fn root() -> PathBuf {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    package.parent().map_or_else(|| package.clone(), PathBuf::from)
}
