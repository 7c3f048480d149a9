//! Tests streams that are split and joined, and the trivial ones: `empty`, `repeat`, `sink`.

use std::{
    io::{self, ErrorKind, SeekFrom},
    marker::{PhantomData, PhantomPinned},
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{
        MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use blitz_io::io::{
    self as bio, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt,
    Empty, ReadBuf, ReadHalf, WriteHalf, copy, duplex, empty, join, repeat, sink, split,
};

use crate::support::{
    caught_panic::panic_of,
    manual_io::{NOOP, ready, shut, write},
    manual_poll::{now, waiting},
    runtimes::{self, on_all_kinds},
    scripted_io::{Scripted, Step::Bytes},
    watchdog,
};

#[test]
fn halves_read_and_write_the_same_stream() {
    let inner = Scripted::reads([Bytes(b"ab")]).vectored();
    let (mut reader, mut writer) = split(inner);
    assert!(writer.is_write_vectored());
    assert_eq!(ready(crate::support::manual_io::read::<9>(&mut reader, NOOP)), b"ab");
    assert_eq!(ready(write(&mut writer, NOOP, b"cd")), 2);
    now(writer.flush()).unwrap();
    shut(&mut writer);
    let inner = reader.unsplit(writer);
    assert_eq!((&inner.sink.taken[..], inner.sink.flushed, inner.sink.shut), (&b"cd"[..], 2, 1));
}

#[test]
fn only_halves_of_one_stream_are_put_together() {
    let (one, other) = (split(empty()), split(empty()));
    assert!(one.0.is_pair_of(&one.1) && one.1.is_pair_of(&one.0));
    assert!(!one.0.is_pair_of(&other.1) && !other.1.is_pair_of(&one.0));
    let caught = panic_of(AssertUnwindSafe(move || one.0.unsplit(other.1)));
    let text = "Unrelated `split::Write` passed to `split::Read::unsplit`.";
    assert!(caught.message.starts_with(text), "{}", caught.message);
    assert_eq!(caught.file, file!());
}

#[test]
fn a_stream_lives_until_both_halves_are_gone() {
    let (one, mut other) = duplex(8);
    let (reader, writer) = split(one);
    drop(writer);
    assert_eq!(ready(write(&mut other, NOOP, b"x")), 1);
    drop(reader);
    assert_eq!(
        crate::support::manual_io::error(write(&mut other, NOOP, b"x")),
        ErrorKind::BrokenPipe
    );
}

#[test]
fn two_tasks_use_the_halves_at_the_same_time() {
    let _watch = watchdog::start();
    let rt = runtimes::workers(2);
    rt.block_on(async {
        let (one, two) = duplex(7);
        let mut tasks = Vec::new();
        for stream in [one, two] {
            let (mut reader, mut writer) = split(stream);
            tasks.push(blitz_io::spawn(async move {
                for chunk in vec![3; 10_000].chunks(11) {
                    writer.write_all(chunk).await.unwrap();
                }
                writer.shutdown().await.unwrap();
                10_000
            }));
            tasks.push(blitz_io::spawn(async move {
                let mut all = Vec::new();
                reader.read_to_end(&mut all).await.unwrap();
                all.len()
            }));
        }
        for task in tasks {
            assert_eq!(task.await.unwrap(), 10_000);
        }
    });
}

/// A stream that asserts that it is not moved after its first poll.
#[derive(Default)]
struct Pinned {
    /// The address at its first poll.
    address: AtomicUsize,
    _pinned: PhantomPinned,
}

impl Pinned {
    fn look(self: Pin<&mut Self>) {
        let address = (&raw const *self).addr();
        let first = self.address.compare_exchange(0, address, Relaxed, Relaxed);
        assert_eq!(first.unwrap_or_else(|first| first.wrapping_sub(address)), 0, "it has moved");
    }
}

impl AsyncRead for Pinned {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.look();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pinned {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.look();
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        panic!("this stream panics on purpose");
    }
}

#[test]
fn halves_may_move_where_the_stream_may_not() {
    fn unpin<T: Unpin + Send + Sync>(half: T) -> Box<T> {
        Box::new(half)
    }
    let (reader, writer) = split(Pinned::default());
    let (mut reader, mut writer) = (unpin(reader), unpin(writer));
    now(reader.read(&mut [0])).unwrap();
    now(writer.write(b"x")).unwrap();
}

#[test]
fn a_panic_in_one_half_makes_the_other_half_panic() {
    let (mut reader, mut writer): (ReadHalf<Pinned>, WriteHalf<Pinned>) = split(Pinned::default());
    panic_of(AssertUnwindSafe(|| now(writer.shutdown())));
    let caught = panic_of(AssertUnwindSafe(|| now(reader.read(&mut [0]))));
    assert!(
        caught.message.contains("an earlier call of the shared value panicked"),
        "{}",
        caught.message
    );
}

#[test]
fn a_reader_and_a_writer_are_one_stream() {
    let mut stream = pin!(join(&b"ab\n"[..], Scripted::default().vectored()));
    assert!(stream.is_write_vectored());
    let mut line = String::new();
    now(stream.read_line(&mut line)).unwrap();
    now(stream.write_all(b"cd")).unwrap();
    now(stream.flush()).unwrap();
    now(stream.shutdown()).unwrap();
    let writer = &stream.writer().sink;
    assert_eq!((line.as_str(), &writer.taken[..]), ("ab\n", &b"cd"[..]));
    assert_eq!((writer.flushed, writer.shut), (2, 1));
}

#[test]
fn nothing_is_read_from_empty_and_everything_goes_into_it() {
    let mut nothing = empty();
    assert_eq!(now(nothing.read(&mut [0; 8])).unwrap(), 0);
    assert_eq!(now(nothing.fill_buf()).unwrap(), b"");
    assert_eq!(now(nothing.write(&[1; 8])).unwrap(), 8);
    assert_eq!(now(nothing.seek(SeekFrom::End(5))).unwrap(), 0);
    now(nothing.shutdown()).unwrap();
    assert!(nothing.is_write_vectored() && sink().is_write_vectored());
}

#[test]
fn a_repeated_byte_fills_any_buffer() {
    for size in [0, 1, 511, 512, 513, 5000] {
        let mut buf = vec![0; size];
        assert_eq!(now(repeat(7).read(&mut buf)).unwrap(), size);
        assert!(buf.iter().all(|byte| *byte == 7));
    }
}

/// Tokio's halves are `Sync` whenever the stream is, even if the stream is not `Send`.
#[test]
fn halves_of_a_stream_that_stays_can_be_shared() {
    struct Stays(Empty, PhantomData<MutexGuard<'static, ()>>);
    impl AsyncRead for Stays {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(cx, buf)
        }
    }
    impl AsyncWrite for Stays {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(cx, buf)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let (reader, writer) = split(Stays(empty(), PhantomData));
    std::thread::scope(|scope| {
        let (reader, writer) = (&reader, &writer);
        assert!(scope.spawn(move || reader.is_pair_of(writer)).join().unwrap());
    });
    reader.unsplit(writer);
}

#[test]
fn a_joined_stream_reads_from_the_reader_and_writes_to_the_writer() {
    let mut joined = bio::join(&b"in"[..], Vec::new());
    let mut text = String::new();
    now(joined.read_to_string(&mut text)).unwrap();
    now(joined.write_all(b"out")).unwrap();
    assert_eq!(text, "in");
    assert_eq!(joined.reader(), b"");
    let (_, written) = joined.into_inner();
    assert_eq!(written, b"out");
}

#[test]
fn nothing_is_in_empty_and_no_end_in_repeat() {
    assert_eq!(now(empty().read(&mut [0; 8])).unwrap(), 0);
    assert_eq!(now(empty().write(b"gone")).unwrap(), 4);
    let mut bytes = [0; 8];
    now(repeat(7).read_exact(&mut bytes)).unwrap();
    assert_eq!(bytes, [7; 8]);
    let mut never = waiting(copy_never());
    never.still_waits();
}

async fn copy_never() {
    let (mut near, _far) = duplex(8);
    copy(&mut near, &mut sink()).await.unwrap();
}

#[test]
fn halves_work_at_once_on_two_tasks() {
    on_all_kinds(|| async {
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
