//! Rayon on our rayon-core: measures one row and prints its figures.
//!
//! `fork` builds and starts it. The workloads are its parent's sources, included by path, and it is
//! compiled with the same settings, so that only the pools differ.

#[allow(dead_code, reason = "the driver's part is not used here")]
#[path = "../../../sched/src/measure.rs"]
mod measure;
#[path = "../../src/iterators.rs"]
mod iterators;
#[path = "../../src/rayons.rs"]
mod rayons;
#[macro_use]
#[path = "../../src/workloads.rs"]
mod workloads;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Only the drop-in has this constant, so this compiles only if the patch is in force.
    let _proof = rayon_core::BLITZ_IO_DROPIN;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["--child", _, row, threads, budget] = words[..] else {
        eprintln!("this is started by bench/fork");
        return ExitCode::FAILURE;
    };
    let Some((threads, budget)) = workloads::numbers(threads, budget) else {
        eprintln!("threads and budget are numbers");
        return ExitCode::FAILURE;
    };
    match rayons::child(row, threads, budget) {
        None => ExitCode::FAILURE,
        Some(metrics) => {
            metrics.iter().for_each(|metric| println!("{}", metric.line()));
            ExitCode::SUCCESS
        }
    }
}
