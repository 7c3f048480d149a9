//! Tests the streams in memory, `duplex` and `simplex`, and how they end.

use std::{
    io::{ErrorKind, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Wake},
};

use blitz_io::io::{
    AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, SimplexStream, WriteHalf,
    duplex, simplex, split,
};

use crate::support::{
    caught_panic::panic_of,
    manual_io::{NOOP, error, read, ready, shut, write},
    manual_poll::{by_hand, now, waiting},
    wakers::WakeCount,
    watchdog,
};

#[test]
fn each_half_reads_what_the_other_wrote_and_no_more_than_fits() {
    let (mut one, mut two) = duplex(4);
    assert_eq!(ready(write(&mut one, NOOP, b"abcdef")), 4);
    assert!(write(&mut one, NOOP, b"ef").is_pending());
    assert_eq!(ready(read::<3>(&mut two, NOOP)), b"abc");
    assert_eq!(ready(write(&mut one, NOOP, b"efgh")), 3, "as much as was taken");
    assert_eq!(ready(read::<9>(&mut two, NOOP)), b"defg");
    assert!(read::<9>(&mut two, NOOP).is_pending());
    assert_eq!(ready(write(&mut two, NOOP, b"x")), 1, "the other way has its own room");
    assert_eq!(ready(read::<9>(&mut one, NOOP)), b"x");
}

#[test]
fn slices_are_written_as_one() {
    let (mut one, mut two) = duplex(4);
    assert!(one.is_write_vectored());
    let slices = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"cdef")];
    let mut cx = Context::from_waker(NOOP);
    assert_eq!(ready(Pin::new(&mut one).poll_write_vectored(&mut cx, &slices)), 4);
    assert!(Pin::new(&mut one).poll_write_vectored(&mut cx, &slices).is_pending());
    let nothing = [IoSlice::new(b""), IoSlice::new(b"")];
    assert_eq!(ready(Pin::new(&mut one).poll_write_vectored(&mut cx, &nothing)), 0);
    assert_eq!(ready(read::<9>(&mut two, NOOP)), b"abcd");
}

#[test]
fn an_empty_buffer_never_waits() {
    let (mut one, mut two) = duplex(1);
    assert_eq!(ready(read::<0>(&mut one, NOOP)), b"");
    assert_eq!(ready(write(&mut two, NOOP, b"x")), 1);
    assert_eq!(ready(write(&mut two, NOOP, b"")), 0, "also where there is no room");
    let tally = WakeCount::new();
    assert!(write(&mut two, &tally.waker(), b"y").is_pending());
    assert_eq!(ready(read::<0>(&mut one, NOOP)), b"");
    assert_eq!(tally.count(), 0, "nothing was taken");
    drop(two);
    assert_eq!(error(write(&mut one, NOOP, b"")), ErrorKind::BrokenPipe);
}

#[test]
fn a_reader_is_woken_by_bytes_and_a_writer_by_room() {
    let (mut one, mut two) = duplex(1);
    let (reads, writes) = (WakeCount::new(), WakeCount::new());
    assert!(read::<1>(&mut two, &reads.waker()).is_pending());
    assert_eq!(ready(write(&mut one, NOOP, b"a")), 1);
    assert_eq!(reads.count(), 1);
    assert!(write(&mut one, &writes.waker(), b"b").is_pending());
    assert_eq!(ready(read::<1>(&mut two, NOOP)), b"a");
    assert_eq!((reads.count(), writes.count()), (1, 1));
}

#[test]
fn the_last_waker_of_an_end_is_the_one_that_is_woken() {
    let (mut one, mut two) = duplex(1);
    let (first, second) = (WakeCount::new(), WakeCount::new());
    assert!(read::<1>(&mut two, &first.waker()).is_pending());
    assert!(read::<1>(&mut two, &second.waker()).is_pending());
    assert_eq!(ready(write(&mut one, NOOP, b"a")), 1);
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[test]
fn written_bytes_are_read_after_the_writer_is_dropped() {
    let (mut one, mut two) = duplex(8);
    let tally = WakeCount::new();
    assert_eq!(ready(write(&mut one, NOOP, b"ab")), 2);
    assert_eq!(ready(read::<1>(&mut two, NOOP)), b"a");
    drop(one);
    assert_eq!(ready(read::<9>(&mut two, &tally.waker())), b"b");
    assert_eq!(ready(read::<9>(&mut two, NOOP)), b"");
    assert_eq!(error(write(&mut two, NOOP, b"x")), ErrorKind::BrokenPipe);
}

#[test]
fn an_end_that_goes_wakes_a_reader_and_a_writer() {
    let (one, two) = duplex(1);
    let (mut reader, mut writer) = split(two);
    let (reads, writes) = (WakeCount::new(), WakeCount::new());
    assert!(read::<1>(&mut reader, &reads.waker()).is_pending());
    assert_eq!(ready(write(&mut writer, NOOP, b"a")), 1);
    assert!(write(&mut writer, &writes.waker(), b"b").is_pending());
    drop(one);
    assert_eq!((reads.count(), writes.count()), (1, 1));
    assert_eq!(error(write(&mut writer, NOOP, b"b")), ErrorKind::BrokenPipe);
    assert_eq!(ready(read::<1>(&mut reader, NOOP)), b"");
}

#[test]
fn a_shutdown_ends_one_way_only() {
    let (mut one, mut two) = duplex(8);
    let tally = WakeCount::new();
    assert!(read::<1>(&mut two, &tally.waker()).is_pending());
    shut(&mut one);
    assert_eq!(tally.count(), 1);
    assert_eq!(ready(read::<1>(&mut two, NOOP)), b"");
    assert_eq!(error(write(&mut one, NOOP, b"x")), ErrorKind::BrokenPipe);
    assert_eq!(ready(write(&mut two, NOOP, b"y")), 1);
    assert_eq!(ready(read::<1>(&mut one, NOOP)), b"y");
}

#[test]
fn a_simplex_in_one_piece_reads_what_it_wrote() {
    let mut stream = SimplexStream::new_unsplit(2);
    assert_eq!(ready(write(&mut stream, NOOP, b"abc")), 2);
    assert_eq!(ready(read::<9>(&mut stream, NOOP)), b"ab");
    shut(&mut stream);
    assert_eq!(ready(read::<9>(&mut stream, NOOP)), b"");
    assert_eq!(error(write(&mut stream, NOOP, b"x")), ErrorKind::BrokenPipe);
}

#[test]
fn halves_of_a_simplex_are_put_together_and_go_on() {
    let (reader, mut writer) = simplex(8);
    assert_eq!(ready(write(&mut writer, NOOP, b"ab")), 2);
    let mut stream = reader.unsplit(writer);
    assert_eq!(ready(write(&mut stream, NOOP, b"c")), 1, "it is not closed by it");
    assert_eq!(ready(read::<9>(&mut stream, NOOP)), b"abc");
}

/// Beyond Tokio, where the other half waits for ever.
#[test]
fn a_half_of_a_simplex_that_goes_ends_the_other() {
    let (mut reader, writer) = simplex(8);
    let tally = WakeCount::new();
    assert!(read::<1>(&mut reader, &tally.waker()).is_pending());
    drop(writer);
    assert_eq!(tally.count(), 1);
    assert_eq!(ready(read::<1>(&mut reader, NOOP)), b"");

    let (reader, mut writer) = simplex(1);
    assert_eq!(ready(write(&mut writer, NOOP, b"a")), 1);
    assert!(write(&mut writer, &tally.waker(), b"b").is_pending());
    drop(reader);
    assert_eq!(tally.count(), 2);
    assert_eq!(error(write(&mut writer, NOOP, b"b")), ErrorKind::BrokenPipe);
}

#[test]
fn a_pipe_without_room_is_refused() {
    let text = "`max_buf_size` must be greater than 0";
    for caught in [
        panic_of(|| duplex(0)),
        panic_of(|| simplex(0)),
        panic_of(|| SimplexStream::new_unsplit(0)),
    ] {
        assert!(caught.message.starts_with(text), "{}", caught.message);
        assert_eq!(caught.file, file!());
    }
}

/// A waker that polls the other end of a pipe when it is woken or dropped, as executors do that
/// run a task immediately.
struct ComesBack<T> {
    end: Mutex<Option<T>>,
    poll: fn(&mut T),
}

impl<T: Send + 'static> ComesBack<T> {
    fn make(poll: fn(&mut T)) -> Arc<Self> {
        Arc::new(Self { end: Mutex::new(None), poll })
    }
}

impl<T: Send + 'static> Wake for ComesBack<T> {
    fn wake(self: Arc<Self>) {
        if let Some(end) = &mut *self.end.lock().unwrap() {
            (self.poll)(end);
        }
    }
}

#[test]
fn a_waker_may_use_the_other_end_of_a_duplex() {
    let _watch = watchdog::start();
    let (mut one, mut two) = duplex(1);
    let back = ComesBack::<DuplexStream>::make(|two| {
        assert_eq!(ready(read::<1>(two, NOOP)), b"a");
        assert_eq!(ready(write(two, NOOP, b"b")), 1);
    });
    assert!(read::<1>(&mut two, &back.clone().into()).is_pending());
    *back.end.lock().unwrap() = Some(two);
    assert_eq!(ready(write(&mut one, NOOP, b"a")), 1);
    assert_eq!(ready(read::<1>(&mut one, NOOP)), b"b", "the waker has been there");
}

#[test]
fn a_waker_may_use_the_other_half_of_a_simplex() {
    let _watch = watchdog::start();
    let (mut reader, mut writer): (ReadHalf<SimplexStream>, WriteHalf<SimplexStream>) = simplex(1);
    let back = ComesBack::<ReadHalf<SimplexStream>>::make(|reader| {
        assert_eq!(ready(read::<1>(reader, NOOP)), b"a");
    });
    assert!(read::<1>(&mut reader, &back.clone().into()).is_pending());
    *back.end.lock().unwrap() = Some(reader);
    assert_eq!(ready(write(&mut writer, NOOP, b"a")), 1);
    assert_eq!(ready(write(&mut writer, NOOP, b"b")), 1, "the waker has taken the first");
}

#[test]
fn a_waker_may_use_its_end_when_the_other_goes() {
    let _watch = watchdog::start();
    let (one, mut two) = duplex(1);
    let back = ComesBack::<DuplexStream>::make(|two| {
        assert_eq!(ready(read::<1>(two, NOOP)), b"");
        assert_eq!(error(write(two, NOOP, b"x")), ErrorKind::BrokenPipe);
    });
    assert!(read::<1>(&mut two, &back.clone().into()).is_pending());
    *back.end.lock().unwrap() = Some(two);
    drop(one);
    assert!(back.end.lock().unwrap().take().is_some(), "it came back and did not panic");
}

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
