//! Shows how a panic in a task ends: carried to the joiner, or with the process.
//!
//! With `panic = "abort"` nothing can be carried anywhere: the process must die
//! by the panic, at once, and must not hang or go on without the task. The
//! program starts itself a second time and looks at how that one ends:
//!
//! ```text
//! CARGO_PROFILE_RELEASE_PANIC=abort cargo run --release -p blitz-io-examples --bin panic_abort
//! ```

#![forbid(unsafe_code)]

use std::process::{Command, ExitStatus};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("child") {
        return blitz_io::run(panic_in_a_task());
    }
    let program = std::env::current_exe().expect("a running program has a path");
    let ended = Command::new(program).arg("child").status().expect("it can start itself again");
    if cfg!(panic = "abort") {
        assert!(aborted(ended), "the process outlived a panic: {ended}");
        println!("the panic ended the process: {ended}");
    } else {
        assert!(ended.success(), "the panic was not carried to the joiner: {ended}");
        println!("the panic was carried to the joiner");
    }
}

async fn panic_in_a_task() {
    let task = blitz_io::spawn(async { panic!("on purpose") });
    let error: blitz_io::task::JoinError = match task.await {
        Ok(()) => unreachable!("a task that panics returns nothing"),
        Err(error) => error,
    };
    assert!(error.is_panic());
}

/// Whether the process died by abort, as a panic without unwinding ends.
fn aborted(ended: ExitStatus) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        // SIGABRT is 6 on every Unix that Rust runs on.
        ended.signal() == Some(6)
    }
    #[cfg(not(unix))]
    !ended.success()
}
