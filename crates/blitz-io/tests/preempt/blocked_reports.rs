//! Tests what a report about a blocked thread contains: the system call, and what it waits for.
//!
//! Where the system does not provide this (a sandbox without the file), the tests print so and end.

use std::{
    collections::HashMap,
    io::Write,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, Preemption, Runtime, StallKind, StallReport},
    sync::Barrier,
    task,
};

use crate::support::{preemption::with_reports, watchdog};

/// Creates a runtime that reports stalls. Its slice is long enough that the work of a thread before
/// it waits does not count as computing.
fn reporting(workers: usize) -> (Runtime, mpsc::Receiver<StallReport>) {
    let preemption = Preemption::new().slice(Duration::from_millis(50));
    with_reports(Builder::new_multi_thread().worker_threads(workers).preemption(preemption))
}

/// Returns true if this system reports the system call in which a thread waits.
fn is_reported() -> bool {
    let readable = std::fs::read("/proc/self/syscall").is_ok();
    if !readable {
        eprintln!("skipped: /proc/self/syscall cannot be read here");
    }
    readable
}

#[test]
fn a_report_of_a_sleeping_task_names_the_sleep() {
    let _watch = watchdog::start();
    if !is_reported() {
        return;
    }
    let (rt, reports) = reporting(1);
    // The task is left behind when the test ends.
    drop(rt.spawn(async { thread::sleep(Duration::from_secs(3600)) }));
    let stall = reports.recv().unwrap();
    assert_eq!(stall.kind(), StallKind::Blocked);
    let call = stall.waits_in().expect("it sleeps");
    assert_eq!(
        (call.name(), call.lock(), call.descriptor()),
        (Some("clock_nanosleep"), None, None)
    );
    assert!(stall.to_string().contains(" (sleeps); "), "{stall}");
    rt.shutdown_background();
}

#[test]
fn a_report_of_a_blocked_read_names_its_descriptor() {
    use std::{io::Read, os::fd::AsRawFd};

    let _watch = watchdog::start();
    if !is_reported() {
        return;
    }
    let (rt, reports) = reporting(1);
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let descriptor = reader.as_raw_fd();
    let reads = rt.spawn(async move {
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        byte[0]
    });
    let stall = reports.recv().unwrap();
    let call = *stall.waits_in().expect("it reads");
    assert_eq!((call.name(), call.descriptor()), (Some("read"), Some(descriptor)));
    let said = format!(" (reads descriptor {descriptor}); ");
    assert!(stall.to_string().contains(&said), "{stall}");
    writer.write_all(&[7]).unwrap();
    assert_eq!(rt.block_on(reads).unwrap(), 7);
}

/// Each of two tasks has one lock and waits for the other's, for ever. They are left behind.
#[test]
fn a_deadlock_has_two_locks() {
    let _watch = watchdog::start();
    if !is_reported() {
        return;
    }
    let (rt, reports) = reporting(2);
    let locks = [(); 2].map(|()| Arc::new(Mutex::new(())));
    // Each goes on only when both have a lock.
    let both = Arc::new(Barrier::new(2));
    for (name, (own, other)) in [("ab", (0, 1)), ("ba", (1, 0))] {
        let (own, other, both) = (locks[own].clone(), locks[other].clone(), both.clone());
        let deadlocks = async move {
            // A guard must not live across an `await`, so it is leaked and the lock stays locked.
            std::mem::forget(own.lock().unwrap());
            both.wait().await;
            drop(other.lock());
        };
        task::Builder::new().name(name).spawn_on(deadlocks, rt.handle()).unwrap();
    }
    let mut waits = HashMap::new();
    for _ in 0..2 {
        let stall = reports.recv().unwrap();
        let call = stall.waits_in().expect("it waits");
        waits.insert(stall.name().unwrap().to_owned(), call.lock().expect("for a lock"));
        assert!(stall.to_string().contains("waits for a lock"), "{stall}");
    }
    let is_of = |address: usize, lock: &Arc<Mutex<()>>| {
        let begins = Arc::as_ptr(lock) as usize;
        (begins..begins + size_of::<Mutex<()>>()).contains(&address)
    };
    assert!(is_of(waits["ab"], &locks[1]), "{waits:x?}");
    assert!(is_of(waits["ba"], &locks[0]), "{waits:x?}");
    rt.shutdown_background();
}

#[test]
fn a_report_of_a_computing_task_names_no_system_call() {
    let _watch = watchdog::start();
    let (rt, reports) = reporting(1);
    let (end, ended) = mpsc::channel::<()>();
    let hog = rt.spawn(async move { while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {} });
    let stall = reports.recv().unwrap();
    assert_eq!((stall.kind(), stall.waits_in()), (StallKind::Computing, None));
    drop(end);
    rt.block_on(hog).unwrap();
}
