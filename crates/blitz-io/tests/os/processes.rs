//! Tests that child processes are started, fed, waited for and never left as zombies.
//!
//! Each test runs in a process of its own, which has no other children: once with process
//! descriptors and once without, where `SIGCHLD` reports the ends of children.

use std::{
    future::poll_fn,
    io::ErrorKind,
    path::Path,
    pin::pin,
    process::Stdio,
    task::{Context, Poll, Waker},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, Command},
    runtime::{Builder, Runtime},
};

use crate::support::{
    child, descriptor_limit,
    runtimes::{one_thread_with_drivers, workers_with_drivers},
    watchdog,
};

/// Runs the test in child processes; returns `true` in those.
fn alone(name: &str) -> bool {
    if child::role().is_some() {
        descriptor_limit::raise();
        return true;
    }
    let name = format!("processes::{name}");
    for without in ["0", "1"] {
        child::succeed(child::command(&name, "alone").env("BLITZ_IO_NO_PIDFD", without));
    }
    for backend in ["poll", "uring"].into_iter().filter(|name| crate::has_backend(name)) {
        child::succeed(child::command(&name, "alone").env("BLITZ_IO_BACKEND", backend));
    }
    false
}

fn runtimes() -> [Runtime; 2] {
    [one_thread_with_drivers(), workers_with_drivers(2)]
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Returns the state of a process as one letter, or `None` if no process has that number.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Returns the number of children of this process that ended and were not waited for.
fn zombies() -> usize {
    let own = format!(" {} ", std::process::id());
    let stats = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit(')').next().unwrap().starts_with(&format!(" Z{own}"))).count()
}

/// Starts a child that runs until its standard input is closed.
fn waits() -> (blitz_io::process::Child, ChildStdin) {
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

/// Returns true if the thread runs that waits for children that no runtime watches.
fn reaper_runs() -> bool {
    std::fs::read_dir("/proc/self/task").unwrap().flatten().any(|entry| {
        std::fs::read_to_string(entry.path().join("comm")).is_ok_and(|it| it == "blitz-reaper\n")
    })
}

#[test]
fn five_hundred_children_at_once_are_all_waited_for() {
    let _watch = watchdog::start_for(std::time::Duration::from_secs(120));
    if !alone("five_hundred_children_at_once_are_all_waited_for") {
        return;
    }
    let may_open = descriptor_limit::raise();
    if may_open < 1_100 {
        println!("skipped: it needs 1,100 descriptors, and this process may have {may_open}");
        return;
    }
    workers_with_drivers(2).block_on(async {
        let children: Vec<_> = (0..500)
            .map(|number| {
                let mut child = shell("read gate; exit $0")
                    .arg((number % 200).to_string())
                    .stdin(Stdio::piped())
                    .spawn()
                    .unwrap();
                let gate = child.stdin.take().unwrap();
                (number, child, gate)
            })
            .collect();
        let tasks: Vec<_> = children
            .into_iter()
            .map(|(number, mut child, gate)| {
                blitz_io::spawn(async move {
                    drop(gate);
                    (number, child.wait().await.unwrap())
                })
            })
            .collect();
        for task in tasks {
            let (number, status) = task.await.unwrap();
            assert_eq!(status.code(), Some(number % 200));
        }
    });
    assert_eq!(zombies(), 0);
}

#[test]
fn a_child_is_killed_and_its_exit_is_reported_every_time() {
    let _watch = watchdog::start();
    if !alone("a_child_is_killed_and_its_exit_is_reported_every_time") {
        return;
    }
    use std::os::unix::process::ExitStatusExt;
    for rt in runtimes() {
        rt.block_on(async {
            let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
            assert!(child.id().is_some());
            assert_eq!(child.try_wait().unwrap(), None);
            child.kill().await.unwrap();
            for _ in 0..3 {
                assert_eq!(child.wait().await.unwrap().signal(), Some(libc::SIGKILL));
            }
            assert_eq!(child.id(), None);
            child.start_kill().unwrap();
            child.kill().await.unwrap();
            assert!(child.try_wait().unwrap().is_some());
        });
        assert_eq!(zombies(), 0);
    }
}

#[test]
fn more_than_a_pipe_holds_goes_both_ways() {
    let _watch = watchdog::start();
    if !alone("more_than_a_pipe_holds_goes_both_ways") {
        return;
    }
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    for rt in runtimes() {
        rt.block_on(async {
            let mut child =
                Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let feed = blitz_io::spawn({
                let bytes = bytes.clone();
                async move { stdin.write_all(&bytes).await }
            });
            let mut back = Vec::new();
            child.stdout.as_mut().unwrap().read_to_end(&mut back).await.unwrap();
            feed.await.unwrap().unwrap();
            assert!(back == bytes);
            assert!(child.wait().await.unwrap().success());
        });
    }
}

#[test]
fn both_outputs_are_collected_at_once() {
    let _watch = watchdog::start();
    if !alone("both_outputs_are_collected_at_once") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            // Each output fills its pipe while the other is not read.
            let script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 7";
            let output = shell(script).output().await.unwrap();
            assert_eq!(output.status.code(), Some(7));
            assert_eq!((output.stdout.len(), output.stderr.len()), (300_000, 300_000));
        });
    }
}

#[test]
fn a_dropped_child_goes_on_and_leaves_no_zombie() {
    let _watch = watchdog::start();
    if !alone("a_dropped_child_goes_on_and_leaves_no_zombie") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            let (child, stdin) = waits();
            let pid = child.id().unwrap();
            drop(child);
            assert!(state(pid).is_some_and(|state| state != 'Z'), "it goes on");
            drop(stdin);
            while state(pid).is_some() {
                blitz_io::task::yield_now().await;
            }
        });
    }
    watchdog::until(|| !reaper_runs());
}

#[test]
fn a_child_that_is_killed_on_drop_is_gone() {
    let _watch = watchdog::start();
    if !alone("a_child_that_is_killed_on_drop_is_gone") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            let children: Vec<_> = (0..20)
                .map(|_| Command::new("sleep").arg("1000").kill_on_drop(true).spawn().unwrap())
                .collect();
            let pids: Vec<u32> = children.iter().map(|child| child.id().unwrap()).collect();
            drop(children);
            while pids.iter().any(|&pid| state(pid).is_some()) {
                blitz_io::task::yield_now().await;
            }
        });
    }
}

#[test]
fn children_that_outlive_their_runtime_are_waited_for() {
    let _watch = watchdog::start();
    if !alone("children_that_outlive_their_runtime_are_waited_for") {
        return;
    }
    for (round, rt) in runtimes().into_iter().chain(runtimes()).enumerate() {
        // One child is dropped before the runtime, one after it, and one is killed.
        let (mut pids, mut gates) = (Vec::new(), Vec::new());
        let mut kept = Vec::new();
        rt.block_on(async {
            for number in 0..6 {
                let (child, stdin) = waits();
                pids.push(child.id().unwrap());
                gates.push(stdin.into_owned_fd().unwrap());
                if number % 2 == 0 {
                    kept.push(child);
                }
            }
            let mut killed = Command::new("sleep");
            let killed = killed.arg("1000").kill_on_drop(true).spawn().unwrap();
            pids.push(killed.id().unwrap());
            kept.push(killed);
        });
        drop(rt);
        drop(kept);
        assert!(pids[..6].iter().all(|&pid| state(pid).is_some_and(|state| state != 'Z')));
        watchdog::until(reaper_runs);
        drop(gates);
        watchdog::until(|| pids.iter().all(|&pid| state(pid).is_none()));
        watchdog::until(|| !reaper_runs());
        assert_eq!(zombies(), 0, "in round {round}");
    }
}

#[test]
fn others_children_are_left_alone() {
    let _watch = watchdog::start();
    if !alone("others_children_are_left_alone") {
        return;
    }
    let mut others: Vec<_> =
        (0..10).map(|_| std::process::Command::new("true").spawn().unwrap()).collect();
    watchdog::until(|| zombies() == 10);
    for rt in runtimes() {
        rt.block_on(async {
            for _ in 0..20 {
                assert!(Command::new("true").status().await.unwrap().success());
                drop(Command::new("true").spawn().unwrap());
            }
        });
    }
    assert!(others.iter_mut().all(|child| child.wait().unwrap().success()));
    watchdog::until(|| zombies() == 0);
}

#[test]
fn a_failed_start_returns_the_error_number_of_the_system() {
    let _watch = watchdog::start();
    if !alone("a_failed_start_returns_the_error_number_of_the_system") {
        return;
    }
    one_thread_with_drivers().block_on(async {
        let error = Command::new("/no/such/program").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let error = Command::new("/").status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(error.raw_os_error(), Some(libc::EACCES));
        let error = Command::new("true").arg("a\0b").output().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = Command::new("tr\0ue").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = Command::new("true").env("A\0", "1").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = Command::new("true").current_dir("/no/such/place").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(zombies(), 0);
    });
}

#[test]
fn a_wait_that_was_dropped_loses_nothing() {
    let _watch = watchdog::start();
    if !alone("a_wait_that_was_dropped_loses_nothing") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            let (mut child, _stdin) = waits();
            for _ in 0..5 {
                let mut wait = pin!(child.wait());
                assert!(poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await.is_pending());
            }
            // Leaked in the middle of a wait: its waker no longer belongs to a task.
            let mut forgotten = Box::pin(child.wait());
            let mut noop = Context::from_waker(Waker::noop());
            assert!(forgotten.as_mut().poll(&mut noop).is_pending());
            std::mem::forget(forgotten);
        });
        rt.block_on(async {
            let (mut child, stdin) = waits();
            {
                let mut wait = pin!(child.wait());
                assert!(poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await.is_pending());
            }
            drop(stdin);
            assert!(child.wait().await.unwrap().success());
        });
    }
}

#[test]
fn a_wait_goes_on_in_another_runtime() {
    let _watch = watchdog::start();
    if !alone("a_wait_goes_on_in_another_runtime") {
        return;
    }
    let first = workers_with_drivers(2);
    let (mut child, stdin) = first.block_on(async { waits() });
    let gate = stdin.into_owned_fd().unwrap();
    let second = workers_with_drivers(2);
    drop(first);
    second.block_on(async {
        {
            let mut wait = pin!(child.wait());
            assert!(poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await.is_pending());
        }
        drop(gate);
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn a_process_group_is_killed_as_one() {
    let _watch = watchdog::start();
    if !alone("a_process_group_is_killed_as_one") {
        return;
    }
    workers_with_drivers(2).block_on(async {
        let mut child = shell("sleep 1000 & echo $!; wait")
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().unwrap() as i32;
        // SAFETY: the call takes an integer.
        assert_eq!(unsafe { libc::getpgid(pid) }, pid);
        let (mut line, mut stdout) = (String::new(), child.stdout.take().unwrap());
        while !line.ends_with('\n') {
            let mut byte = [0];
            stdout.read_exact(&mut byte).await.unwrap();
            line.push(char::from(byte[0]));
        }
        let grandchild: i32 = line.trim().parse().unwrap();
        // SAFETY: the calls take integers.
        unsafe {
            assert_eq!(libc::getpgid(grandchild), pid);
            assert_eq!(libc::kill(-pid, libc::SIGTERM), 0);
        }
        assert!(!child.wait().await.unwrap().success());
        // The pipe is at its end, because no process of the group has it any more.
        assert_eq!(stdout.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn streams_go_from_child_to_child() {
    let _watch = watchdog::start();
    if !alone("streams_go_from_child_to_child") {
        return;
    }
    workers_with_drivers(2).block_on(async {
        let mut first = shell("head -c 200000 /dev/zero").stdout(Stdio::piped()).spawn().unwrap();
        let between: Stdio = first.stdout.take().unwrap().try_into().unwrap();
        let output = Command::new("wc").arg("-c").stdin(between).output().await.unwrap();
        assert_eq!(output.stdout.trim_ascii(), b"200000");
        assert!(first.wait().await.unwrap().success());
    });
}

#[test]
fn a_stream_may_be_moved_out_of_a_child() {
    let _watch = watchdog::start();
    if !alone("a_stream_may_be_moved_out_of_a_child") {
        return;
    }
    one_thread_with_drivers().block_on(async {
        let child = Command::new("echo").arg("hi").stdout(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        child.stdout.unwrap().read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hi\n");
    });
    watchdog::until(|| zombies() == 0);
}

#[test]
fn a_command_needs_a_runtime_and_starts_nothing_without() {
    let _watch = watchdog::start();
    if !alone("a_command_needs_a_runtime_and_starts_nothing_without") {
        return;
    }
    let path = std::env::temp_dir().join(format!("blitz-{}", std::process::id()));
    let caught = std::panic::catch_unwind(|| {
        drop(Command::new("touch").arg(&path).spawn());
    });
    let text = caught.unwrap_err().downcast_ref::<String>().cloned().unwrap();
    assert!(text.contains("there is no reactor running"), "{text}");
    assert!(!Path::new(&path).exists());
}

/// Programs see the same behaviour either way, so only the mechanism itself is checked here.
#[test]
fn without_pidfds_a_signal_reports_the_exit() {
    let _watch = watchdog::start();
    if !alone("without_pidfds_a_signal_reports_the_exit") {
        return;
    }
    let without = std::env::var("BLITZ_IO_NO_PIDFD").is_ok_and(|it| it == "1");
    one_thread_with_drivers().block_on(async {
        let (mut child, stdin) = waits();
        let descriptors: Vec<_> = std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .flatten()
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .map(|link| link.display().to_string())
            .collect();
        let has_one = descriptors.iter().any(|link| link.contains("pidfd"));
        assert_eq!(has_one, !without, "{descriptors:?}");
        drop(stdin);
        assert!(child.wait().await.unwrap().success());
    });
}

/// Starts children that run until they are killed, and drops their handles at once.
async fn detached(count: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    for _ in 0..count {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        pids.push(child.id().unwrap());
    }
    pids
}

/// Kills children of this process, which keep their numbers until they are waited for.
fn kill_all(pids: &[u32]) {
    for pid in pids {
        // SAFETY: the call takes integers.
        assert_eq!(unsafe { libc::kill(*pid as i32, libc::SIGKILL) }, 0);
    }
    watchdog::until(|| pids.iter().all(|pid| state(*pid).is_none()));
}

/// Sets the limit of open descriptors of this process; returns the limit before.
fn limit_descriptors(most: libc::rlim_t) -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills `limit`, which outlives it.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    let before = std::mem::replace(&mut limit.rlim_cur, most);
    // SAFETY: the call reads `limit`, which outlives it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    before
}

#[test]
fn a_child_that_was_let_go_costs_no_descriptor() {
    let _watch = watchdog::start();
    if !alone("a_child_that_was_let_go_costs_no_descriptor") {
        return;
    }
    for rt in runtimes() {
        let pids = rt.block_on(async {
            // The first child creates what all children share.
            let mut pids = detached(1).await;
            let before = child::descriptors();
            pids.extend(detached(40).await);
            assert_eq!(child::descriptors(), before);
            let limited = limit_descriptors(before as libc::rlim_t + 12);
            pids.extend(detached(40).await);
            limit_descriptors(limited);
            pids
        });
        drop(rt);
        assert!(pids.iter().all(|pid| state(*pid).is_some_and(|state| state != 'Z')));
        kill_all(&pids);
        watchdog::until(|| !reaper_runs());
    }
}

/// A child of other code that has ended, and that is not waited for, hides the children behind it
/// from code that queries only the first.
#[test]
fn a_zombie_of_others_hides_no_child_that_was_let_go() {
    let _watch = watchdog::start();
    if !alone("a_zombie_of_others_hides_no_child_that_was_let_go") {
        return;
    }
    let mut other = std::process::Command::new("true").spawn().unwrap();
    watchdog::until(|| state(other.id()) == Some('Z'));
    let pids = one_thread_with_drivers().block_on(detached(10));
    kill_all(&pids);
    assert!(other.wait().unwrap().success());
}

#[test]
fn a_child_that_was_started_without_a_descriptor_left_runs_and_is_waited_for() {
    let _watch = watchdog::start();
    if !alone("a_child_that_was_started_without_a_descriptor_left_runs_and_is_waited_for") {
        return;
    }
    for listens in [false, true] {
        one_thread_with_drivers().block_on(async {
            let _listening = listens.then(|| {
                blitz_io::signal::unix::signal(blitz_io::signal::unix::SignalKind::child()).unwrap()
            });
            let (mut all, limited) = (Vec::new(), limit_descriptors(256));
            while let Ok(file) = std::fs::File::open("/dev/null") {
                all.push(file);
            }
            let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
            let pid = child.id().unwrap();
            assert_eq!(child.try_wait().unwrap(), None, "it runs");
            {
                let mut wait = pin!(child.wait());
                match poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await {
                    // Reported by a signal, because this runtime had its notifier already.
                    Poll::Pending => assert!(listens),
                    Poll::Ready(result) => {
                        assert!(!listens);
                        let error = result.unwrap_err();
                        assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
                    }
                }
            }
            let mut dropped = Command::new("true").spawn().unwrap();
            if !listens {
                drop(all);
            }
            // SAFETY: the call takes integers.
            assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGKILL) }, 0);
            assert!(!child.wait().await.unwrap().success());
            assert!(dropped.wait().await.unwrap().success());
            limit_descriptors(limited);
        });
    }
}

fn time_of(clock: libc::clockid_t) -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills `time`, which outlives it.
    assert_eq!(unsafe { libc::clock_gettime(clock, &mut time) }, 0);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// `poll` refuses to wait then, so a thread that retries at once would use a whole processor.
#[test]
fn a_process_that_may_have_no_descriptors_does_not_spin_for_its_children() {
    use std::time::Duration;

    let _watch = watchdog::start();
    if !alone("a_process_that_may_have_no_descriptors_does_not_spin_for_its_children") {
        return;
    }
    let rt = one_thread_with_drivers();
    let pids = rt.block_on(detached(3));
    watchdog::until(reaper_runs);
    let limited = limit_descriptors(0);
    // A signal makes the thread start a new wait.
    // SAFETY: the calls take integers.
    assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGCHLD) }, 0);
    // A thread that spins would use as much processor time as this thread does here.
    let begin = (time_of(libc::CLOCK_PROCESS_CPUTIME_ID), time_of(libc::CLOCK_THREAD_CPUTIME_ID));
    while time_of(libc::CLOCK_THREAD_CPUTIME_ID) - begin.1 < Duration::from_millis(300) {}
    let own = time_of(libc::CLOCK_THREAD_CPUTIME_ID) - begin.1;
    let others = (time_of(libc::CLOCK_PROCESS_CPUTIME_ID) - begin.0).saturating_sub(own);
    limit_descriptors(limited);
    assert!(others < Duration::from_millis(100), "{others:?} beside {own:?}");
    kill_all(&pids);
}

/// A child has requested to be killed when the thread that started it ends. It must live on when
/// another task has blocked that worker, so that a blocking thread runs the tasks.
#[cfg(target_os = "linux")]
#[test]
fn a_child_outlives_the_keep_alive_of_the_thread_that_started_it() {
    let _watch = watchdog::start();
    if !alone("a_child_outlives_the_keep_alive_of_the_thread_that_started_it") {
        return;
    }
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .thread_keep_alive(std::time::Duration::from_millis(1))
        .build()
        .unwrap();
    let mut command = Command::new("sleep");
    command.arg("1000").kill_on_drop(true);
    // SAFETY: the call may be made between `fork` and `exec`.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let mut child = rt.block_on(rt.spawn(async move { command.spawn() })).unwrap().unwrap();
    // The worker that started the child loses its core, and is then idle for longer than its keep
    // alive time.
    let metrics = rt.metrics();
    rt.block_on(
        rt.spawn(async move { watchdog::compute_until(|| metrics.preemption_handoff_count() > 0) }),
    )
    .unwrap();
    watchdog::until(|| rt.metrics().num_idle_blocking_threads() > 0);
    let idle = std::time::Instant::now();
    while idle.elapsed() < std::time::Duration::from_millis(50) {
        assert!(child.try_wait().unwrap().is_none(), "it was killed with its thread");
        std::thread::yield_now();
    }
    rt.block_on(async { child.kill().await }).unwrap();
}

/// A forked process has a thread of its own that waits for children that were dropped.
#[cfg(target_os = "linux")]
#[test]
fn a_forked_process_leaves_no_zombie_of_a_dropped_child() {
    let _watch = watchdog::start();
    if !alone("a_forked_process_leaves_no_zombie_of_a_dropped_child") {
        return;
    }
    let rt = one_thread_with_drivers();
    // The thread runs when the process is forked.
    let _enter = rt.enter();
    let first = Command::new("sleep").arg("1000").spawn().unwrap();
    let first_number = first.id().unwrap();
    drop(first);
    // SAFETY: the child creates a runtime of its own and ends by `_exit`.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let fresh = one_thread_with_drivers();
        let number = fresh.block_on(async {
            let child = Command::new("true").spawn().unwrap();
            let number = child.id().unwrap();
            drop(child);
            number
        });
        while state(number).is_some() {
            std::thread::yield_now();
        }
        // SAFETY: the call ends this process and returns to no code.
        unsafe { libc::_exit(7) };
    }
    let mut status = 0;
    // SAFETY: the call fills `status`, which outlives it.
    assert_eq!(unsafe { libc::waitpid(forked, &mut status, 0) }, forked);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status}");
    // SAFETY: the number still belongs to that child, because it was not waited for.
    unsafe { libc::kill(i32::try_from(first_number).unwrap(), libc::SIGKILL) };
    while state(first_number).is_some() {
        std::thread::yield_now();
    }
}
