//! Streams that are split and joined, and the trivial ones: `empty`, `repeat`, `sink`.

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
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, Empty,
    ReadBuf, ReadHalf, WriteHalf, duplex, empty, join, repeat, sink, split,
};

use crate::{
    by_hand::now,
    caught::panic_of,
    io::by_hand::{NOOP, Scripted, Step::Bytes, ready, shut, write},
    make, watch,
};

#[test]
fn halves_read_and_write_the_same_stream() {
    let inner = Scripted { vectored: true, ..Scripted::reads([Bytes(b"ab".to_vec())]) };
    let (mut reader, mut writer) = split(inner);
    assert!(writer.is_write_vectored());
    assert_eq!(ready(crate::io::by_hand::read::<9>(&mut reader, NOOP)), b"ab");
    assert_eq!(ready(write(&mut writer, NOOP, b"cd")), 2);
    now(writer.flush()).unwrap();
    shut(&mut writer);
    let inner = reader.unsplit(writer);
    assert_eq!((&inner.taken[..], inner.flushed, inner.shut), (&b"cd"[..], 1, true));
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
    assert_eq!(crate::io::by_hand::error(write(&mut other, NOOP, b"x")), ErrorKind::BrokenPipe);
}

#[test]
fn two_tasks_use_the_halves_at_the_same_time() {
    let _watch = watch::begin();
    let rt = make::workers(2);
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
        panic!("this stream was told to panic");
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
    assert!(caught.message.contains("has panicked before"), "{}", caught.message);
}

#[test]
fn a_reader_and_a_writer_are_one_stream() {
    let mut stream = pin!(join(&b"ab\n"[..], Scripted { vectored: true, ..Scripted::default() }));
    assert!(stream.is_write_vectored());
    let mut line = String::new();
    now(stream.read_line(&mut line)).unwrap();
    now(stream.write_all(b"cd")).unwrap();
    now(stream.flush()).unwrap();
    now(stream.shutdown()).unwrap();
    let writer = stream.writer();
    assert_eq!((line.as_str(), &writer.taken[..]), ("ab\n", &b"cd"[..]));
    assert!(writer.flushed == 1 && writer.shut);
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
