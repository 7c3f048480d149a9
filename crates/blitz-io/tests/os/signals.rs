//! Tests that signals reach every listener, whatever happens to runtimes.
//!
//! Signals belong to the whole process, so each test runs in a process of its own, once for each
//! backend of the driver.

use std::{
    collections::HashSet,
    future::poll_fn,
    sync::{
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::Poll,
};

use blitz_io::{
    runtime::{Builder, Runtime},
    signal::{
        ctrl_c,
        unix::{Signal, SignalKind, signal},
    },
};

use crate::support::{
    child,
    manual_poll::foreign_block_on,
    runtimes::{one_thread_with_drivers, workers_with_drivers},
    watchdog,
};

#[cfg(target_os = "linux")]
const BACKENDS: &[&str] = &["epoll", "poll", "uring"];
#[cfg(not(target_os = "linux"))]
const BACKENDS: &[&str] = &["auto"];

/// Runs the test in child processes; returns `true` in those.
fn alone(name: &str) -> bool {
    if child::role().is_some() {
        return true;
    }
    for backend in BACKENDS.iter().filter(|name| crate::has_backend(name)) {
        let name = format!("signals::{name}");
        child::succeed(child::command(&name, "alone").env("BLITZ_IO_BACKEND", backend));
    }
    false
}

fn runtimes() -> [Runtime; 2] {
    [one_thread_with_drivers(), workers_with_drivers(2)]
}

/// Sends a signal to this process; any thread may receive it.
fn send(number: i32) {
    // SAFETY: the calls take integers.
    assert_eq!(unsafe { libc::kill(libc::getpid(), number) }, 0);
}

/// Returns true if this process has a handler for the signal.
#[cfg(target_os = "linux")]
fn is_caught(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    caught & (1 << (number - 1)) != 0
}

/// Polls a listener on this thread, which has no runtime, until the signal is received.
fn received_outside_of_a_runtime(signal: &mut Signal) {
    foreign_block_on(poll_fn(|cx| signal.poll_recv(cx)));
}

#[test]
fn every_listener_is_notified_after_each_delivery() {
    let _watch = watchdog::start();
    if !alone("every_listener_is_notified_after_each_delivery") {
        return;
    }
    const LISTENERS: usize = 100;
    for rt in runtimes() {
        let (sender, mut receiver) = blitz_io::sync::mpsc::unbounded_channel();
        rt.block_on(async {
            for listener in 0..LISTENERS {
                let (sender, mut signal) =
                    (sender.clone(), signal(SignalKind::user_defined1()).unwrap());
                blitz_io::spawn(async move {
                    while signal.recv().await.is_some() && sender.send(listener).is_ok() {}
                });
            }
            for _ in 0..30 {
                send(libc::SIGUSR1);
                let mut missing: HashSet<usize> = (0..LISTENERS).collect();
                while !missing.is_empty() {
                    missing.remove(&receiver.recv().await.unwrap());
                }
            }
        });
    }
}

#[test]
fn deliveries_that_were_not_received_yet_are_merged_into_one() {
    let _watch = watchdog::start();
    if !alone("deliveries_that_were_not_received_yet_are_merged_into_one") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            let mut signal = signal(SignalKind::user_defined2()).unwrap();
            for _ in 0..5 {
                // Sent to this thread, so it is delivered when the call returns.
                // SAFETY: the call takes an integer.
                assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
            }
            signal.recv().await.unwrap();
            let again = poll_fn(|cx| Poll::Ready(signal.poll_recv(cx))).await;
            assert_eq!(again, Poll::Pending);
        });
    }
}

#[test]
fn a_listener_outlives_the_runtime_it_was_made_in() {
    let _watch = watchdog::start();
    if !alone("a_listener_outlives_the_runtime_it_was_made_in") {
        return;
    }
    for _ in 0..10 {
        let first = one_thread_with_drivers();
        let mut signal = first.block_on(async { signal(SignalKind::hangup()).unwrap() });
        // No listener was created on the second runtime.
        let second = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (sender, receiver) = mpsc::channel();
        let waits = second.spawn(async move {
            for _ in 0..2 {
                let polled = poll_fn(|cx| Poll::Ready(signal.poll_recv(cx))).await;
                assert_eq!(polled, Poll::Pending);
                sender.send(()).unwrap();
                signal.recv().await.unwrap();
            }
        });
        receiver.recv().unwrap();
        send(libc::SIGHUP);
        receiver.recv().unwrap();
        drop(first);
        send(libc::SIGHUP);
        second.block_on(waits).unwrap();
    }
}

#[test]
fn a_signal_between_two_runtimes_is_reported_by_the_second() {
    let _watch = watchdog::start();
    if !alone("a_signal_between_two_runtimes_is_reported_by_the_second") {
        return;
    }
    let kind = SignalKind::user_defined1();
    let first = one_thread_with_drivers();
    let mut old = first.block_on(async { signal(kind).unwrap() });
    drop(first);
    send(libc::SIGUSR1);
    let second = one_thread_with_drivers();
    second.block_on(async {
        let mut new = signal(kind).unwrap();
        old.recv().await.unwrap();
        new.recv().await.unwrap();
    });
    drop(second);
    // After all runtimes are gone, the signal does not end the process. It is sent to this thread,
    // so that it is delivered when the call returns: no runtime is left to wake this thread.
    // SAFETY: the call takes an integer.
    assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    received_outside_of_a_runtime(&mut old);
}

#[test]
fn a_listener_outside_of_runtimes_is_notified_by_any_runtime() {
    let _watch = watchdog::start();
    if !alone("a_listener_outside_of_runtimes_is_notified_by_any_runtime") {
        return;
    }
    let first = one_thread_with_drivers();
    let mut listener = first.block_on(async { signal(SignalKind::alarm()).unwrap() });
    let second = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let other = second.block_on(async { signal(SignalKind::hangup()).unwrap() });
    drop(first);
    for _ in 0..10 {
        let sends = std::thread::spawn(|| send(libc::SIGALRM));
        received_outside_of_a_runtime(&mut listener);
        sends.join().unwrap();
    }
    drop(other);
}

#[test]
fn many_runtimes_receive_signals_at_once_and_come_and_go() {
    let _watch = watchdog::start();
    if !alone("many_runtimes_receive_signals_at_once_and_come_and_go") {
        return;
    }
    for _ in 0..10 {
        let (ready, is_ready) = mpsc::channel();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let ready = ready.clone();
                std::thread::spawn(move || {
                    one_thread_with_drivers().block_on(async {
                        let mut signal = signal(SignalKind::window_change()).unwrap();
                        ready.send(()).unwrap();
                        signal.recv().await.unwrap();
                    });
                })
            })
            .collect();
        threads.iter().for_each(|_| is_ready.recv().unwrap());
        send(libc::SIGWINCH);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn a_handler_that_was_there_is_still_called() {
    let _watch = watchdog::start();
    if !alone("a_handler_that_was_there_is_still_called") {
        return;
    }
    static CALLED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handler(_: i32) {
        CALLED.fetch_add(1, SeqCst);
    }
    let handler: extern "C" fn(i32) = handler;
    // SAFETY: the function has the signature of a handler; all zeros mean no flags and no mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
    }
    for (round, rt) in runtimes().into_iter().enumerate() {
        rt.block_on(async {
            let mut signal = signal(SignalKind::user_defined2()).unwrap();
            send(libc::SIGUSR2);
            signal.recv().await.unwrap();
        });
        assert_eq!(CALLED.load(SeqCst), round + 1);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_installed_before_the_first_listener() {
    let _watch = watchdog::start();
    if !alone("nothing_is_installed_before_the_first_listener") {
        return;
    }
    // Only these descriptors are counted, because other threads may have files open for a moment.
    let notifiers = || {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let is_notifier = |link: &std::path::PathBuf| {
            let link = link.to_string_lossy();
            link.starts_with("pipe:") || link == "anon_inode:[eventfd]"
        };
        links.filter(is_notifier).count()
    };
    for rt in runtimes() {
        let before = notifiers();
        rt.block_on(async { blitz_io::task::yield_now().await });
        assert!([libc::SIGUSR1, libc::SIGINT, libc::SIGCHLD].into_iter().all(|it| !is_caught(it)));
        assert_eq!(notifiers(), before);
    }
    let rt = one_thread_with_drivers();
    let before = notifiers();
    let listens = rt.block_on(async { signal(SignalKind::user_defined1()).unwrap() });
    assert!(is_caught(libc::SIGUSR1) && !is_caught(libc::SIGUSR2));
    assert_eq!(notifiers(), before + 1);
    let again = rt.block_on(async { signal(SignalKind::user_defined1()).unwrap() });
    assert_eq!(notifiers(), before + 1, "a second one opens nothing");
    drop((listens, again));
}

#[test]
fn signals_that_must_not_be_caught_are_refused_by_name() {
    let _watch = watchdog::start();
    if !alone("signals_that_must_not_be_caught_are_refused_by_name") {
        return;
    }
    one_thread_with_drivers().block_on(async {
        let named = [
            (libc::SIGKILL, "SIGKILL", "SIGTERM"),
            (libc::SIGSTOP, "SIGSTOP", "SIGTSTP"),
            (libc::SIGSEGV, "SIGSEGV", "sigaction"),
            (libc::SIGILL, "SIGILL", "sigaction"),
            (libc::SIGFPE, "SIGFPE", "sigaction"),
        ];
        for (number, name, instead) in named {
            let error = signal(SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::Other);
            let text = error.to_string();
            assert!(text.starts_with("cannot listen to signal"), "{text}");
            assert!(text.contains(name) && text.contains(instead), "{text}");
        }
        for number in [0, -1, i32::MIN, i32::MAX, 65, 1_000] {
            let error = signal(SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::Other);
            assert!(error.to_string().contains(&format!("signal {number}: ")), "{error}");
        }
    });
}

#[test]
fn a_storm_of_children_is_reported_to_its_end() {
    let _watch = watchdog::start();
    if !alone("a_storm_of_children_is_reported_to_its_end") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            let mut ends = signal(SignalKind::child()).unwrap();
            let mut running: Vec<_> = (0..200)
                .map(|_| std::process::Command::new("true").spawn().expect("it starts"))
                .collect();
            // Each end of a child is followed by a notification, so one check after each is enough.
            while !running.is_empty() {
                ends.recv().await.unwrap();
                running.retain_mut(|child| child.try_wait().unwrap().is_none());
            }
        });
    }
}

#[test]
fn a_storm_from_many_threads_does_not_lose_the_last_signal() {
    let _watch = watchdog::start();
    if !alone("a_storm_from_many_threads_does_not_lose_the_last_signal") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            let mut signal = signal(SignalKind::user_defined1()).unwrap();
            let senders: Vec<_> = (0..4)
                .map(|_| std::thread::spawn(|| (0..2_000).for_each(|_| send(libc::SIGUSR1))))
                .collect();
            let all_sent = blitz_io::task::spawn_blocking(move || {
                senders.into_iter().for_each(|sender| sender.join().unwrap());
            });
            signal.recv().await.unwrap();
            all_sent.await.unwrap();
            // The last signal is received, however many were merged into one.
            let _ = poll_fn(|cx| Poll::Ready(signal.poll_recv(cx))).await;
            send(libc::SIGUSR1);
            signal.recv().await.unwrap();
        });
    }
}

#[test]
fn listeners_that_come_and_go_under_fire_break_nothing() {
    let _watch = watchdog::start();
    if !alone("listeners_that_come_and_go_under_fire_break_nothing") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            let tasks: Vec<_> = (0..8)
                .map(|_| {
                    blitz_io::spawn(async {
                        for _ in 0..100 {
                            let mut signal = signal(SignalKind::user_defined2()).unwrap();
                            let _ = poll_fn(|cx| Poll::Ready(signal.poll_recv(cx))).await;
                            send(libc::SIGUSR2);
                            signal.recv().await.unwrap();
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[cfg(target_os = "linux")]
#[test]
fn signals_without_a_name_are_received_too() {
    let _watch = watchdog::start();
    if !alone("signals_without_a_name_are_received_too") {
        return;
    }
    one_thread_with_drivers().block_on(async {
        for number in libc::SIGRTMIN()..=libc::SIGRTMAX() {
            let mut signal = signal(SignalKind::from_raw(number)).unwrap();
            send(number);
            signal.recv().await.unwrap();
        }
    });
}

#[test]
fn ctrl_c_is_received_and_does_not_end_the_process() {
    let _watch = watchdog::start();
    if !alone("ctrl_c_is_received_and_does_not_end_the_process") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            let mut waits = std::pin::pin!(ctrl_c());
            // The listener exists from the first poll on.
            assert!(poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx))).await.is_pending());
            send(libc::SIGINT);
            waits.await.unwrap();
        });
    }
}

#[test]
fn a_signal_needs_a_runtime_with_io() {
    let _watch = watchdog::start();
    if !alone("a_signal_needs_a_runtime_with_io") {
        return;
    }
    let panics = |make: &dyn Fn()| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(make)).unwrap_err();
        let text = caught.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| caught.downcast_ref::<String>().cloned()).unwrap_or_default()
    };
    let text = panics(&|| drop(signal(SignalKind::hangup())));
    assert!(text.contains("no runtime on this thread"), "{text}");
    let text = panics(&|| {
        let rt = Builder::new_current_thread().build().unwrap();
        rt.block_on(async { drop(signal(SignalKind::hangup())) });
    });
    assert!(text.contains("enable_io"), "{text}");
}

/// Returns how often the other threads of this process went to sleep or were preempted.
#[cfg(target_os = "linux")]
fn switches_of_others() -> u64 {
    // SAFETY: the call has no arguments.
    let own = unsafe { libc::gettid() }.to_string();
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let others = threads.filter(|entry| entry.file_name() != own.as_str());
    let status = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("status"));
    let count = |text: String| -> u64 {
        let counts = text.lines().filter_map(|line| line.split_once("ctxt_switches:"));
        counts.map(|(_, count)| count.trim().parse::<u64>().unwrap()).sum()
    };
    others.filter_map(|entry| status(entry).ok()).map(count).sum()
}

#[cfg(target_os = "linux")]
#[test]
fn a_runtime_with_a_listener_and_no_signal_does_nothing() {
    let _watch = watchdog::start();
    if watchdog::is_interrupted() {
        println!("skipped: signals come all the time");
        return;
    }
    if !alone("a_runtime_with_a_listener_and_no_signal_does_nothing") {
        return;
    }
    let rt = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (sender, receiver) = mpsc::channel();
    rt.spawn(async move {
        let mut signal = signal(SignalKind::user_defined1()).unwrap();
        sender.send(()).unwrap();
        while signal.recv().await.is_some() {
            sender.send(()).unwrap();
        }
    });
    receiver.recv().unwrap();
    send(libc::SIGUSR1);
    receiver.recv().unwrap();
    // Workers take a moment to park. From then on nothing changes, however long one waits.
    let mut before = switches_of_others();
    watchdog::until(|| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        std::mem::replace(&mut before, switches_of_others()) == before
    });
    send(libc::SIGUSR1);
    receiver.recv().unwrap();
}

#[cfg(feature = "time")]
#[test]
fn a_signal_begins_a_shutdown_and_a_second_one_cuts_it_short() {
    use blitz_io::{shutdown::Shutdown, time::Duration};

    let _watch = watchdog::start();
    if !alone("a_signal_begins_a_shutdown_and_a_second_one_cuts_it_short") {
        return;
    }
    for (first, second) in [(libc::SIGTERM, libc::SIGINT), (libc::SIGINT, libc::SIGTERM)] {
        for runtime in runtimes() {
            runtime.block_on(async {
                let shutdown = Shutdown::new();
                shutdown.on_signal().unwrap();
                shutdown.spawn(std::future::pending::<()>());
                let clean = shutdown.spawn_with(async |token| token.cancelled().await);
                send(first);
                shutdown.begun().await;
                clean.await.unwrap();
                let drain = shutdown.drain(Duration::from_secs(3600));
                let (report, ()) = blitz_io::join!(drain, async { send(second) });
                assert_eq!(report.aborted.len(), 1);
            });
        }
    }
}

/// A program that blocks a signal in its own threads, in order to wait for it, is not ended by it,
/// because the threads of this crate that belong to no runtime block all signals.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_no_runtime_owns_take_no_signals() {
    let _watch = watchdog::start();
    if !alone("threads_that_no_runtime_owns_take_no_signals") {
        return;
    }
    // The monitor and the reporter outlive this runtime.
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .on_task_stall(|_| ())
        .build()
        .unwrap();
    let metrics = rt.metrics();
    rt.block_on(
        rt.spawn(async move { watchdog::compute_until(|| metrics.preemption_stall_count() > 0) }),
    )
    .unwrap();
    drop(rt);
    // A thread waits for a child that was dropped.
    let rt = one_thread_with_drivers();
    let _enter = rt.enter();
    let child = blitz_io::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let number = i32::try_from(child.id().unwrap()).unwrap();
    drop(child);
    let masks = || {
        let folders = std::fs::read_dir("/proc/self/task").unwrap();
        folders.filter_map(|folder| {
            let folder = folder.unwrap().path();
            let name = std::fs::read_to_string(folder.join("comm")).ok()?;
            let status = std::fs::read_to_string(folder.join("status")).ok()?;
            let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
            let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
            Some((name.trim().to_owned(), blocked & (1 << (libc::SIGTERM - 1)) != 0))
        })
    };
    let services =
        || -> Vec<_> { masks().filter(|(name, _)| name.starts_with("blitz-")).collect() };
    watchdog::until(|| services().iter().any(|(name, _)| name == "blitz-reaper"));
    let services = services();
    assert!(services.len() >= 2, "{services:?}");
    assert!(services.iter().all(|(_, blocks)| *blocks), "{services:?}");
    // SAFETY: the number belongs to the child of this test, which was not waited for.
    unsafe { libc::kill(number, libc::SIGKILL) };
}

/// Threads that the monitor starts to replace a stuck worker receive signals like all others, and
/// so do the children that tasks on them start.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_stand_in_have_the_signal_mask_of_their_runtime() {
    let _watch = watchdog::start();
    if !alone("threads_that_stand_in_have_the_signal_mask_of_their_runtime") {
        return;
    }
    let rt = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let stuck = rt.spawn(async move { gone.recv() });
    // Runs on a thread that was started to replace the worker above.
    let blocked = rt.spawn(async {
        let output = blitz_io::process::Command::new("cat").arg("/proc/self/status").output();
        (std::fs::read_to_string("/proc/thread-self/status").unwrap(), output.await.unwrap())
    });
    let (own, child) = rt.block_on(blocked).unwrap();
    for status in [own, String::from_utf8(child.stdout).unwrap()] {
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        assert_eq!(u64::from_str_radix(blocked.trim(), 16).unwrap(), 0, "{status}");
    }
    drop(go);
    rt.block_on(stuck).unwrap().unwrap_err();
}

/// Without a descriptor there is no listener, and the signal keeps the effect that it had before.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_cannot_be_listened_to_is_not_caught() {
    let _watch = watchdog::start();
    if !alone("a_signal_that_cannot_be_listened_to_is_not_caught") {
        return;
    }
    let rt = one_thread_with_drivers();
    let _enter = rt.enter();
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to `before`, which outlives it.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut before) }, 0);
    let none = libc::rlimit { rlim_cur: 0, ..before };
    // SAFETY: the call reads `none`, which outlives it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }, 0);
    let error = signal(SignalKind::user_defined2()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    // SAFETY: the call reads `before`, which outlives it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &before) }, 0);
    assert!(!is_caught(libc::SIGUSR2), "it is caught, and there is no listener");
}
