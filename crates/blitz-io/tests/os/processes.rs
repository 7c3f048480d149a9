//! Children are started, fed, waited for and never left as zombies.
//!
//! Each test runs in a process of its own, which has no other children: once with
//! descriptors of children and once without, where `SIGCHLD` tells of their ends.

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

use crate::{child, watch};

/// Runs the test in processes of its own; `true` in those.
fn alone(name: &str) -> bool {
    if child::role().is_some() {
        raise_limit();
        return true;
    }
    let name = format!("processes::{name}");
    for without in ["0", "1"] {
        child::succeed(child::command(&name, "alone").env("BLITZ_IO_NO_PIDFD", without));
    }
    for backend in ["poll", "uring"] {
        child::succeed(child::command(&name, "alone").env("BLITZ_IO_BACKEND", backend));
    }
    false
}

/// Five hundred children have two descriptors each, and many systems allow 1,024.
fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills `limit`, which outlives it.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit.rlim_cur = limit.rlim_cur.max(4_096.min(limit.rlim_max));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

fn runtimes() -> [Runtime; 2] {
    [one_thread(), workers()]
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn workers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// The state of a process, as one letter; `None` if there is none of that number.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// The children of this process that ended and were not waited for.
fn zombies() -> usize {
    let own = format!(" {} ", std::process::id());
    let stats = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit(')').next().unwrap().starts_with(&format!(" Z{own}"))).count()
}

/// A child that runs until what it reads is closed.
fn waits() -> (blitz_io::process::Child, ChildStdin) {
    let mut child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

/// Whether the thread that waits for what no runtime watches is there.
fn reaper_runs() -> bool {
    std::fs::read_dir("/proc/self/task").unwrap().flatten().any(|entry| {
        std::fs::read_to_string(entry.path().join("comm")).is_ok_and(|it| it == "blitz-reaper\n")
    })
}

#[test]
fn five_hundred_children_at_once_are_all_waited_for() {
    let _watch = watch::begin_for(std::time::Duration::from_secs(120));
    if !alone("five_hundred_children_at_once_are_all_waited_for") {
        return;
    }
    workers().block_on(async {
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
fn a_child_is_killed_and_its_end_is_told_every_time() {
    let _watch = watch::begin();
    if !alone("a_child_is_killed_and_its_end_is_told_every_time") {
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
    let _watch = watch::begin();
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
    let _watch = watch::begin();
    if !alone("both_outputs_are_collected_at_once") {
        return;
    }
    for rt in runtimes() {
        rt.block_on(async {
            // Each fills its pipe while the other is not read.
            let script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 7";
            let output = shell(script).output().await.unwrap();
            assert_eq!(output.status.code(), Some(7));
            assert_eq!((output.stdout.len(), output.stderr.len()), (300_000, 300_000));
        });
    }
}

#[test]
fn a_dropped_child_goes_on_and_leaves_no_zombie() {
    let _watch = watch::begin();
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
    watch::until(|| !reaper_runs());
}

#[test]
fn a_child_that_is_killed_on_drop_is_gone() {
    let _watch = watch::begin();
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
    let _watch = watch::begin();
    if !alone("children_that_outlive_their_runtime_are_waited_for") {
        return;
    }
    for (round, rt) in runtimes().into_iter().chain(runtimes()).enumerate() {
        // One dropped before the runtime, one after it, and one that is killed.
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
        watch::until(reaper_runs);
        drop(gates);
        watch::until(|| pids.iter().all(|&pid| state(pid).is_none()));
        watch::until(|| !reaper_runs());
        assert_eq!(zombies(), 0, "in round {round}");
    }
}

#[test]
fn others_children_are_left_alone() {
    let _watch = watch::begin();
    if !alone("others_children_are_left_alone") {
        return;
    }
    let mut others: Vec<_> =
        (0..10).map(|_| std::process::Command::new("true").spawn().unwrap()).collect();
    watch::until(|| zombies() == 10);
    for rt in runtimes() {
        rt.block_on(async {
            for _ in 0..20 {
                assert!(Command::new("true").status().await.unwrap().success());
                drop(Command::new("true").spawn().unwrap());
            }
        });
    }
    assert!(others.iter_mut().all(|child| child.wait().unwrap().success()));
    watch::until(|| zombies() == 0);
}

#[test]
fn what_cannot_be_started_is_named() {
    let _watch = watch::begin();
    if !alone("what_cannot_be_started_is_named") {
        return;
    }
    one_thread().block_on(async {
        let error = Command::new("/no/such/program").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("start \"/no/such/program\""), "{error}");
        let error = Command::new("/").status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("start \"/\""), "{error}");
        let error = Command::new("true").arg("a\0b").output().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("start \"true\""), "{error}");
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
    let _watch = watch::begin();
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
            // Forgotten in the middle of a poll: its waker is nobody's any more.
            let mut forgotten = Box::pin(child.wait());
            let mut nobody = Context::from_waker(Waker::noop());
            assert!(forgotten.as_mut().poll(&mut nobody).is_pending());
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
    let _watch = watch::begin();
    if !alone("a_wait_goes_on_in_another_runtime") {
        return;
    }
    let first = workers();
    let (mut child, stdin) = first.block_on(async { waits() });
    let gate = stdin.into_owned_fd().unwrap();
    let second = workers();
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
    let _watch = watch::begin();
    if !alone("a_process_group_is_killed_as_one") {
        return;
    }
    workers().block_on(async {
        let mut child = shell("sleep 1000 & echo $!; wait")
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().unwrap() as i32;
        // SAFETY: numbers.
        assert_eq!(unsafe { libc::getpgid(pid) }, pid);
        let (mut line, mut stdout) = (String::new(), child.stdout.take().unwrap());
        while !line.ends_with('\n') {
            let mut byte = [0];
            stdout.read_exact(&mut byte).await.unwrap();
            line.push(char::from(byte[0]));
        }
        let grandchild: i32 = line.trim().parse().unwrap();
        // SAFETY: numbers.
        unsafe {
            assert_eq!(libc::getpgid(grandchild), pid);
            assert_eq!(libc::kill(-pid, libc::SIGTERM), 0);
        }
        assert!(!child.wait().await.unwrap().success());
        // The pipe's end: nobody of the group has it any more.
        assert_eq!(stdout.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn streams_go_from_child_to_child() {
    let _watch = watch::begin();
    if !alone("streams_go_from_child_to_child") {
        return;
    }
    workers().block_on(async {
        let mut first = shell("head -c 200000 /dev/zero").stdout(Stdio::piped()).spawn().unwrap();
        let between: Stdio = first.stdout.take().unwrap().try_into().unwrap();
        let output = Command::new("wc").arg("-c").stdin(between).output().await.unwrap();
        assert_eq!(output.stdout.trim_ascii(), b"200000");
        assert!(first.wait().await.unwrap().success());
    });
}

#[test]
fn a_stream_may_be_moved_out_of_a_child() {
    let _watch = watch::begin();
    if !alone("a_stream_may_be_moved_out_of_a_child") {
        return;
    }
    one_thread().block_on(async {
        let child = Command::new("echo").arg("hi").stdout(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        child.stdout.unwrap().read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hi\n");
    });
    watch::until(|| zombies() == 0);
}

#[test]
fn a_command_needs_a_runtime_and_starts_nothing_without() {
    let _watch = watch::begin();
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

/// What a program sees is the same either way, so only the way itself is looked at here.
#[test]
fn without_descriptors_a_signal_tells() {
    let _watch = watch::begin();
    if !alone("without_descriptors_a_signal_tells") {
        return;
    }
    let without = std::env::var("BLITZ_IO_NO_PIDFD").is_ok_and(|it| it == "1");
    one_thread().block_on(async {
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
