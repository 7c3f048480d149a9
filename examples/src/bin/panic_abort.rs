//! Shows how a panic in a task ends: passed to the joiner, or by ending the process.
//!
//! With `panic = "abort"` a panic cannot be passed on: the process must die by the panic, at once,
//! and must not hang or continue without the task. The program starts itself a second time and
//! checks how that process ends. A fiber that is cancelled is unwound, or, where unwinding is not
//! possible, left as it is with its stack:
//!
//! ```text
//! CARGO_PROFILE_RELEASE_PANIC=abort cargo run --release -p blitz-io-examples --bin panic_abort
//! ```

use std::process::{Command, ExitStatus};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("child") {
        return blitz_io::run(panic_in_a_task());
    }
    #[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
    blitz_io::run(cancel_a_fiber());
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

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
async fn cancel_a_fiber() {
    use std::sync::Arc;

    use blitz_io::{channel::oneshot, fiber};

    let kept = Arc::new(());
    let (began, begins) = oneshot::channel();
    let held = kept.clone();
    let waits = move || {
        let _held = held;
        began.send(()).expect("the receiver waits for it");
        fiber::wait(std::future::pending::<()>());
    };
    // SAFETY: obligations 1 and 2 are not to wait in an initialiser or in a scope of a
    // thread-local. `waits` does so in neither.
    let fiber = unsafe { fiber::spawn(waits) };
    begins.await.expect("it begins");
    fiber.abort();
    assert!(fiber.await.is_err_and(|error| error.is_cancelled()));
    let unwound = Arc::strong_count(&kept) == 1;
    assert_eq!(unwound, cfg!(panic = "unwind"), "what can be unwound is, and nothing else");
    // SAFETY: obligations 1 and 2 restrict where the closure waits, and this one does not wait.
    let next = unsafe { fiber::spawn(|| 7) };
    assert_eq!(next.await.expect("its thread goes on"), 7);
}

/// Returns true if the process died by abort, as a panic without unwinding ends.
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
