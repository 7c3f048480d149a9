//! Standard streams of child processes.

use crate::probe::files::*;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

pub const CASES: &[(&str, fn())] = &[
    ("handles_exist_only_for_piped_streams", handles_exist_only_for_piped_streams),
    ("inherited_stdout_is_ours", inherited_stdout_is_ours),
    ("output_inherits_stdin", output_inherits_stdin),
    ("null_streams", null_streams),
    ("dropping_stdin_is_the_end_of_file", dropping_stdin_is_the_end_of_file),
    ("shutdown_of_stdin_does_not_close_it", shutdown_of_stdin_does_not_close_it),
    ("writing_to_an_exited_child_is_a_broken_pipe", writing_to_an_exited_child_is_a_broken_pipe),
    (
        "a_write_blocked_on_a_full_pipe_fails_when_the_child_dies",
        a_write_blocked_on_a_full_pipe_fails_when_the_child_dies,
    ),
    ("a_pipe_takes_64_kib_without_a_reader", a_pipe_takes_64_kib_without_a_reader),
    ("a_megabyte_through_cat", a_megabyte_through_cat),
    ("stdout_keeps_its_data_after_the_exit", stdout_keeps_its_data_after_the_exit),
    ("a_child_that_closes_stdout_early", a_child_that_closes_stdout_early),
    ("dropping_stdout_gives_the_child_sigpipe", dropping_stdout_gives_the_child_sigpipe),
    ("lines_of_a_child", lines_of_a_child),
    ("a_dialogue_with_a_child", a_dialogue_with_a_child),
    ("pipe_ends_are_nonblocking_and_close_on_exec", pipe_ends_are_nonblocking_and_close_on_exec),
    ("the_childs_ends_are_blocking", the_childs_ends_are_blocking),
    ("into_owned_fd_makes_them_blocking_again", into_owned_fd_makes_them_blocking_again),
    ("a_pipeline_by_stdout_into_stdio", a_pipeline_by_stdout_into_stdio),
    ("a_pipeline_by_stdin_into_stdio_and_stderr", a_pipeline_by_stdin_into_stdio_and_stderr),
    ("handles_from_std", handles_from_std),
    ("handles_from_std_outside_of_a_runtime_panic", handles_from_std_outside_of_a_runtime_panic),
    ("a_file_as_stdin_and_stdout", a_file_as_stdin_and_stdout),
    ("output_overrides_other_settings_of_stdout", output_overrides_other_settings_of_stdout),
    ("is_write_vectored_and_vectored_writes", is_write_vectored_and_vectored_writes),
    ("a_cancelled_read_of_stdout_loses_nothing", a_cancelled_read_of_stdout_loses_nothing),
    ("an_empty_read_and_an_empty_write", an_empty_read_and_an_empty_write),
    (
        "a_grandchild_keeps_stdout_open_after_the_wait",
        a_grandchild_keeps_stdout_open_after_the_wait,
    ),
    ("two_children_write_into_one_pipe", two_children_write_into_one_pipe),
];

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

fn sh(script: &str) -> Command {
    let mut c = Command::new("/bin/sh");
    c.arg("-c").arg(script);
    c
}

fn cat() -> Command {
    let mut c = Command::new("/bin/cat");
    c.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
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

fn nonblock(fd: RawFd) -> bool {
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK != 0 }
}

fn handles_exist_only_for_piped_streams() {
    let rt = runtime(0);
    rt.block_on(async {
        for (i, s) in [Stdio::piped, Stdio::null, Stdio::inherit].into_iter().enumerate() {
            let mut c = sh("exit 0").stdin(s()).stdout(s()).stderr(s()).spawn().unwrap();
            println!("{i}: {} {} {}", c.stdin.is_some(), c.stdout.is_some(), c.stderr.is_some());
            w(&mut c).await;
        }
        let mut c = sh("exit 0").spawn().unwrap();
        println!("default: {} {} {}", c.stdin.is_some(), c.stdout.is_some(), c.stderr.is_some());
        w(&mut c).await;
    });
}

fn inherited_stdout_is_ours() {
    let rt = runtime(1);
    rt.block_on(async {
        println!("before");
        println!("{}", st(sh("echo from the child").status().await));
        println!("{}", st(sh("echo explicitly").stdout(Stdio::inherit()).status().await));
        println!("{}", st(sh("echo to nowhere").stdout(Stdio::null()).status().await));
    });
}

fn output_inherits_stdin() {
    let rt = runtime(2);
    rt.block_on(async {
        std::fs::write("f", "the input").unwrap();
        let f = std::fs::File::open("f").unwrap();
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::dup2(f.as_raw_fd(), 0) };
        let o = Command::new("/bin/cat").output().await.unwrap();
        println!("{:?}", String::from_utf8_lossy(&o.stdout));
        let o = Command::new("/bin/cat").stdin(Stdio::null()).output().await.unwrap();
        println!("{:?}", String::from_utf8_lossy(&o.stdout));
    });
}

fn null_streams() {
    let rt = runtime(0);
    rt.block_on(async {
        let o = Command::new("/bin/cat").stdin(Stdio::null()).output().await.unwrap();
        println!("{} {:?}", o.stdout.len(), o.status.code());
        println!("{}", st(sh("head -c 1000000 /dev/zero").stdout(Stdio::null()).status().await));
        println!("{}", st(sh("[ -c /dev/stdin ]").stdin(Stdio::null()).status().await));
    });
}

fn dropping_stdin_is_the_end_of_file() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = cat().spawn().unwrap();
        let mut i = c.stdin.take().unwrap();
        let mut o = c.stdout.take().unwrap();
        i.write_all(b"hello").await.unwrap();
        let mut b = [0; 10];
        show("read", o.read(&mut b).await);
        println!("{}", timeout(Duration::from_millis(50), o.read(&mut b)).await.is_err());
        drop(i);
        show("end", o.read(&mut b).await);
        println!("{}", w(&mut c).await);
    });
}

fn shutdown_of_stdin_does_not_close_it() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = cat().spawn().unwrap();
        let mut i = c.stdin.take().unwrap();
        let mut o = c.stdout.take().unwrap();
        show("shutdown", i.shutdown().await);
        println!("{}", timeout(Duration::from_millis(50), o.read(&mut [0; 4])).await.is_err());
        show("write", i.write(b"abc").await);
        show("flush", i.flush().await);
        show("read", o.read(&mut [0; 4]).await);
        drop(i);
        println!("{}", w(&mut c).await);
    });
}

fn writing_to_an_exited_child_is_a_broken_pipe() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = sh("exit 0").stdin(Stdio::piped()).spawn().unwrap();
        let mut i = c.stdin.take().unwrap();
        println!("{}", w(&mut c).await);
        show("write", i.write(b"abc").await);
        show("write", i.write(b"abc").await);
        show("write_all", i.write_all(b"abc").await);
        show("vectored", i.write_vectored(&[IoSlice::new(b"a")]).await);
        show("flush", i.flush().await);
        show("shutdown", i.shutdown().await);
        show("empty", i.write(b"").await);
    });
}

fn a_write_blocked_on_a_full_pipe_fails_when_the_child_dies() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = Command::new("/bin/sleep").arg("100").stdin(Stdio::piped()).spawn().unwrap();
        let mut i = c.stdin.take().unwrap();
        let j = tokio::spawn(async move { i.write_all(&vec![0; 1 << 20]).await });
        sleep(Duration::from_millis(50)).await;
        println!("{}", j.is_finished());
        c.kill().await.unwrap();
        show("write_all", timeout(Duration::from_secs(2), j).await.unwrap().unwrap());
    });
}

fn a_pipe_takes_64_kib_without_a_reader() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = Command::new("/bin/sleep")
            .arg("100")
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut i = c.stdin.take().unwrap();
        show("write", i.write(&vec![0; 1 << 20]).await);
        println!("{}", timeout(Duration::from_millis(50), i.write(&[0; 1])).await.is_err());
    });
}

fn a_megabyte_through_cat() {
    for n in [0, 1, 4] {
        let rt = runtime(n);
        rt.block_on(async {
            let mut c = cat().spawn().unwrap();
            let mut i = c.stdin.take().unwrap();
            let mut o = c.stdout.take().unwrap();
            let mut v = Vec::new();
            let (a, b) = tokio::join!(
                async move {
                    let r = i.write_all(&pattern(1 << 20)).await;
                    drop(i);
                    r
                },
                o.read_to_end(&mut v)
            );
            println!("{:?} {:?} {}", a.is_ok(), b.unwrap(), v == pattern(1 << 20));
            println!("{}", w(&mut c).await);
        });
    }
}

fn stdout_keeps_its_data_after_the_exit() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sh("echo one; echo two >&2; exit 3")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        println!("{}", w(&mut c).await);
        let mut s = String::new();
        show("out", c.stdout.as_mut().unwrap().read_to_string(&mut s).await);
        show("err", c.stderr.as_mut().unwrap().read_to_string(&mut s).await);
        println!("{s:?}");
        show("end", c.stdout.as_mut().unwrap().read(&mut [0; 4]).await);
    });
}

fn a_child_that_closes_stdout_early() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = sh("echo x; exec >&-; read y; exit 4")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut s = String::new();
        show("read", c.stdout.as_mut().unwrap().read_to_string(&mut s).await);
        println!("{}", c.try_wait().unwrap().is_none());
        println!("{}", w(&mut c).await);
    });
}

fn dropping_stdout_gives_the_child_sigpipe() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = Command::new("/usr/bin/yes").stdout(Stdio::piped()).spawn().unwrap();
        let mut b = [0; 4];
        c.stdout.as_mut().unwrap().read_exact(&mut b).await.unwrap();
        drop(c.stdout.take());
        println!("{}", w(&mut c).await);
    });
}

fn lines_of_a_child() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sh("for i in 1 2 3; do echo line $i; done; printf last")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut l = BufReader::new(c.stdout.take().unwrap()).lines();
        while let Some(x) = l.next_line().await.unwrap() {
            println!("{x}");
        }
        println!("{}", w(&mut c).await);
    });
}

fn a_dialogue_with_a_child() {
    for n in [0, 2] {
        let rt = runtime(n);
        rt.block_on(async {
            let mut c = sh("while read x; do echo \"got $x\"; done; echo bye")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut i = c.stdin.take().unwrap();
            let mut l = BufReader::new(c.stdout.take().unwrap()).lines();
            for k in 0..3 {
                i.write_all(format!("{k}\n").as_bytes()).await.unwrap();
                println!("{:?}", l.next_line().await.unwrap());
            }
            drop(i);
            println!("{:?} {:?}", l.next_line().await.unwrap(), l.next_line().await.unwrap());
            println!("{}", w(&mut c).await);
        });
    }
}

fn pipe_ends_are_nonblocking_and_close_on_exec() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = cat().stderr(Stdio::piped()).spawn().unwrap();
        for fd in [
            c.stdin.as_ref().unwrap().as_raw_fd(),
            c.stdout.as_ref().unwrap().as_raw_fd(),
            c.stderr.as_ref().unwrap().as_fd().as_raw_fd(),
        ] {
            // SAFETY: the call takes numbers and no memory.
            println!(
                "{} {}",
                nonblock(fd),
                unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC
            );
        }
        println!("{}", w(&mut c).await);
    });
}

fn the_childs_ends_are_blocking() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = sh("grep flags: /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut s = String::new();
        c.stdout.as_mut().unwrap().read_to_string(&mut s).await.unwrap();
        for l in s.lines() {
            let f = u32::from_str_radix(l.rsplit('\t').next().unwrap(), 8).unwrap();
            println!("nonblock {}", f & libc::O_NONBLOCK as u32);
        }
        println!("{}", w(&mut c).await);
    });
}

fn into_owned_fd_makes_them_blocking_again() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = cat().spawn().unwrap();
        let i = c.stdin.take().unwrap().into_owned_fd().unwrap();
        let o = c.stdout.take().unwrap().into_owned_fd().unwrap();
        println!("{} {}", nonblock(i.as_raw_fd()), nonblock(o.as_raw_fd()));
        let mut i = std::fs::File::from(i);
        let mut o = std::fs::File::from(o);
        i.write_all(b"by std").unwrap();
        drop(i);
        let mut s = String::new();
        o.read_to_string(&mut s).unwrap();
        println!("{s}");
        println!("{}", w(&mut c).await);
    });
}

fn a_pipeline_by_stdout_into_stdio() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut a = sh("echo hello; echo world").stdout(Stdio::piped()).spawn().unwrap();
        let s: Stdio = a.stdout.take().unwrap().try_into().unwrap();
        let mut b = Command::new("/usr/bin/tr")
            .args(["a-z", "A-Z"])
            .stdin(s)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let s: Stdio = b.stdout.take().unwrap().try_into().unwrap();
        let o = Command::new("/usr/bin/sort").arg("-r").stdin(s).output().await.unwrap();
        println!("{:?}", String::from_utf8_lossy(&o.stdout));
        println!("{} {}", w(&mut a).await, w(&mut b).await);
    });
}

fn a_pipeline_by_stdin_into_stdio_and_stderr() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut b = cat().spawn().unwrap();
        let s: Stdio = b.stdin.take().unwrap().try_into().unwrap();
        println!("{}", st(sh("echo through").stdout(s).status().await));
        let mut v = String::new();
        b.stdout.as_mut().unwrap().read_to_string(&mut v).await.unwrap();
        println!("{v:?}");
        let mut a = sh("echo oops >&2").stderr(Stdio::piped()).spawn().unwrap();
        let s: Stdio = a.stderr.take().unwrap().try_into().unwrap();
        let o = Command::new("/bin/cat").stdin(s).output().await.unwrap();
        println!("{:?}", String::from_utf8_lossy(&o.stdout));
        println!("{} {}", w(&mut a).await, w(&mut b).await);
    });
}

fn handles_from_std() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = std::process::Command::new("/bin/sh")
            .args(["-c", "cat; echo err >&2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut i = ChildStdin::from_std(c.stdin.take().unwrap()).unwrap();
        let mut o = ChildStdout::from_std(c.stdout.take().unwrap()).unwrap();
        let mut x = ChildStderr::from_std(c.stderr.take().unwrap()).unwrap();
        println!(
            "{} {} {}",
            nonblock(i.as_raw_fd()),
            nonblock(o.as_raw_fd()),
            nonblock(x.as_raw_fd())
        );
        i.write_all(b"abc").await.unwrap();
        drop(i);
        let mut s = String::new();
        o.read_to_string(&mut s).await.unwrap();
        x.read_to_string(&mut s).await.unwrap();
        println!("{s:?}");
        println!("{:?}", c.wait().unwrap().code());
    });
}

fn handles_from_std_outside_of_a_runtime_panic() {
    let mut c = std::process::Command::new("/bin/cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let i = c.stdin.take().unwrap();
    let o = c.stdout.take().unwrap();
    panics("stdin", || ChildStdin::from_std(i).map(|_| ()));
    panics("stdout", || ChildStdout::from_std(o).map(|_| ()));
    println!("{:?}", c.wait().unwrap().code());
}

fn a_file_as_stdin_and_stdout() {
    let rt = runtime(0);
    rt.block_on(async {
        std::fs::write("in", "b\na\n").unwrap();
        let i = std::fs::File::open("in").unwrap();
        let o = tokio::fs::File::create("out").await.unwrap().into_std().await;
        println!("{}", st(Command::new("/usr/bin/sort").stdin(i).stdout(o).status().await));
        println!("{:?}", std::fs::read_to_string("out"));
        let f = std::fs::File::create("both").unwrap();
        let g = f.try_clone().unwrap();
        println!("{}", st(sh("echo 1; echo 2 >&2; echo 3").stdout(f).stderr(g).status().await));
        println!("{:?}", std::fs::read_to_string("both"));
    });
}

fn output_overrides_other_settings_of_stdout() {
    let rt = runtime(1);
    rt.block_on(async {
        let o = sh("echo x; echo y >&2")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .await
            .unwrap();
        println!("{:?} {:?}", o.stdout, o.stderr);
    });
}

fn is_write_vectored_and_vectored_writes() {
    let rt = runtime(2);
    rt.block_on(async {
        use tokio::io::AsyncWrite;
        let mut c = cat().spawn().unwrap();
        let mut i = c.stdin.take().unwrap();
        println!("{}", i.is_write_vectored());
        show("write", i.write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")]).await);
        drop(i);
        let mut s = String::new();
        c.stdout.as_mut().unwrap().read_to_string(&mut s).await.unwrap();
        println!("{s}");
    });
}

fn a_cancelled_read_of_stdout_loses_nothing() {
    let rt = runtime(0);
    rt.block_on(async {
        let mut c = cat().spawn().unwrap();
        let mut o = c.stdout.take().unwrap();
        for _ in 0..3 {
            println!("{}", timeout(Duration::from_millis(10), o.read(&mut [0; 10])).await.is_err());
        }
        c.stdin.as_mut().unwrap().write_all(b"abc").await.unwrap();
        show("read", o.read(&mut [0; 10]).await);
        println!("{}", w(&mut c).await);
    });
}

fn an_empty_read_and_an_empty_write() {
    let rt = runtime(1);
    rt.block_on(async {
        let mut c = cat().spawn().unwrap();
        show(
            "write",
            timeout(Duration::from_secs(1), c.stdin.as_mut().unwrap().write(b"")).await.unwrap(),
        );
        c.stdin.as_mut().unwrap().write_all(b"x").await.unwrap();
        let mut o = c.stdout.take().unwrap();
        show("byte", o.read_u8().await);
        println!("{}", w(&mut c).await);
        show("end", o.read(&mut [0; 1]).await);
    });
}

fn a_grandchild_keeps_stdout_open_after_the_wait() {
    let rt = runtime(2);
    rt.block_on(async {
        let mut c = sh("(sleep 0.3; echo late) & exit 0").stdout(Stdio::piped()).spawn().unwrap();
        println!("{}", w(&mut c).await);
        let mut s = String::new();
        show("read", c.stdout.as_mut().unwrap().read_to_string(&mut s).await);
        println!("{s:?}");
    });
}

fn two_children_write_into_one_pipe() {
    let rt = runtime(0);
    rt.block_on(async {
        let (r, wr) = io::pipe().unwrap();
        let a = sh("echo a").stdout(wr.try_clone().unwrap()).status();
        println!("{}", st(a.await));
        println!("{}", st(sh("echo b").stdout(wr).status().await));
        let mut r = tokio::net::unix::pipe::Receiver::from_owned_fd(r.into()).unwrap();
        let mut s = String::new();
        show("read", timeout(Duration::from_secs(2), r.read_to_string(&mut s)).await.unwrap());
        println!("{s:?}");
    });
}
