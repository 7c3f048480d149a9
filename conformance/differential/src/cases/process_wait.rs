//! Waiting for child processes, ending them, and dropping them.

use crate::probe::files::*;
use futures_util::FutureExt;
use std::io::{self};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

pub const CASES: &[(&str, fn())] = &[
    ("exit_codes_come_through", exit_codes_come_through),
    ("deaths_by_signal_come_through", deaths_by_signal_come_through),
    ("wait_twice_gives_the_same", wait_twice_gives_the_same),
    ("the_id_is_the_pid_until_the_wait", the_id_is_the_pid_until_the_wait),
    ("try_wait_is_none_until_the_exit", try_wait_is_none_until_the_exit),
    ("kill_waits_and_is_idempotent", kill_waits_and_is_idempotent),
    (
        "kill_of_an_exited_child_that_was_not_awaited_is_ok",
        kill_of_an_exited_child_that_was_not_awaited_is_ok,
    ),
    ("start_kill_does_not_reap", start_kill_does_not_reap),
    ("a_cancelled_wait_can_be_repeated", a_cancelled_wait_can_be_repeated),
    ("wait_closes_stdin_and_try_wait_does_not", wait_closes_stdin_and_try_wait_does_not),
    ("even_a_cancelled_wait_closes_stdin", even_a_cancelled_wait_closes_stdin),
    ("an_unpolled_wait_does_not_close_stdin", an_unpolled_wait_does_not_close_stdin),
    ("status_closes_all_pipes", status_closes_all_pipes),
    ("wait_with_output_collects_a_megabyte_of_both", wait_with_output_collects_a_megabyte_of_both),
    ("wait_with_output_without_pipes_is_empty", wait_with_output_without_pipes_is_empty),
    (
        "wait_with_output_after_the_wait_still_reads_the_pipes",
        wait_with_output_after_the_wait_still_reads_the_pipes,
    ),
    (
        "wait_with_output_waits_for_grandchildren_with_the_pipe",
        wait_with_output_waits_for_grandchildren_with_the_pipe,
    ),
    ("wait_with_output_closes_stdin", wait_with_output_closes_stdin),
    ("a_stopped_child_is_not_an_exited_one", a_stopped_child_is_not_an_exited_one),
    ("a_child_reaped_by_someone_else_is_echild", a_child_reaped_by_someone_else_is_echild),
    (
        "an_ignored_sigchld_makes_wait_fail_with_echild",
        an_ignored_sigchld_makes_wait_fail_with_echild,
    ),
    ("a_blocked_sigchld_does_not_matter", a_blocked_sigchld_does_not_matter),
    ("a_users_sigchld_handler_is_called_too", a_users_sigchld_handler_is_called_too),
    ("a_sigchld_listener_and_wait_work_together", a_sigchld_listener_and_wait_work_together),
    ("wait_under_a_paused_clock_times_out_at_once", wait_under_a_paused_clock_times_out_at_once),
    ("fifty_children_at_once", fifty_children_at_once),
    (
        "waits_in_tasks_of_one_child_moved_between_them",
        waits_in_tasks_of_one_child_moved_between_them,
    ),
    ("kill_on_drop_kills_and_reaps", kill_on_drop_kills_and_reaps),
    ("without_kill_on_drop_the_child_goes_on", without_kill_on_drop_the_child_goes_on),
    (
        "a_dropped_output_future_with_kill_on_drop_kills",
        a_dropped_output_future_with_kill_on_drop_kills,
    ),
    (
        "a_dropped_status_future_without_kill_on_drop_leaves_the_child",
        a_dropped_status_future_without_kill_on_drop_leaves_the_child,
    ),
    (
        "dropping_the_runtime_kills_the_children_of_its_tasks",
        dropping_the_runtime_kills_the_children_of_its_tasks,
    ),
    ("aborting_a_task_kills_its_child", aborting_a_task_kills_its_child),
    ("kill_on_drop_does_not_reach_grandchildren", kill_on_drop_does_not_reach_grandchildren),
    ("an_exited_child_is_reaped_by_its_drop", an_exited_child_is_reaped_by_its_drop),
    ("dropped_children_are_reaped_when_they_exit", dropped_children_are_reaped_when_they_exit),
    (
        "a_hundred_detached_children_leave_no_descriptors",
        a_hundred_detached_children_leave_no_descriptors,
    ),
    ("fifty_awaited_children_leave_no_descriptors", fifty_awaited_children_leave_no_descriptors),
    (
        "a_reaped_child_frees_its_descriptors_only_at_the_drop_or_wait",
        a_reaped_child_frees_its_descriptors_only_at_the_drop_or_wait,
    ),
    (
        "a_child_outlives_its_runtime_and_is_awaited_on_another",
        a_child_outlives_its_runtime_and_is_awaited_on_another,
    ),
    (
        "a_child_that_exited_before_is_awaited_on_another_runtime",
        a_child_that_exited_before_is_awaited_on_another_runtime,
    ),
    (
        "a_child_of_a_running_runtime_is_awaited_on_another",
        a_child_of_a_running_runtime_is_awaited_on_another,
    ),
    (
        "try_wait_and_start_kill_work_without_a_runtime",
        try_wait_and_start_kill_work_without_a_runtime,
    ),
    ("a_pending_wait_polled_outside_of_a_runtime", a_pending_wait_polled_outside_of_a_runtime),
    ("pipes_of_a_dropped_runtime_fail", pipes_of_a_dropped_runtime_fail),
    (
        "the_orphans_of_a_dropped_runtime_are_reaped_by_another",
        the_orphans_of_a_dropped_runtime_are_reaped_by_another,
    ),
    ("the_debug_of_an_exit_status_and_equality", the_debug_of_an_exit_status_and_equality),
];

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use tokio::process::{Child, Command};

fn sh(script: &str) -> Command {
    let mut c = Command::new("/bin/sh");
    c.arg("-c").arg(script);
    c
}

fn sleeper() -> Command {
    let mut c = Command::new("/bin/sleep");
    c.arg("100").stdin(Stdio::null());
    c
}

fn st(r: io::Result<std::process::ExitStatus>) -> String {
    match r {
        Ok(s) => format!("code {:?} signal {:?}", s.code(), s.signal()),
        Err(x) => format!("err {}", error(&x)),
    }
}

async fn w(c: &mut Child) -> String {
    match timeout(Duration::from_secs(2), c.wait()).await {
        Ok(r) => st(r),
        Err(_) => "timed out".into(),
    }
}

/// Returns "gone", "zombie" or "alive".
fn state(pid: u32) -> &'static str {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => "gone",
        Ok(s) => match s.rsplit(')').next().unwrap().trim().chars().next() {
            Some('Z') | Some('X') => "zombie",
            _ => "alive",
        },
    }
}

fn is_zombie(pid: u32) -> bool {
    // SAFETY: a `siginfo_t` of zeros is valid, and the call writes into a local that outlives it.
    unsafe {
        let mut i: libc::siginfo_t = std::mem::zeroed();
        let r =
            libc::waitid(libc::P_PID, pid, &mut i, libc::WEXITED | libc::WNOWAIT | libc::WNOHANG);
        r == 0 && i.si_pid() == pid as i32
    }
}

fn exit_codes_come_through() {
    for n in [0, 1, 2] {
        let rt = runtime(n);
        rt.block_on(async {
            for c in [0, 1, 2, 77, 126, 255] {
                println!("{c}: {}", st(sh(&format!("exit {c}")).status().await));
            }
            let s = sh("exit 3").status().await.unwrap();
            println!("{s} {}", s.success());
        });
    }
}

fn deaths_by_signal_come_through() {
    let rt = runtime(0);
    rt.block_on(async {
        // SAFETY: the call reads a local that outlives it.
        unsafe {
            let l = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &l);
        }
        for s in ["KILL", "TERM", "INT", "HUP", "USR1", "PIPE", "SEGV", "ABRT"] {
            println!("{s}: {}", st(sh(&format!("kill -{s} $$")).status().await));
        }
        let s = sh("kill -9 $$").status().await.unwrap();
        println!("{s} {}", s.success());
        let s = sh("kill -15 $$").status().await.unwrap();
        println!("{s}");
    });
}

fn wait_twice_gives_the_same() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sh("exit 7").spawn().unwrap();
        println!("{}", w(&mut c).await);
        println!("{}", w(&mut c).await);
        println!("{:?}", c.try_wait().map(|s| s.unwrap().code()));
        println!("{}", st(c.wait_with_output().await.map(|o| o.status)));
    });
}

fn the_id_is_the_pid_until_the_wait() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = sh("echo $$").stdout(Stdio::piped()).spawn().unwrap();
        let mut s = String::new();
        c.stdout.as_mut().unwrap().read_to_string(&mut s).await.unwrap();
        println!("{}", s.trim().parse::<u32>().unwrap() == c.id().unwrap());
        println!("{:?}", c.id().is_some());
        w(&mut c).await;
        println!("{:?}", c.id());
        let mut c = sh("exit 0").spawn().unwrap();
        let pid = c.id().unwrap();
        println!("{}", until(|| is_zombie(pid)));
        println!("{}", c.id() == Some(pid));
        show("try_wait", c.try_wait().map(|s| s.map(|s| s.code())));
        println!("{:?}", c.id());
    });
}

fn try_wait_is_none_until_the_exit() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = sleeper().spawn().unwrap();
        println!("{:?}", c.try_wait().unwrap().is_none());
        println!("{:?}", c.try_wait().unwrap().is_none());
        c.start_kill().unwrap();
        println!("{}", until_async(|| c.try_wait().unwrap().is_some()).await);
        println!("{}", st(c.try_wait().map(|s| s.unwrap())));
        println!("{}", w(&mut c).await);
    });
}

fn kill_waits_and_is_idempotent() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sleeper().spawn().unwrap();
        show("kill", c.kill().await);
        println!("{:?}", c.id());
        show("kill again", c.kill().await);
        show("start_kill", c.start_kill());
        println!("{}", w(&mut c).await);
        let mut c = sh("exit 3").spawn().unwrap();
        println!("{}", w(&mut c).await);
        show("kill after wait", c.kill().await);
        println!("{}", w(&mut c).await);
    });
}

fn kill_of_an_exited_child_that_was_not_awaited_is_ok() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = sh("exit 3").spawn().unwrap();
        let pid = c.id().unwrap();
        println!("{}", until(|| is_zombie(pid)));
        show("start_kill", c.start_kill());
        println!("{}", w(&mut c).await);
        let mut c = sh("exit 4").spawn().unwrap();
        let pid = c.id().unwrap();
        println!("{}", until(|| is_zombie(pid)));
        show("kill", c.kill().await);
        println!("{}", w(&mut c).await);
    });
}

fn start_kill_does_not_reap() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = sleeper().spawn().unwrap();
        let pid = c.id().unwrap();
        show("start_kill", c.start_kill());
        show("start_kill", c.start_kill());
        println!("{}", until(|| is_zombie(pid)));
        println!("{}", c.id().is_some());
        println!("{} {}", w(&mut c).await, state(pid));
    });
}

fn a_cancelled_wait_can_be_repeated() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sleeper().spawn().unwrap();
        for _ in 0..3 {
            println!("{}", timeout(Duration::from_millis(20), c.wait()).await.is_err());
        }
        println!("{}", c.id().is_some());
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::kill(c.id().unwrap() as i32, libc::SIGTERM) };
        println!("{}", w(&mut c).await);
    });
}

fn wait_closes_stdin_and_try_wait_does_not() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        println!("{:?} {}", c.try_wait().unwrap().is_none(), c.stdin.is_some());
        sleep(Duration::from_millis(50)).await;
        println!("{:?} {}", c.try_wait().unwrap().is_none(), c.stdin.is_some());
        println!("{}", w(&mut c).await);
        println!("{}", c.stdin.is_some());
    });
}

fn even_a_cancelled_wait_closes_stdin() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c =
            sh("cat; exec sleep 100").stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        println!("{}", c.wait().now_or_never().is_none());
        println!("{}", c.stdin.is_none());
        c.kill().await.unwrap();
    });
}

fn an_unpolled_wait_does_not_close_stdin() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c =
            Command::new("/bin/cat").stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        drop(c.wait());
        println!("{}", c.stdin.is_some());
        println!("{}", w(&mut c).await);
    });
}

fn status_closes_all_pipes() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = Command::new("/bin/cat");
        c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        println!("{}", st(timeout(Duration::from_secs(2), c.status()).await.unwrap()));
        // A process that writes after the pipe was closed dies by SIGPIPE.
        let mut c = sh("sleep 0.2; while :; do echo y; done");
        c.stdout(Stdio::piped());
        println!("{}", st(timeout(Duration::from_secs(2), c.status()).await.unwrap()));
    });
}

fn wait_with_output_collects_a_megabyte_of_both() {
    for n in [0, 2] {
        let rt = runtime(n);
        rt.block_on(async {
            let c = sh("head -c 1000000 /dev/zero; head -c 1000001 /dev/zero >&2; head -c 5 /dev/zero; exit 9")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let o = timeout(Duration::from_secs(3), c.wait_with_output()).await.unwrap().unwrap();
            println!("{} {} {:?}", o.stdout.len(), o.stderr.len(), o.status.code());
        });
    }
}

fn wait_with_output_without_pipes_is_empty() {
    let rt = runtime(1);
    rt.block_on(async {
        let c =
            sh("echo x; echo y >&2").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let o = c.wait_with_output().await.unwrap();
        println!("{} {} {:?}", o.stdout.len(), o.stderr.len(), o.status.code());
        let mut c = sh("echo x; echo yy >&2")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = c.stdout.take();
        let o = c.wait_with_output().await.unwrap();
        println!("{} {} {:?}", o.stdout.len(), o.stderr.len(), o.status.code());
        let mut s = String::new();
        out.unwrap().read_to_string(&mut s).await.unwrap();
        println!("{s:?}");
    });
}

fn wait_with_output_after_the_wait_still_reads_the_pipes() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = sh("echo x; exit 2").stdout(Stdio::piped()).spawn().unwrap();
        println!("{}", w(&mut c).await);
        let o = c.wait_with_output().await.unwrap();
        println!("{:?} {:?}", o.stdout, o.status.code());
    });
}

fn wait_with_output_waits_for_grandchildren_with_the_pipe() {
    let rt = runtime(2);
    rt.block_on(async {
        let c = sh("(sleep 0.3; echo late) & echo early; exit 6")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let o = timeout(Duration::from_secs(2), c.wait_with_output()).await.unwrap().unwrap();
        println!("{:?} {:?}", String::from_utf8_lossy(&o.stdout), o.status.code());
        let mut c = sh("(sleep 0.3; echo late) & echo early; exit 6")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        println!("{}", w(&mut c).await);
    });
}

fn wait_with_output_closes_stdin() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c =
            Command::new("/bin/cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        c.stdin.as_mut().unwrap().write_all(b"some text").await.unwrap();
        let o = timeout(Duration::from_secs(2), c.wait_with_output()).await.unwrap().unwrap();
        println!("{:?}", String::from_utf8_lossy(&o.stdout));
    });
}

fn a_stopped_child_is_not_an_exited_one() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = sleeper().kill_on_drop(true).spawn().unwrap();
        let pid = c.id().unwrap() as i32;
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        println!("{}", timeout(Duration::from_millis(100), c.wait()).await.is_err());
        println!("{}", c.try_wait().unwrap().is_none());
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::kill(pid, libc::SIGCONT) };
        println!("{}", timeout(Duration::from_millis(100), c.wait()).await.is_err());
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        show("kill", timeout(Duration::from_secs(2), c.kill()).await.unwrap());
        println!("{}", w(&mut c).await);
    });
}

fn a_child_reaped_by_someone_else_is_echild() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sh("exit 3").spawn().unwrap();
        let pid = c.id().unwrap();
        // SAFETY: a null pointer for the status is allowed.
        let r = unsafe { libc::waitpid(pid as i32, std::ptr::null_mut(), 0) };
        println!("{}", r == pid as i32);
        println!("{}", w(&mut c).await);
        println!("{}", w(&mut c).await);
        show("try_wait", c.try_wait().map(|_| ()));
        println!("{}", c.id() == Some(pid));
    });
}

fn an_ignored_sigchld_makes_wait_fail_with_echild() {
    let rt = runtime(2);
    rt.block_on(async {
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        let mut c = sh("read x; exit 3").stdin(Stdio::piped()).spawn().unwrap();
        println!("{}", w(&mut c).await);
        println!("{}", c.id().is_some());
        show("try_wait", c.try_wait().map(|_| ()));
        let mut c = sleeper().spawn().unwrap();
        show("start_kill", c.start_kill());
        println!("{}", w(&mut c).await);
        show("start_kill", c.start_kill());
    });
}

fn a_blocked_sigchld_does_not_matter() {
    // SAFETY: the pointers are to a local that outlives the calls, and the old mask may be null; a
    // set of zeros is valid.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
    let rt = runtime(1);
    rt.block_on(async {
        println!("{}", st(sh("exit 3").status().await));
        println!("{}", st(sh("exit 4").output().await.map(|o| o.status)));
    });
}

static SEEN: AtomicUsize = AtomicUsize::new(0);
extern "C" fn on_child(_: libc::c_int) {
    SEEN.fetch_add(1, Ordering::SeqCst);
}

fn a_users_sigchld_handler_is_called_too() {
    // SAFETY: the handler has the right signature and only increments an atomic, which is
    // async-signal-safe.
    unsafe { libc::signal(libc::SIGCHLD, on_child as *const () as usize) };
    let rt = runtime(0);
    rt.block_on(async {
        println!("{}", st(sh("exit 3").status().await));
        println!("{}", until_async(|| SEEN.load(Ordering::SeqCst) == 1).await);
        // A dropped child makes Tokio listen for SIGCHLD as well.
        let c = sh("exit 5").spawn().unwrap();
        let pid = c.id().unwrap();
        drop(c);
        println!("{}", until_async(|| state(pid) == "gone").await);
        println!("{}", until_async(|| SEEN.load(Ordering::SeqCst) == 2).await);
        println!("{}", st(sh("exit 6").status().await));
        println!("{}", until_async(|| SEEN.load(Ordering::SeqCst) == 3).await);
    });
}

fn a_sigchld_listener_and_wait_work_together() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut s = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child()).unwrap();
        let mut c = sh("exit 3").spawn().unwrap();
        let (a, b) = tokio::join!(timeout(Duration::from_secs(2), s.recv()), w(&mut c));
        println!("{a:?} {b}");
        println!("{}", st(sh("exit 4").status().await));
        println!("{:?}", timeout(Duration::from_secs(2), s.recv()).await);
    });
}

fn wait_under_a_paused_clock_times_out_at_once() {
    let rt = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    rt.block_on(async {
        let mut c = sleeper().kill_on_drop(true).spawn().unwrap();
        let t = tokio::time::Instant::now();
        println!("{}", timeout(Duration::from_secs(3600), c.wait()).await.is_err());
        println!("{:?}", t.elapsed());
        c.start_kill().unwrap();
        println!("{}", st(c.wait().await));
    });
}

fn fifty_children_at_once() {
    let rt = runtime(4);
    rt.block_on(async {
        let v: Vec<_> = (0..50).map(|i| sh(&format!("exit {i}")).status()).collect();
        let s: i32 = futures_util::future::join_all(v)
            .await
            .into_iter()
            .map(|r| r.unwrap().code().unwrap())
            .sum();
        println!("{s}");
    });
}

fn waits_in_tasks_of_one_child_moved_between_them() {
    let rt = runtime(4);
    rt.block_on(async {
        let mut c = sleeper().spawn().unwrap();
        for _ in 0..3 {
            c = tokio::spawn(async move {
                println!("{}", timeout(Duration::from_millis(10), c.wait()).await.is_err());
                c
            })
            .await
            .unwrap();
        }
        c.start_kill().unwrap();
        println!("{}", tokio::spawn(async move { w(&mut c).await }).await.unwrap());
    });
}

fn kill_on_drop_kills_and_reaps() {
    for n in [0, 1, 2] {
        let rt = runtime(n);
        rt.block_on(async {
            let c = sleeper().kill_on_drop(true).spawn().unwrap();
            let pid = c.id().unwrap();
            println!("{}", state(pid));
            drop(c);
            println!("{}", until_async(|| state(pid) == "gone").await);
        });
    }
}

fn without_kill_on_drop_the_child_goes_on() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sh("read x; echo > done").stdin(Stdio::piped()).spawn().unwrap();
        let pid = c.id().unwrap();
        let stdin = c.stdin.take();
        drop(c);
        println!("{}", state(pid));
        drop(stdin);
        println!("{}", until_async(|| Path::new("done").exists()).await);
        println!("{}", until_async(|| state(pid) == "gone").await);
    });
}

fn a_dropped_output_future_with_kill_on_drop_kills() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = sh("echo $$ > pid; exec sleep 100");
        c.kill_on_drop(true);
        let written = || std::fs::read_to_string("pid").is_ok_and(|s| s.ends_with('\n'));
        tokio::select! {
            _ = c.output() => println!("output"),
            r = until_async(written) => println!("{r}"),
        }
        let pid: u32 = std::fs::read_to_string("pid").unwrap().trim().parse().unwrap();
        println!("{}", until_async(|| state(pid) == "gone").await);
    });
}

fn a_dropped_status_future_without_kill_on_drop_leaves_the_child() {
    let rt = runtime(0);
    rt.block_on(async {
        drop(sh("sleep 0.2; echo > done").status());
        println!("{}", until_async(|| Path::new("done").exists()).await);
    });
}

fn dropping_the_runtime_kills_the_children_of_its_tasks() {
    let rt = runtime(2);
    let (tx, rx) = mpsc::channel();
    rt.spawn(async move {
        let mut c = sleeper().kill_on_drop(true).spawn().unwrap();
        tx.send(c.id().unwrap()).unwrap();
        c.wait().await
    });
    let pid = rx.recv().unwrap();
    println!("{}", state(pid));
    drop(rt);
    println!("{}", until(|| state(pid) != "alive"));
}

fn aborting_a_task_kills_its_child() {
    let rt = runtime(1);
    rt.block_on(async {
        let (tx, rx) = tokio::sync::oneshot::channel();
        let j = tokio::spawn(async move {
            let mut c = sleeper().kill_on_drop(true).spawn().unwrap();
            tx.send(c.id().unwrap()).unwrap();
            c.wait().await
        });
        let pid = rx.await.unwrap();
        j.abort();
        println!("{}", j.await.unwrap_err().is_cancelled());
        println!("{}", until_async(|| state(pid) == "gone").await);
    });
}

fn kill_on_drop_does_not_reach_grandchildren() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = sh("sleep 100 > /dev/null 2>&1 & echo $!; wait")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut b = [0; 20];
        let n = c.stdout.as_mut().unwrap().read(&mut b).await.unwrap();
        let g: u32 = std::str::from_utf8(&b[..n]).unwrap().trim().parse().unwrap();
        let pid = c.id().unwrap();
        drop(c);
        println!("{}", until_async(|| state(pid) == "gone").await);
        println!("{}", state(g));
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::kill(g as i32, libc::SIGKILL) };
    });
}

fn an_exited_child_is_reaped_by_its_drop() {
    let rt = runtime(1);
    rt.block_on(async {
        let c = sh("exit 1").spawn().unwrap();
        let pid = c.id().unwrap();
        println!("{}", until(|| is_zombie(pid)));
        drop(c);
        println!("{}", state(pid));
        let c = sh("exit 1").kill_on_drop(true).spawn().unwrap();
        let pid = c.id().unwrap();
        println!("{}", until(|| is_zombie(pid)));
        drop(c);
        println!("{}", state(pid));
    });
}

fn dropped_children_are_reaped_when_they_exit() {
    for n in [0, 1, 4] {
        let rt = runtime(n);
        rt.block_on(async {
            let pids: Vec<u32> = (0..10)
                .map(|_| {
                    let mut c = sh("read x; exit 1").stdin(Stdio::piped()).spawn().unwrap();
                    drop(c.stdin.take());
                    c.id().unwrap()
                })
                .collect();
            println!("{}", until_async(|| pids.iter().all(|p| state(*p) == "gone")).await);
        });
    }
}

fn a_hundred_detached_children_leave_no_descriptors() {
    let rt = runtime(2);
    rt.block_on(async {
        let _ = Command::new("/bin/true").status().await;
        drop(Command::new("/bin/true").spawn());
        sleep(Duration::from_millis(20)).await;
        let before = open_fds();
        let mut pids = Vec::new();
        for _ in 0..100 {
            let c = Command::new("/bin/true")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            pids.push(c.id().unwrap());
        }
        println!("{}", until_async(|| pids.iter().all(|p| state(*p) == "gone")).await);
        println!("{}", open_fds() as i64 - before as i64);
        // SAFETY: a null pointer for the status is allowed.
        let r = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
        println!("{r} {:?}", io::Error::last_os_error().raw_os_error());
    });
}

fn fifty_awaited_children_leave_no_descriptors() {
    let rt = runtime(0);
    rt.block_on(async {
        let _ = sh("true").output().await;
        let before = open_fds();
        for _ in 0..50 {
            Command::new("/bin/true").output().await.unwrap();
        }
        println!("{}", open_fds() as i64 - before as i64);
        // SAFETY: a null pointer for the status is allowed.
        let r = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
        println!("{r} {:?}", io::Error::last_os_error().raw_os_error());
    });
}

fn a_reaped_child_frees_its_descriptors_only_at_the_drop_or_wait() {
    let rt = runtime(1);
    rt.block_on(async {
        let _ = sh("true").output().await;
        let before = open_fds();
        let mut c = sleeper().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Two pipes and the pidfd.
        println!("{}", open_fds() - before);
        c.kill().await.unwrap();
        println!("{}", open_fds() - before);
        drop(c.stdout.take());
        println!("{}", open_fds() - before);
        drop(c);
        println!("{}", open_fds() - before);
    });
}

fn a_child_outlives_its_runtime_and_is_awaited_on_another() {
    let a = runtime(0);
    let mut c = a.block_on(async { sh("read x; exit 3").stdin(Stdio::piped()).spawn().unwrap() });
    drop(a);
    println!("{}", c.try_wait().unwrap().is_none());
    let b = runtime(2);
    println!("{}", b.block_on(w(&mut c)));
}

fn a_child_that_exited_before_is_awaited_on_another_runtime() {
    let a = runtime(1);
    let mut c = a.block_on(async { sh("exit 3").spawn().unwrap() });
    let pid = c.id().unwrap();
    println!("{}", until(|| is_zombie(pid)));
    drop(a);
    let b = runtime(0);
    println!("{}", b.block_on(w(&mut c)));
}

fn a_child_of_a_running_runtime_is_awaited_on_another() {
    let a = runtime(2);
    let mut c = {
        let _g = a.enter();
        sh("sleep 0.1; exit 3").spawn().unwrap()
    };
    let b = runtime(0);
    println!("{}", b.block_on(w(&mut c)));
}

fn try_wait_and_start_kill_work_without_a_runtime() {
    let a = runtime(1);
    let mut c = {
        let _g = a.enter();
        sleeper().spawn().unwrap()
    };
    drop(a);
    println!("{}", c.try_wait().unwrap().is_none());
    show("start_kill", c.start_kill());
    println!("{}", until(|| c.try_wait().unwrap().is_some()));
    println!("{}", st(c.try_wait().map(|s| s.unwrap())));
    println!("{:?}", c.id());
    println!("{:?}", c.wait().now_or_never().map(st));
}

fn a_pending_wait_polled_outside_of_a_runtime() {
    let a = runtime(0);
    let mut c = {
        let _g = a.enter();
        sleeper().kill_on_drop(true).spawn().unwrap()
    };
    println!("{}", c.wait().now_or_never().is_none());
    drop(a);
    panics("after the runtime", || c.wait().now_or_never().is_some());
}

fn pipes_of_a_dropped_runtime_fail() {
    let a = runtime(1);
    let mut c = {
        let _g = a.enter();
        Command::new("/bin/cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    drop(a);
    let b = runtime(0);
    b.block_on(async {
        text(
            "read",
            timeout(Duration::from_secs(1), c.stdout.as_mut().unwrap().read(&mut [0; 4]))
                .await
                .unwrap(),
        );
        text(
            "write",
            timeout(Duration::from_secs(1), c.stdin.as_mut().unwrap().write(b"x")).await.unwrap(),
        );
        show("flush", c.stdin.as_mut().unwrap().flush().await);
    });
}

fn the_orphans_of_a_dropped_runtime_are_reaped_by_another() {
    let a = runtime(1);
    let pid = {
        let _g = a.enter();
        let c = sh("sleep 0.1; exit 3").spawn().unwrap();
        c.id().unwrap()
    };
    drop(a);
    let b = runtime(0);
    b.block_on(async {
        println!("{}", until_async(|| state(pid) == "gone").await);
    });
}

fn the_debug_of_an_exit_status_and_equality() {
    let rt = runtime(2);
    rt.block_on(async {
        let a = sh("exit 1").status().await.unwrap();
        let b = std::process::Command::new("/bin/sh").args(["-c", "exit 1"]).status().unwrap();
        println!("{} {:?} {}", a == b, a.code(), a.into_raw());
    });
}
