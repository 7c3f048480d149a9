//! Shows why blitz-io takes no thread away from a hog by a signal: what happens if a signal handler
//! switches stacks.
//!
//! Several coroutines run on one thread. A signal arrives every fifth of a millisecond, and its
//! handler switches to the next coroutine, in the middle of whatever the interrupted code did.
//! Arithmetic is not affected. Code that allocates is sooner or later interrupted inside of the
//! allocator, and the next coroutine finds the allocator half changed, so the process crashes or
//! hangs. No part of blitz-io does this (docs/design/preemption.md).

use std::{
    cell::Cell,
    collections::HashMap,
    hint::black_box,
    ptr,
    sync::atomic::{
        AtomicBool,
        Ordering::{Relaxed, SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use corosensei::{Coroutine, Yielder};

use crate::{
    plain_stack::PlainStack,
    support::{child, watchdog},
};

/// The interval between stack switches, and the longest time for which they are requested.
const OFTEN: Duration = Duration::from_micros(200);
const LONG: Duration = Duration::from_secs(20);

thread_local! {
    /// The coroutine that the handler switches away from; null while none of them runs.
    static RUNNING: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
    static SWITCHES: Cell<u64> = const { Cell::new(0) };
}

/// Switches to the code that resumed the interrupted coroutine, and returns when it is resumed.
extern "C" fn switch(_: libc::c_int) {
    let running = RUNNING.replace(ptr::null());
    // SAFETY: the yielder lives while its coroutine runs. The switch itself is unsound, which is
    // what this test shows.
    if let Some(yielder) = unsafe { running.as_ref() } {
        SWITCHES.set(SWITCHES.get() + 1);
        yielder.suspend(());
        RUNNING.set(running);
    }
}

/// Runs three copies of `work` in turns that end when a signal arrives, until the time is over.
fn interrupt(work: fn()) {
    static OVER: AtomicBool = AtomicBool::new(false);
    // SAFETY: `switch` has the signature of a handler, and this process does nothing else.
    // SA_NODEFER is needed because a handler that was switched away from has not returned.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = switch as *const () as usize;
        action.sa_flags = libc::SA_NODEFER | libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGURG, &raw const action, ptr::null_mut()), 0);
        // The process may also deadlock on a lock that one of the coroutines holds.
        libc::alarm(2 * LONG.as_secs() as u32);
    }
    // SAFETY: the call has no arguments and cannot fail.
    let this = unsafe { libc::pthread_self() };
    let began = Instant::now();
    let ends = thread::spawn(move || {
        while began.elapsed() < LONG {
            thread::sleep(OFTEN);
            // SAFETY: the thread `this` is alive, because it joins this one.
            assert_eq!(unsafe { libc::pthread_kill(this, libc::SIGURG) }, 0);
        }
        OVER.store(true, SeqCst);
    });
    let make = || {
        let stack = PlainStack(vec![0_u128; 32 * 1024].into());
        Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            RUNNING.set(yielder);
            while !OVER.load(Relaxed) {
                work();
            }
            RUNNING.set(ptr::null());
        })
    };
    let mut coroutines = [make(), make(), make()];
    while coroutines.iter().any(|coroutine| !coroutine.done()) {
        for coroutine in coroutines.iter_mut().filter(|coroutine| !coroutine.done()) {
            coroutine.resume(());
        }
    }
    ends.join().unwrap();
    assert!(SWITCHES.get() > 1000, "it was hardly ever interrupted");
}

fn computes() {
    black_box((0..1_000_u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum)));
}

fn allocates() {
    let names: HashMap<u64, String> = (0..32).map(|n| (n, format!("number {n}"))).collect();
    black_box(names.values().map(String::len).sum::<usize>());
}

#[test]
#[ignore = "a process that crashes sooner or later, and one that does not, for 20 s each"]
fn a_signal_that_switches_stacks_breaks_code_that_allocates() {
    const NAME: &str = "signal_switch::a_signal_that_switches_stacks_breaks_code_that_allocates";
    let _watch = watchdog::start_for(6 * LONG);
    match child::role().as_deref() {
        Some("computes") => interrupt(computes),
        Some("allocates") => interrupt(allocates),
        Some(other) => panic!("there is no part `{other}`"),
        None => {
            let output = child::command(NAME, "computes").output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let output = child::command(NAME, "allocates").output().unwrap();
            println!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
            assert!(!output.status.success(), "it has survived 100,000 switches");
        }
    }
}
