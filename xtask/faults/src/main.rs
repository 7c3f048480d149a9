//! What `cargo xtask faults`, `cargo xtask soak` and `cargo xtask urge` run: one scenario in
//! one process.
//!
//! `faults list` names the scenarios; `faults run NAME FLAVOUR` runs one,
//! `faults soak SECONDS FLAVOUR` the soak, and `faults urge PROGRAM …` a program to whose
//! threads it sends signals. The mechanism that waits for events is chosen as
//! everywhere, by `BLITZ_IO_BACKEND`. The last line that is printed says what was found. The
//! exit code is 0 if it passed, 77 if it could not be tried here, and 1 if it failed.
//!
//! A scenario may spoil its process for good: limits, filters of system calls, signals. So
//! each has one to itself, and whoever starts it sees to its time limit.

#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod told;
#[cfg(target_os = "linux")]
mod flavour;
#[cfg(target_os = "linux")]
mod echo;
#[cfg(target_os = "linux")]
mod scenarios;
#[cfg(target_os = "linux")]
mod soak;
#[cfg(target_os = "linux")]
mod urge;
#[cfg(target_os = "linux")]
mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    return command::main();
    #[cfg(not(target_os = "linux"))]
    {
        println!("skipped: the faults are made with Linux's means");
        ExitCode::from(77)
    }
}
