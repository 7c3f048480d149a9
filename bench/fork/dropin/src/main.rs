//! Rayon on our rayon-core: measures one row and prints its figures.
//!
//! `fork` builds and starts it. The workloads are its parent's sources, included by path, and it is
//! compiled with the same settings, so that only the pools differ.

#[path = "../../src/iterators.rs"]
mod iterators;
#[path = "../../src/rayons.rs"]
mod rayons;
#[macro_use]
#[path = "../../src/workloads.rs"]
mod workloads;

use std::process::ExitCode;

use harness::command::measured;

fn main() -> ExitCode {
    // Only the drop-in has this constant, so this compiles only if the patch is in force.
    let _proof = rayon_core::BLITZ_IO_DROPIN;
    let words = harness::words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    harness::exit(match words.as_slice() {
        ["--child", rest @ ..] => {
            measured(|_, row, threads, budget| rayons::child(row, threads, budget), rest)
        }
        _ => Err("this is started by bench/fork".to_owned()),
    })
}
