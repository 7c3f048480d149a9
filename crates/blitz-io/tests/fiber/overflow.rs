//! Tests that a stack overflow on a fiber ends the process and reports which fiber it was.

use std::{hint::black_box, process::Output};

use blitz_io::runtime::Builder;

use crate::{fiber, support::child};

/// Recurses until any stack overflows.
#[allow(unconditional_recursion, reason = "that is what is tested")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    black_box(recurse(depth + 1) + frame[(depth % 64) as usize])
}

/// Runs the test `name` in a child process with the given `role`.
fn run(name: &str, role: &str) -> (Output, String) {
    let output = child::command(&format!("overflow::{name}"), role).output().unwrap();
    let text = child::text(&output);
    (output, text)
}

#[cfg(unix)]
#[track_caller]
fn assert_signal(output: &Output, signal: i32, text: &str) {
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(output.status.signal(), Some(signal), "{}: {text}", output.status);
}

#[test]
fn an_overflow_names_the_fiber() {
    const NAME: &str = "an_overflow_names_the_fiber";
    match child::role().as_deref() {
        None => {
            let (output, text) = run(NAME, "named");
            assert_signal(&output, libc::SIGABRT, &text);
            assert!(text.contains("fiber 'deep', spawned at"), "{text}");
            assert!(text.contains("overflow.rs:"), "{text}");
            assert!(text.contains("has overflowed its stack of 256 KiB"), "{text}");
            let (output, text) = run(NAME, "nameless");
            assert_signal(&output, libc::SIGABRT, &text);
            assert!(text.contains("has overflowed its stack of 256 KiB"), "{text}");
        }
        Some(role) => {
            let rt = Builder::new_current_thread().build().unwrap();
            let builder = fiber::Builder::new();
            let builder = if role == "named" { builder.name("deep") } else { builder };
            let fiber = builder.spawn_on(|| recurse(0), rt.handle()).unwrap();
            // Not reached: the process has ended.
            rt.block_on(fiber).unwrap();
        }
    }
}

/// An overflow of an ordinary thread is still reported by std.
#[test]
fn an_overflow_of_a_thread_is_stds() {
    const NAME: &str = "an_overflow_of_a_thread_is_stds";
    if child::role().is_none() {
        let (output, text) = run(NAME, "child");
        assert_signal(&output, libc::SIGABRT, &text);
        assert!(
            text.contains("thread 'deep'") && text.contains("has overflowed its stack"),
            "{text}"
        );
        assert!(!text.contains("fiber '"), "{text}");
        return;
    }
    let rt = Builder::new_current_thread().build().unwrap();
    rt.block_on(fiber::Builder::new().spawn_on(|| 1, rt.handle()).unwrap()).unwrap();
    let deep = std::thread::Builder::new().name("deep".into()).spawn(|| recurse(0)).unwrap();
    deep.join().unwrap();
}

/// Prints a line and ends the process with an exit code of its own.
extern "C" fn user_handler(_: libc::c_int) {
    let text = b"the user's handler\n";
    // SAFETY: `text` is valid for its length, and both calls are async-signal-safe.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(77);
    }
}

#[test]
fn an_overflow_reaches_a_handler_of_the_users_only_if_it_is_no_fibers() {
    const NAME: &str = "an_overflow_reaches_a_handler_of_the_users_only_if_it_is_no_fibers";
    match child::role().as_deref() {
        None => {
            let (output, text) = run(NAME, "overflow");
            assert_signal(&output, libc::SIGABRT, &text);
            assert!(text.contains("fiber 'deep'"), "{text}");
            assert!(!text.contains("the user's handler"), "{text}");
            // Another kind of fault on a fiber, and a fault outside of fibers.
            for role in ["fault", "outside"] {
                let (output, text) = run(NAME, role);
                assert_eq!(output.status.code(), Some(77), "{role}: {text}");
                assert!(text.contains("the user's handler"), "{text}");
            }
        }
        Some(role) => {
            let handler: extern "C" fn(libc::c_int) = user_handler;
            // SAFETY: the handler makes only async-signal-safe calls.
            unsafe { libc::signal(libc::SIGSEGV, handler as *const () as usize) };
            let fault = || {
                // SAFETY: unsound on purpose: the invalid read must fault.
                unsafe { black_box(16 as *const u8).read_volatile() };
            };
            let rt = Builder::new_current_thread().build().unwrap();
            let run = |f: fn()| {
                rt.block_on(fiber::Builder::new().name("deep").spawn_on(f, rt.handle()).unwrap())
            };
            match role {
                "overflow" => drop(run(|| assert!(recurse(0) > 0))),
                "fault" => drop(run(fault)),
                _ => {
                    run(|| ()).unwrap();
                    fault();
                }
            }
            unreachable!("the process has ended");
        }
    }
}

#[test]
fn an_overflow_in_a_block_on_on_a_fiber_is_the_fibers() {
    const NAME: &str = "an_overflow_in_a_block_on_on_a_fiber_is_the_fibers";
    if child::role().is_none() {
        let (output, text) = run(NAME, "child");
        assert_signal(&output, libc::SIGABRT, &text);
        assert!(text.contains("fiber 'deep'"), "{text}");
        return;
    }
    let rt = Builder::new_current_thread().build().unwrap();
    let f = || {
        blitz_io::task::block_in_place(|| {
            Builder::new_current_thread().build().unwrap().block_on(async { recurse(0) })
        })
    };
    let fiber = fiber::Builder::new().name("deep").spawn_on(f, rt.handle()).unwrap();
    rt.block_on(fiber).unwrap();
}

/// A signal that was sent with `raise` or `kill` is not a fault that repeats, so it has the effect
/// that it has without fibers.
#[test]
fn a_signal_that_is_sent_does_what_it_did() {
    const NAME: &str = "a_signal_that_is_sent_does_what_it_did";
    match child::role().as_deref() {
        None => {
            for (role, signal) in [("SEGV", libc::SIGSEGV), ("BUS", libc::SIGBUS)] {
                let (output, text) = run(NAME, role);
                assert_signal(&output, signal, &text);
            }
            // A signal that was ignored still is, and the overflow handler is still installed.
            let (output, text) = run(NAME, "ignored");
            assert_signal(&output, libc::SIGABRT, &text);
            assert!(text.contains("lives on") && text.contains("fiber 'deep'"), "{text}");
        }
        Some(role) => {
            let signal = if role == "BUS" { libc::SIGBUS } else { libc::SIGSEGV };
            let before = if role == "ignored" { libc::SIG_IGN } else { libc::SIG_DFL };
            // SAFETY: `SIG_IGN` and `SIG_DFL` are valid dispositions.
            unsafe { libc::signal(signal, before) };
            let rt = Builder::new_current_thread().build().unwrap();
            let run = |f: fn()| {
                rt.block_on(fiber::Builder::new().name("deep").spawn_on(f, rt.handle()).unwrap())
            };
            run(|| ()).unwrap();
            for _ in 0..2 {
                // SAFETY: `signal` is a valid signal number.
                assert_eq!(unsafe { libc::raise(signal) }, 0);
                assert_eq!(role, "ignored", "the process has outlived it");
            }
            eprintln!("lives on");
            run(|| assert!(recurse(0) > 0)).unwrap();
        }
    }
}
