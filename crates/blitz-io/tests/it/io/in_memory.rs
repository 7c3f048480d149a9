//! `duplex`, `simplex`, `split`: streams without system calls.

use std::io::ErrorKind;

use blitz_io::io::{self as bio, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex, simplex};

use crate::{
    caught::panic_of,
    on::each,
    polled::{by_hand, now, waiting},
};

#[test]
fn bytes_pass_from_one_end_to_the_other() {
    let (mut a, mut b) = duplex(16);
    now(a.write_all(b"ping")).unwrap();
    now(b.write_all(b"pong")).unwrap();
    let mut four = [0; 4];
    now(b.read_exact(&mut four)).unwrap();
    assert_eq!(&four, b"ping");
    now(a.read_exact(&mut four)).unwrap();
    assert_eq!(&four, b"pong");
}

#[test]
fn a_full_pipe_waits_for_its_reader() {
    let (mut a, mut b) = duplex(4);
    assert_eq!(now(a.write(b"abcdef")).unwrap(), 4);
    let mut writing = waiting(a.write(b"ef"));
    assert_eq!(now(b.read_u8()).unwrap(), b'a');
    assert_eq!(writing.woken_and_ready().unwrap(), 1);
}

#[test]
fn an_empty_pipe_waits_for_its_writer() {
    let (mut a, mut b) = duplex(4);
    let mut reading = waiting(b.read_u8());
    now(a.write_all(b"x")).unwrap();
    assert_eq!(reading.woken_and_ready().unwrap(), b'x');
}

#[test]
fn a_dropped_end_is_an_end_for_readers_and_an_error_for_writers() {
    let (mut a, mut b) = duplex(4);
    now(a.write_all(b"ab")).unwrap();
    drop(a);
    let mut rest = Vec::new();
    now(b.read_to_end(&mut rest)).unwrap();
    assert_eq!(rest, b"ab", "what was written before is still there");
    assert_eq!(now(b.write(b"x")).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn dropping_an_end_wakes_the_waiter_at_the_other() {
    let (a, mut b) = duplex(4);
    let mut reading = waiting(b.read_u8());
    drop(a);
    assert_eq!(reading.woken_and_ready().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    let (mut a, b) = duplex(1);
    now(a.write_all(b"x")).unwrap();
    let mut writing = waiting(a.write_all(b"y"));
    drop(b);
    assert_eq!(writing.woken_and_ready().unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn shutdown_ends_one_way_only() {
    let (mut a, mut b) = duplex(8);
    now(a.shutdown()).unwrap();
    assert_eq!(now(b.read(&mut [0; 1])).unwrap(), 0);
    assert_eq!(now(a.write(b"x")).unwrap_err().kind(), ErrorKind::BrokenPipe);
    now(b.write_all(b"back")).unwrap();
    let mut four = [0; 4];
    now(a.read_exact(&mut four)).unwrap();
    assert_eq!(&four, b"back");
}

#[test]
fn a_read_or_write_that_is_dropped_takes_nothing() {
    let (mut a, mut b) = duplex(2);
    assert!(by_hand(b.read(&mut [0; 2])).poll().is_pending());
    now(a.write_all(b"ab")).unwrap();
    assert!(by_hand(a.write(b"c")).poll().is_pending());
    let mut all = [0; 2];
    assert_eq!(now(b.read(&mut all)).unwrap(), 2);
    assert_eq!(&all, b"ab");
    assert!(by_hand(b.read(&mut all)).poll().is_pending(), "the dropped write wrote nothing");
}

#[test]
fn vectors_are_written_as_one() {
    let (mut a, mut b) = duplex(5);
    assert!(a.is_write_vectored());
    let parts = [b"ab".as_slice(), b"", b"cdef"].map(std::io::IoSlice::new);
    assert_eq!(now(a.write_vectored(&parts)).unwrap(), 5);
    let mut five = [0; 5];
    now(b.read_exact(&mut five)).unwrap();
    assert_eq!(&five, b"abcde");
}

#[test]
fn simplex_goes_one_way() {
    let (mut reader, mut writer) = simplex(4);
    let mut reading = waiting(reader.read_u8());
    now(writer.write_all(b"abc")).unwrap();
    assert_eq!(reading.woken_and_ready().unwrap(), b'a');
    drop(reading);
    now(writer.shutdown()).unwrap();
    let mut rest = Vec::new();
    now(reader.read_to_end(&mut rest)).unwrap();
    assert_eq!(rest, b"bc");
}

#[test]
fn halves_work_at_once_on_two_tasks() {
    each(|| async {
        let (near, far) = duplex(7);
        let (mut near_read, mut near_write) = bio::split(near);
        let (mut far_read, mut far_write) = bio::split(far);
        let bytes: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
        let expected = bytes.clone();
        let writer = blitz_io::spawn(async move {
            near_write.write_all(&bytes).await.unwrap();
            near_write.shutdown().await.unwrap();
        });
        let echo = blitz_io::spawn(async move {
            let mut part = [0; 5];
            loop {
                let count = far_read.read(&mut part).await.unwrap();
                if count == 0 {
                    return far_write.shutdown().await.unwrap();
                }
                far_write.write_all(&part[..count]).await.unwrap();
            }
        });
        let mut got = Vec::new();
        near_read.read_to_end(&mut got).await.unwrap();
        assert!(got == expected);
        writer.await.unwrap();
        echo.await.unwrap();
    });
}

#[test]
fn halves_of_one_stream_know_each_other_and_become_it_again() {
    let (a, b) = duplex(4);
    let (a_read, mut a_write) = bio::split(a);
    let (b_read, b_write) = bio::split(b);
    assert!(a_read.is_pair_of(&a_write) && a_write.is_pair_of(&a_read));
    assert!(!a_read.is_pair_of(&b_write));
    now(a_write.write_all(b"x")).unwrap();
    let _a = a_read.unsplit(a_write);
    assert_eq!(now(b_read.unsplit(b_write).read_u8()).unwrap(), b'x');
}

#[test]
fn halves_of_two_streams_do_not_join() {
    let (a, b) = duplex(4);
    let (a_read, _a_write) = bio::split(a);
    let (_b_read, b_write) = bio::split(b);
    panic_of(|| a_read.unsplit(b_write));
}
