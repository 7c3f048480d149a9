//! The program behind `cargo xtask faults`, `cargo xtask soak` and `cargo xtask interrupt`: one
//! scenario in one process.
//!
//! `faults list` names the scenarios; `faults run NAME FLAVOUR` runs one, `faults soak SECONDS
//! FLAVOUR` the soak, and `faults interrupt PROGRAM …` a program to whose threads it sends signals.
//! The event backend is chosen as everywhere, by `BLITZ_IO_BACKEND`. The last line that is printed
//! says what was found. The exit code is 0 if it passed, 77 if it could not be tried here, and 1 if
//! it failed.
//!
//! A scenario may change its process irrevocably: limits, system call filters, signals. So each has
//! a process to itself, and the program that starts it enforces its time limit.

#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod outcome;
#[cfg(target_os = "linux")]
mod flavour;
#[cfg(target_os = "linux")]
mod echo;
#[cfg(target_os = "linux")]
mod scenarios;
#[cfg(target_os = "linux")]
mod soak;
#[cfg(target_os = "linux")]
mod interrupt;
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
