//! Tests that owned buffers are returned, or dropped once, whatever happens meanwhile: through
//! io_uring, where the kernel permits it, and through readiness.

use std::{
    collections::HashSet,
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
};

use blitz_io::{
    buf::{OwnedBuf, OwnedBufMut},
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixDatagram, UnixStream, unix::pipe},
    runtime::{Builder, IoBackend, Runtime},
    task::yield_now,
};
use bytes::{Bytes, BytesMut};

use crate::support::{
    manual_poll::{by_hand, waiting},
    sockets, watchdog,
};

#[cfg(target_os = "linux")]
mod urings;

/// Creates a runtime of each kind, one after the other, with io_uring and without.
fn kinds() -> impl Iterator<Item = Runtime> {
    let other = if cfg!(target_os = "linux") { IoBackend::Epoll } else { IoBackend::Poll };
    [IoBackend::Auto, other].into_iter().flat_map(|backend| {
        (0..=2).map(move |workers| {
            let mut builder = match workers {
                0 => Builder::new_current_thread(),
                _ => Builder::new_multi_thread(),
            };
            if workers > 0 {
                builder.worker_threads(workers);
            }
            builder.io_backend(backend).enable_all().build().expect("a runtime")
        })
    })
}

/// Runs the test on each runtime, as the future of `block_on` and as a task.
fn each<F>(test: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let _watch = watchdog::start();
    for rt in kinds() {
        rt.block_on(test());
        rt.block_on(rt.spawn(test())).expect("the test does not panic");
    }
}

/// A buffer that counts its drop.
struct Counted {
    memory: Vec<u8>,
    dropped: Arc<AtomicUsize>,
}

fn counted(dropped: &Arc<AtomicUsize>) -> Counted {
    Counted { memory: vec![0; 64], dropped: dropped.clone() }
}

// SAFETY: obligations 1 to 3 hold because the vector keeps them: each method forwards to it.
unsafe impl OwnedBuf for Counted {
    fn stable_ptr(&self) -> *const u8 {
        self.memory.stable_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.memory.bytes_init()
    }

    fn bytes_total(&self) -> usize {
        self.memory.bytes_total()
    }
}

// SAFETY: obligations 1 and 2 hold because the vector keeps them: each method forwards to it.
unsafe impl OwnedBufMut for Counted {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.memory.stable_mut_ptr()
    }

    unsafe fn set_init(&mut self, count: usize) {
        // SAFETY: the caller guarantees that the first `count` bytes are initialised.
        unsafe { self.memory.set_init(count) };
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_stream_echoes_what_it_reads() {
    each(|| async {
        let (client, server) = sockets::tcp_pair().await;
        let echo = blitz_io::spawn(async move {
            let mut buf = Vec::with_capacity(1000);
            loop {
                let (result, read) = server.read_owned(buf).await;
                if result.expect("it reads") == 0 {
                    return;
                }
                let (result, back) = server.write_all_owned(read).await;
                result.expect("it writes");
                buf = back;
            }
        });
        let sent: Vec<u8> = (0..100_000_u32).flat_map(u32::to_be_bytes).collect();
        let wanted = sent.clone();
        let client = Arc::new(client);
        let writing = blitz_io::spawn({
            let client = client.clone();
            async move { client.write_all_owned(sent).await.0.expect("it writes") }
        });
        let (result, got) = client.read_exact_owned(vec![0; 400_000].into_boxed_slice()).await;
        assert_eq!(result.expect("it reads"), 400_000);
        assert!(*got == *wanted);
        writing.await.unwrap();
        drop(client);
        echo.await.unwrap();
    });
}

#[test]
fn every_kind_of_buffer_comes_back() {
    each(|| async {
        let (one, other) = UnixStream::pair().unwrap();
        let (result, buf) = one.write_owned(Bytes::from_static(b"by")).await;
        assert_eq!((result.unwrap(), &buf[..]), (2, &b"by"[..]));
        let (result, buf) = one.write_all_owned(String::from("te")).await;
        result.unwrap();
        assert_eq!(buf, "te");
        one.write_all_owned(&b"s!"[..]).await.0.unwrap();
        one.write_all_owned(Vec::from(b"1234567890").slice(2..6)).await.0.unwrap();
        let (result, buf) = other.read_exact_owned(BytesMut::with_capacity(10).slice(..10)).await;
        assert_eq!((result.unwrap(), buf.as_slice()), (10, &b"bytes!3456"[..]));
        assert_eq!(&buf.into_inner()[..], b"bytes!3456");
    });
}

#[test]
fn a_vector_is_as_long_as_what_was_read() {
    each(|| async {
        let (one, other) = UnixStream::pair().unwrap();
        one.write_all_owned("first").await.0.unwrap();
        let (result, buf) = other.read_owned(vec![7; 100]).await;
        assert_eq!((result.unwrap(), &buf[..]), (5, &b"first"[..]));
        one.write_all_owned("2nd").await.0.unwrap();
        let (result, buf) = other.read_owned(buf).await;
        assert_eq!((result.unwrap(), &buf[..]), (3, &b"2nd"[..]), "it has room as before");
        // A read into a slice of the buffer leaves the rest unchanged.
        one.write_all_owned("mid").await.0.unwrap();
        let (result, buf) = other.read_owned(Vec::from(b"0123456789").slice(2..6)).await;
        assert_eq!((result.unwrap(), &buf.into_inner()[..]), (3, &b"01mid56789"[..]));
    });
}

#[test]
fn an_end_is_a_read_of_nothing_and_early_for_an_exact_one() {
    each(|| async {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(b"half").await.unwrap();
        drop(one);
        let (result, buf) = other.read_exact_owned(vec![0; 8]).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(buf, b"half", "what was read is not lost");
        let (result, buf) = other.read_owned(buf).await;
        assert_eq!((result.unwrap(), buf.len()), (0, 0));
    });
}

#[test]
fn a_buffer_without_room_waits_for_nothing() {
    each(|| async {
        let (one, other) = sockets::tcp_pair().await;
        assert_eq!(one.read_owned(Vec::new()).await.0.unwrap(), 0);
        assert_eq!(one.read_exact_owned(Vec::new()).await.0.unwrap(), 0);
        assert_eq!(one.read_owned(vec![0; 8].slice(3..3)).await.0.unwrap(), 0);
        assert_eq!(one.write_owned("").await.0.unwrap(), 0);
        one.write_all_owned(Vec::new()).await.0.unwrap();
        one.write_all_owned("x").await.0.unwrap();
        assert_eq!(other.read_owned(vec![0; 8]).await.1, b"x");
    });
}

#[test]
fn a_reset_returns_an_error_and_the_buffer() {
    each(|| async {
        let (one, other) = sockets::tcp_pair().await;
        let reading = blitz_io::spawn(async move { other.read_owned(vec![1; 8]).await });
        yield_now().await;
        one.set_zero_linger().unwrap();
        drop(one);
        let (result, buf) = reading.await.unwrap();
        assert_eq!(result.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(buf, [1; 8], "it is as it was");
    });
}

#[test]
fn a_write_without_a_reader_is_a_broken_pipe() {
    let _no_child = crate::support::child::none_starts();
    each(|| async {
        let (one, other) = UnixStream::pair().unwrap();
        drop(other);
        let (result, buf) = one.write_owned("hello").await;
        assert_eq!((result.unwrap_err().kind(), buf), (ErrorKind::BrokenPipe, "hello"));
        let (sender, receiver) = pipe::pipe().unwrap();
        drop(receiver);
        let (result, _) = sender.write_all_owned("hello").await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_pipe_carries_what_it_is_given() {
    each(|| async {
        let (sender, receiver) = pipe::pipe().unwrap();
        let writing = blitz_io::spawn(async move {
            sender.write_all_owned(vec![5; 300_000]).await.0.unwrap();
        });
        let (result, buf) = receiver.read_exact_owned(vec![0; 300_000]).await;
        assert_eq!(result.unwrap(), 300_000);
        assert!(buf.iter().all(|byte| *byte == 5));
        writing.await.unwrap();
        assert_eq!(receiver.read_owned(vec![0; 8]).await.0.unwrap(), 0);
    });
}

#[test]
fn datagrams_come_one_by_one() {
    each(|| async {
        let (one, other) = sockets::udp_pair().await;
        for text in ["first", "", "third"] {
            assert_eq!(one.send_owned(text).await.0.unwrap(), text.len());
            let (result, buf) = other.recv_owned(vec![0; 16]).await;
            assert_eq!((result.unwrap(), &buf[..]), (text.len(), text.as_bytes()));
        }
        one.send_owned("too long").await.0.unwrap();
        let (result, buf) = other.recv_owned(vec![0; 3].into_boxed_slice()).await;
        assert_eq!((result.unwrap(), &buf[..]), (3, &b"too"[..]), "the rest is thrown away");
    });
}

#[test]
fn a_dropped_read_drops_its_buffer_once_and_the_next_one_reads() {
    each(|| async {
        let dropped = Arc::default();
        let (one, other) = UnixStream::pair().unwrap();
        drop(waiting(other.read_owned(counted(&dropped))));
        while dropped.load(SeqCst) == 0 {
            yield_now().await;
        }
        one.write_all_owned("mine").await.0.unwrap();
        let (result, buf) = other.read_owned(counted(&dropped)).await;
        assert_eq!((result.unwrap(), &buf.memory[..]), (4, &b"mine"[..]));
        drop(buf);
        assert_eq!(dropped.load(SeqCst), 2);
    });
}

/// The kernel holds the file of an operation, so the file is closed only when that has ended.
#[test]
fn a_dropped_read_does_not_keep_its_stream_open() {
    each(|| async {
        let (mut one, other) = sockets::tcp_pair().await;
        drop(waiting(other.read_owned(vec![0; 8])));
        drop(other);
        assert_eq!(one.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn a_leaked_read_harms_no_other_operation() {
    let _watch = watchdog::start();
    for rt in kinds() {
        let dropped = Arc::default();
        rt.block_on(async {
            let (mut one, other) = sockets::tcp_pair().await;
            // Boxed, and the box is leaked as well.
            std::mem::forget(waiting(other.read_owned(counted(&dropped))));
            one.write_all(b"into a leaked buffer").await.unwrap();
            let (mut third, fourth) = sockets::tcp_pair().await;
            std::mem::forget(waiting(fourth.read_owned(counted(&dropped))));
            drop(fourth);
            yield_now().await;
            third.write_all(b"x").await.unwrap();
        });
        drop(rt);
        assert_eq!(dropped.load(SeqCst), 0, "a leak is one");
    }
}

#[test]
fn a_runtime_that_ends_drops_the_buffers_of_its_tasks() {
    let _watch = watchdog::start();
    for rt in kinds() {
        let dropped: Arc<AtomicUsize> = Arc::default();
        let (began, begun) = mpsc::channel();
        for _ in 0..50 {
            let (dropped, began) = (dropped.clone(), began.clone());
            rt.spawn(async move {
                let (one, other) = UnixStream::pair().unwrap();
                let mut reading = std::pin::pin!(other.read_owned(counted(&dropped)));
                std::future::poll_fn(|cx| {
                    assert!(reading.as_mut().poll(cx).is_pending());
                    std::task::Poll::Ready(())
                })
                .await;
                began.send(()).unwrap();
                reading.await.0.expect_err("no peer writes");
                drop(one);
            });
        }
        rt.block_on(async {
            for _ in 0..50 {
                while begun.try_recv().is_err() {
                    yield_now().await;
                }
            }
        });
        drop(rt);
        assert_eq!(dropped.load(SeqCst), 50);
    }
}

#[test]
fn a_read_pending_when_the_runtime_ends_returns_an_error_and_the_buffer() {
    let _watch = watchdog::start();
    for rt in kinds() {
        let (one, other) = rt.block_on(async { UnixStream::pair().unwrap() });
        let mut reading = waiting(other.read_owned(vec![3; 8]));
        drop(rt);
        assert!(reading.woken());
        let (result, buf) = reading.ready();
        let error = result.unwrap_err();
        assert!(blitz_io::runtime::is_rt_shutdown_err(&error), "{error}");
        assert_eq!(buf, [3; 8]);
        // Later reads fail as well. Through readiness, a write is tried first; it may succeed.
        let (result, buf) = by_hand(other.read_owned(vec![4; 8])).ready();
        assert!(blitz_io::runtime::is_rt_shutdown_err(&result.unwrap_err()));
        assert_eq!(buf, [4; 8]);
        drop(one);
    }
}

#[test]
fn a_read_begun_by_a_thread_goes_on_after_its_exit() {
    let _watch = watchdog::start();
    for rt in kinds() {
        let (mut one, other) = rt.block_on(sockets::tcp_pair());
        let other = Arc::new(other);
        let reading = std::thread::spawn(move || {
            waiting(async move { other.read_owned(Vec::with_capacity(16)).await })
        });
        // The thread has exited by then, and its destructors have run.
        let mut reading = reading.join().unwrap();
        let (result, buf) = rt.block_on(async move {
            one.write_all(b"still here").await.unwrap();
            std::future::poll_fn(|cx| reading.poll_with(cx.waker())).await
        });
        assert_eq!((result.unwrap(), &buf[..]), (10, &b"still here"[..]));
    }
}

#[test]
fn a_thousand_at_once_take_each_datagram_once() {
    each(|| async {
        const COUNT: u32 = 1000;
        let (one, other) = UnixDatagram::pair().unwrap();
        let other = Arc::new(other);
        let tasks: Vec<_> = (0..COUNT)
            .map(|_| {
                let other = other.clone();
                blitz_io::spawn(async move {
                    let (result, buf) = other.recv_owned(Vec::with_capacity(8)).await;
                    assert_eq!(result.expect("it receives"), 4);
                    u32::from_be_bytes(buf[..].try_into().unwrap())
                })
            })
            .collect();
        for number in 0..COUNT {
            let (result, _) = one.send_owned(Vec::from(number.to_be_bytes())).await;
            assert_eq!(result.expect("it sends"), 4);
        }
        let mut seen = HashSet::new();
        for task in tasks {
            assert!(seen.insert(task.await.unwrap()), "a datagram was seen twice");
        }
        assert_eq!(seen.len(), COUNT as usize);
    });
}
