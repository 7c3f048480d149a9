//! A random program that uses everything the runtime can do at once, from a seed.
//!
//! Each round makes a plan (`plan`): a tree of runtimes, tasks and steps, chosen by the seed and
//! the number of the round alone. The round runs it (`act`), ends its runtimes in one of several
//! ways, and then checks (`round`) that
//!
//! - every future, closure, value and message was dropped exactly once (`ledger`),
//! - no task was cancelled that was neither aborted nor at the end of its runtime,
//! - no operation failed while its runtime was alive, and no panic happened but planned ones,
//! - locks are free, messages were received once or dropped,
//! - no child process, thread or descriptor is left (`kernel`).
//!
//! A thread outside of all runtimes (`watch`) ends the process if a round does not end in time,
//! with the stacks of all threads and the dumps of all runtimes.
//!
//! The same seed chooses the same plan; the interleaving may differ. `--round N` repeats one
//! round, `--show` prints its plan, `--without CLASS` leaves actions out to narrow a failure
//! down, and `--plant KIND` plants a defect to show that it is found.

#[cfg(target_os = "linux")]
mod act;
#[cfg(target_os = "linux")]
mod chance;
#[cfg(target_os = "linux")]
mod class;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod ledger;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod plant;
#[cfg(target_os = "linux")]
mod round;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    return command::main();
    #[cfg(not(target_os = "linux"))]
    {
        println!("skipped: threads, descriptors and children are counted by Linux's means");
        ExitCode::SUCCESS
    }
}
