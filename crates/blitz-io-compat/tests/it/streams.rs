//! Properties of a stream that hold through every bridge, in both directions.

use std::{
    io::{ErrorKind, IoSlice},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::{
    outside::{
        FuturesInside, FuturesOutside, HyperInside, HyperOutside, Outside, TokioInside,
        TokioOutside,
    },
    script::{Script, Step},
};

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Relaxed: only one thread uses it.
        self.0.fetch_add(1, Relaxed);
    }
}

fn a_read_takes_what_fits_and_leaves_the_rest<S: Outside>() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut stream = S::on(Script::new([Step::Bytes(b"abcdef"), Step::Bytes(b"g")]));
    let mut read = |room| match stream.read(&mut cx, room) {
        Poll::Ready(Ok(bytes)) => bytes,
        other => panic!("{other:?}"),
    };
    assert_eq!(read(4), b"abcd");
    assert_eq!(read(4), b"ef");
    assert_eq!(read(4), b"g");
}

fn the_end_is_a_read_of_nothing_every_time<S: Outside>() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut stream = S::on(Script::new([Step::Bytes(b"a")]));
    assert!(matches!(stream.read(&mut cx, 9), Poll::Ready(Ok(bytes)) if bytes == b"a"));
    for _ in 0..2 {
        assert!(matches!(stream.read(&mut cx, 9), Poll::Ready(Ok(bytes)) if bytes.is_empty()));
    }
}

fn a_read_that_would_block_waits_for_the_callers_waker<S: Outside>() {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    let steps = [
        Step::Pending,
        Step::Bytes(b"a"),
        Step::Pending,
        Step::Takes(1),
        Step::Pending,
        Step::Takes(0),
        Step::Pending,
    ];
    let mut stream = S::on(Script::new(steps));
    assert!(stream.read(&mut cx, 9).is_pending());
    assert!(matches!(stream.read(&mut cx, 9), Poll::Ready(Ok(bytes)) if bytes == b"a"));
    assert!(stream.write(&mut cx, b"xy").is_pending());
    assert!(matches!(stream.write(&mut cx, b"xy"), Poll::Ready(Ok(1))));
    assert!(stream.flush(&mut cx).is_pending());
    assert!(matches!(stream.flush(&mut cx), Poll::Ready(Ok(()))));
    assert!(stream.end(&mut cx).is_pending());
    assert!(matches!(stream.end(&mut cx), Poll::Ready(Ok(()))));
    // Relaxed: only one thread uses it.
    assert_eq!(woken.0.load(Relaxed), 4, "once for each that was pending");
    assert_eq!(stream.script().written, b"x", "what was pending wrote nothing");
}

fn errors_arrive_as_they_are<S: Outside>() {
    let mut cx = Context::from_waker(Waker::noop());
    let kinds = [
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
        ErrorKind::TimedOut,
        ErrorKind::StorageFull,
        ErrorKind::NotConnected,
    ];
    let mut stream = S::on(Script::new(kinds.map(Step::Fails)));
    let results = [
        stream.read(&mut cx, 9).map_ok(drop),
        stream.write(&mut cx, b"x").map_ok(drop),
        stream.gather(&mut cx, &[IoSlice::new(b"x")]).map_ok(drop),
        stream.flush(&mut cx),
        stream.end(&mut cx),
    ];
    for (result, kind) in results.into_iter().zip(kinds) {
        assert!(matches!(&result, Poll::Ready(Err(error)) if error.kind() == kind), "{result:?}");
    }
    assert!(stream.script().written.is_empty());
}

fn a_write_returns_the_number_of_bytes_taken<S: Outside>() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut stream = S::on(Script::new([Step::Takes(2)]));
    assert!(matches!(stream.write(&mut cx, b"abc"), Poll::Ready(Ok(2))));
    assert!(matches!(stream.write(&mut cx, b"c"), Poll::Ready(Ok(1))));
    assert_eq!(stream.script().written, b"abc");
}

fn pieces_are_gathered_by_one_call<S: Outside>() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut stream = S::on(Script::new([Step::Takes(4)]));
    let pieces = [IoSlice::new(b""), IoSlice::new(b"abc"), IoSlice::new(b"def")];
    assert!(matches!(stream.gather(&mut cx, &pieces), Poll::Ready(Ok(4))));
    assert_eq!(stream.script().written, b"abcd");
    assert_eq!(stream.script().calls, ["write_vectored"]);
}

fn a_vectored_writer_reports_that_it_is_vectored<S: Outside>() {
    for gathers in [false, true] {
        let mut script = Script::default();
        script.gathers = gathers;
        let stream = S::on(script);
        assert_eq!(stream.gathers().unwrap_or(gathers), gathers);
    }
}

fn a_flush_and_an_end_are_handed_on_as_such<S: Outside>() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut stream = S::on(Script::default());
    assert!(matches!(stream.flush(&mut cx), Poll::Ready(Ok(()))));
    assert!(matches!(stream.end(&mut cx), Poll::Ready(Ok(()))));
    assert_eq!(stream.script().calls, ["flush", "end"]);
}

fn a_read_into_no_room_takes_nothing<S: Outside>() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut stream = S::on(Script::new([Step::Bytes(b"abc")]));
    assert!(matches!(stream.read(&mut cx, 0), Poll::Ready(Ok(bytes)) if bytes.is_empty()));
    assert!(matches!(stream.read(&mut cx, 9), Poll::Ready(Ok(bytes)) if bytes == b"abc"));
}

macro_rules! each_way {
    ($($way:ident: $stream:ident,)+) => {
        $(each_way!(@ $way $stream
            a_read_takes_what_fits_and_leaves_the_rest
            the_end_is_a_read_of_nothing_every_time
            a_read_into_no_room_takes_nothing
            a_read_that_would_block_waits_for_the_callers_waker
            errors_arrive_as_they_are
            a_write_returns_the_number_of_bytes_taken
            pieces_are_gathered_by_one_call
            a_vectored_writer_reports_that_it_is_vectored
            a_flush_and_an_end_are_handed_on_as_such);)+
    };
    (@ $way:ident $stream:ident $($fact:ident)+) => {
        mod $way {
            $(#[test]
            fn $fact() {
                super::$fact::<super::$stream>();
            })+
        }
    };
}

each_way! {
    ours_to_tokio: TokioOutside,
    tokio_to_ours: TokioInside,
    ours_to_hyper: HyperOutside,
    hyper_to_ours: HyperInside,
    ours_to_futures: FuturesOutside,
    futures_to_ours: FuturesInside,
}

/// A reader that replaces the buffer that it was given by another one.
struct Swaps;

impl blitz_io::io::AsyncRead for Swaps {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut blitz_io::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut other = blitz_io::io::ReadBuf::new(Box::leak(Box::new([1; 8])));
        other.advance(8);
        *buf = other;
        Poll::Ready(Ok(()))
    }
}

/// Without the check hyper would treat its own uninitialised bytes as read.
#[test]
#[should_panic(expected = "a reader swapped its buffer")]
fn hypers_buffer_is_not_swapped() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut memory = [std::mem::MaybeUninit::uninit(); 8];
    let mut buf = hyper::rt::ReadBuf::uninit(&mut memory);
    let mut stream = blitz_io_compat::HyperIo::new(Swaps);
    let _ = hyper::rt::Read::poll_read(std::pin::Pin::new(&mut stream), &mut cx, buf.unfilled());
}
