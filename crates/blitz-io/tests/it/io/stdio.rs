//! Tests the standard streams, each in a process of its own.

use std::{
    io::{Read, Write},
    process::Stdio,
};

use blitz_io::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stderr, stdin, stdout,
};

use crate::support::{child, runtimes, watchdog};

#[test]
fn standard_input_is_copied_to_standard_output() {
    const NAME: &str = "io::stdio::standard_input_is_copied_to_standard_output";
    if child::role().is_some() {
        runtimes::workers(1).block_on(async {
            let mut lines = BufReader::new(stdin()).lines();
            let mut out = stdout();
            while let Some(line) = lines.next_line().await.unwrap() {
                out.write_all(format!("got {line}\n").as_bytes()).await.unwrap();
            }
            out.flush().await.unwrap();
            let mut err = stderr();
            err.write_all(b"at the end\n").await.unwrap();
            err.flush().await.unwrap();
        });
        return;
    }
    let _watch = watchdog::start();
    let mut command = child::command(NAME, "echo");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = child::start(&mut command).unwrap();
    process.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = process.wait_with_output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("got one\ngot two\n"), "{out}");
    assert!(err.contains("at the end\n"), "{err}");
}

/// The output is larger than one blocking job may hold, and larger than any pipe's buffer.
#[test]
fn a_large_output_is_whole_and_in_order() {
    const NAME: &str = "io::stdio::a_large_output_is_whole_and_in_order";
    const SIZE: usize = 5 * 1024 * 1024;
    let byte = |at: usize| b'a' + (at % 23) as u8;
    if child::role().is_some() {
        let all: Vec<u8> = (0..SIZE).map(byte).collect();
        runtimes::one_thread().block_on(async {
            let mut out = stdout();
            out.write_all(b"\nBEGIN\n").await.unwrap();
            out.write_all(&all).await.unwrap();
            // Not flushed: std flushes at exit, with the line that follows.
            out.write_all(b"\n").await.unwrap();
        });
        return;
    }
    let _watch = watchdog::start();
    let mut command = child::command(NAME, "writer");
    let mut process = child::start(command.stdout(Stdio::piped())).unwrap();
    let mut out = Vec::new();
    process.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    assert!(process.wait().unwrap().success());
    let begin = out.windows(7).position(|window| window == b"\nBEGIN\n").expect("it began") + 7;
    let large = &out[begin..begin + SIZE];
    assert!(large.iter().enumerate().all(|(at, found)| *found == byte(at)));
    assert_eq!(out[begin + SIZE], b'\n');
}

#[test]
fn a_standard_stream_needs_a_runtime() {
    let text = crate::support::caught_panic::panic_of(|| {
        crate::support::manual_poll::now(stdin().read(&mut [0]))
    })
    .message;
    assert!(text.contains("there is no reactor running"), "{text}");
}
