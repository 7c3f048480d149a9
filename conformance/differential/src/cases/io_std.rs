//! Standard input, output and error.

use crate::probe::{sockets::*, *};
use futures_util::future::FutureExt;
use std::io::{self, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Makes `fd` descriptor 0.
// SAFETY: the call takes numbers and no memory.
fn as_stdin(fd: OwnedFd) {
    unsafe { libc::dup2(fd.as_raw_fd(), 0) };
}

/// Creates a pipe, makes its reading end descriptor 0, and returns its writing end.
fn stdin_pipe() -> std::fs::File {
    let mut f = [0; 2];
    // SAFETY: what the pointers lead to is valid for the call.
    unsafe { libc::pipe2(f.as_mut_ptr(), libc::O_CLOEXEC) };
    as_stdin(unsafe { OwnedFd::from_raw_fd(f[0]) });
    // SAFETY: the descriptor is open and has no other owner.
    unsafe { std::fs::File::from_raw_fd(f[1]) }
}

fn stdin_of_dev_null_is_at_its_end() {
    as_stdin(devnull());
    current_thread().block_on(async {
        let mut i = tokio::io::stdin();
        println!("{} {}", shown(&i.read(&mut [0; 4]).await), shown(&i.read(&mut [0; 4]).await));
        let mut t = String::new();
        println!("{}", shown(&tokio::io::stdin().read_to_string(&mut t).await));
    });
}

fn stdin_of_a_pipe_reads_to_its_end() {
    let mut w = stdin_pipe();
    std::io::Write::write_all(&mut w, b"one\ntwo\nthree").unwrap();
    drop(w);
    multi_thread(1).block_on(async {
        let mut l = tokio::io::BufReader::new(tokio::io::stdin()).lines();
        while let Some(x) = l.next_line().await.unwrap() {
            println!("{x}");
        }
    });
}

fn stdin_closed_descriptor_reads_as_the_end() {
    let rt = current_thread();
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::close(0) };
    rt.block_on(async {
        println!("{}", shown(&tokio::io::stdin().read(&mut [0; 4]).await));
    });
}

fn stdin_of_a_directory_is_an_error() {
    as_stdin(std::fs::File::open(".").unwrap().into());
    current_thread().block_on(async {
        println!("{}", shown(&tokio::io::stdin().read(&mut [0; 4]).await));
    });
}

fn stdin_write_only_descriptor() {
    as_stdin(std::fs::File::create("w").unwrap().into());
    current_thread().block_on(async {
        println!("{}", shown(&tokio::io::stdin().read(&mut [0; 4]).await));
    });
}

fn stdin_cancelled_read_keeps_the_bytes_for_the_next() {
    let mut w = stdin_pipe();
    multi_thread(1).block_on(async {
        let mut i = tokio::io::stdin();
        println!("{}", stuck(i.read(&mut [0; 8])).await);
        std::io::Write::write_all(&mut w, b"kept").unwrap();
        let mut x = [0; 8];
        println!("{} {}", shown(&i.read(&mut x).await), lossy(&x[..4]));
        drop(w);
        println!("{}", shown(&i.read(&mut x).await));
    });
}

fn stdin_cancelled_long_read_then_short_reads() {
    let mut w = stdin_pipe();
    multi_thread(1).block_on(async {
        let mut i = tokio::io::stdin();
        println!("{}", stuck(i.read(&mut [0; 64])).await);
        std::io::Write::write_all(&mut w, b"abcdef").unwrap();
        drop(w);
        let mut x = [0; 2];
        for _ in 0..4 {
            println!("{} {}", shown(&i.read(&mut x).await), lossy(&x));
        }
    });
}

fn stdin_pending_read_does_not_stop_background_shutdown() {
    let _w = stdin_pipe();
    let rt = current_thread();
    println!("{}", rt.block_on(stuck(async { tokio::io::stdin().read(&mut [0; 4]).await })));
    rt.shutdown_timeout(millis(20));
    println!("down");
}

fn stdin_zero_length_read() {
    let mut w = stdin_pipe();
    std::io::Write::write_all(&mut w, b"x").unwrap();
    current_thread().block_on(async {
        let mut i = tokio::io::stdin();
        println!("{}", shown(&i.read(&mut []).await));
        println!("{}", shown(&i.read(&mut [0; 3]).await));
    });
}

fn stdin_of_a_file_reads_from_its_offset() {
    std::fs::write("f", b"0123456789").unwrap();
    let mut f = std::fs::File::open("f").unwrap();
    std::io::Seek::seek(&mut f, SeekFrom::Start(7)).unwrap();
    as_stdin(f.into());
    current_thread().block_on(async {
        let mut v = vec![];
        println!("{} {}", shown(&tokio::io::stdin().read_to_end(&mut v).await), lossy(&v));
    });
}

fn stdin_without_a_runtime_panics_when_read() {
    let mut i = tokio::io::stdin();
    println!(
        "{}",
        panics(|| {
            let _ = i.read(&mut [0; 1]).now_or_never();
        })
    );
}

fn stdout_writes_are_in_order() {
    multi_thread(2).block_on(async {
        let mut o = tokio::io::stdout();
        for i in 0..20 {
            o.write_all(format!("line {i}\n").as_bytes()).await.unwrap();
        }
        println_flush(o.flush().await);
    });
    println!("after");
}

fn println_flush(x: io::Result<()>) {
    println!("flush {}", outcome(&x));
}

fn stdout_write_returns_before_flush_and_nothing_is_lost_at_drop_of_the_runtime() {
    // tokio-rs/tokio#8506: the last write is mandatory
    let rt = current_thread();
    rt.block_on(async {
        let mut o = tokio::io::stdout();
        o.write_all(b"written without flush\n").await.unwrap();
    });
    drop(rt);
    println!("end");
}

fn stdout_utf8_and_binary() {
    current_thread().block_on(async {
        let mut o = tokio::io::stdout();
        let n = o.write("é€😀\n".as_bytes()).await;
        o.flush().await.unwrap();
        println!("{}", shown(&n));
        o.write_all(&"ab".repeat(60).into_bytes()).await.unwrap();
        o.write_all(b"\n").await.unwrap();
        o.flush().await.unwrap();
        println!("{} {}", outcome(&o.shutdown().await), o.is_write_vectored());
        o.write_all(b"after shutdown\n").await.unwrap();
        o.flush().await.unwrap();
    });
}

fn stderr_to_dev_full_and_closed() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    // SAFETY: the call takes numbers and no memory.
    let keep = unsafe { libc::dup(2) };
    unsafe { libc::dup2(full.as_raw_fd(), 2) };
    current_thread().block_on(async {
        let mut o = tokio::io::stderr();
        println!("{}", shown(&o.write(b"x").await));
        println!("{}", shown(&o.flush().await));
        println!("{}", shown(&o.flush().await));
        println!("{}", shown(&o.write(b"y").await));
        println!("{}", shown(&o.write(b"z").await));
    });
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::dup2(keep, 2) };
}

fn stderr_to_a_broken_pipe() {
    let mut f = [0; 2];
    // SAFETY: what the pointers lead to is valid for the call.
    unsafe { libc::pipe2(f.as_mut_ptr(), libc::O_CLOEXEC) };
    let keep = unsafe { libc::dup(2) };
    // SAFETY: the call takes numbers and no memory.
    unsafe {
        libc::dup2(f[1], 2);
        libc::close(f[0]);
        libc::close(f[1]);
    }
    current_thread().block_on(async {
        let mut o = tokio::io::stderr();
        println!("{} {}", shown(&o.write(b"x").await), shown(&o.flush().await));
    });
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::dup2(keep, 2) };
}

pub const CASES: &[(&str, fn())] = &[
    ("stdin_of_dev_null_is_at_its_end", stdin_of_dev_null_is_at_its_end),
    ("stdin_of_a_pipe_reads_to_its_end", stdin_of_a_pipe_reads_to_its_end),
    ("stdin_closed_descriptor_reads_as_the_end", stdin_closed_descriptor_reads_as_the_end),
    ("stdin_of_a_directory_is_an_error", stdin_of_a_directory_is_an_error),
    ("stdin_write_only_descriptor", stdin_write_only_descriptor),
    (
        "stdin_cancelled_read_keeps_the_bytes_for_the_next",
        stdin_cancelled_read_keeps_the_bytes_for_the_next,
    ),
    ("stdin_cancelled_long_read_then_short_reads", stdin_cancelled_long_read_then_short_reads),
    (
        "stdin_pending_read_does_not_stop_background_shutdown",
        stdin_pending_read_does_not_stop_background_shutdown,
    ),
    ("stdin_zero_length_read", stdin_zero_length_read),
    ("stdin_of_a_file_reads_from_its_offset", stdin_of_a_file_reads_from_its_offset),
    ("stdin_without_a_runtime_panics_when_read", stdin_without_a_runtime_panics_when_read),
    ("stdout_writes_are_in_order", stdout_writes_are_in_order),
    (
        "stdout_write_returns_before_flush_and_nothing_is_lost_at_drop_of_the_runtime",
        stdout_write_returns_before_flush_and_nothing_is_lost_at_drop_of_the_runtime,
    ),
    ("stdout_utf8_and_binary", stdout_utf8_and_binary),
    ("stderr_to_dev_full_and_closed", stderr_to_dev_full_and_closed),
    ("stderr_to_a_broken_pipe", stderr_to_a_broken_pipe),
];
