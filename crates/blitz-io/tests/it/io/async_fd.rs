//! `AsyncFd`: descriptors for which the runtime has no type.

use std::{
    future::poll_fn,
    io::{ErrorKind, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use blitz_io::{
    io::{Interest, Ready, unix::AsyncFd},
    runtime::Runtime,
};

use crate::{
    io::by_hand::{Calls, NOOP},
    make, watch,
};

fn pair() -> (UnixStream, UnixStream) {
    let (one, two) = UnixStream::pair().unwrap();
    one.set_nonblocking(true).unwrap();
    two.set_nonblocking(true).unwrap();
    (one, two)
}

fn registered(stream: UnixStream) -> AsyncFd<UnixStream> {
    // SAFETY: obligations 1 and 2 hold because a stream owns its descriptor until it is dropped.
    unsafe { AsyncFd::register(stream) }.unwrap()
}

/// Fills the system's send buffer of the stream.
fn fill(stream: &AsyncFd<UnixStream>) {
    while stream.get_ref().write(&[0; 4096]).is_ok() {}
}

fn runtimes() -> Vec<Runtime> {
    vec![make::one_thread_with_io(), make::workers_with_io(2)]
}

#[test]
fn a_descriptor_becomes_readable_when_something_came() {
    let _watch = watch::begin();
    for rt in runtimes() {
        rt.block_on(async {
            let (one, mut two) = pair();
            let one = Arc::new(registered(one));
            let waits = {
                let one = one.clone();
                blitz_io::spawn(async move {
                    let mut guard = one.readable().await.unwrap();
                    let mut buf = [0; 8];
                    let read = guard.try_io(|one| one.get_ref().read(&mut buf)).unwrap().unwrap();
                    (guard.ready().is_readable(), buf[..read].to_vec())
                })
            };
            blitz_io::task::yield_now().await;
            two.write_all(b"abc").unwrap();
            assert_eq!(waits.await.unwrap(), (true, b"abc".to_vec()));
        });
    }
}

/// Returns true if readiness that was cleared, and still holds, is reported again: `poll(2)` is
/// level-triggered, the other backends are edge-triggered.
fn tells_again() -> bool {
    std::env::var("BLITZ_IO_BACKEND").is_ok_and(|name| name.eq_ignore_ascii_case("poll"))
}

#[test]
fn readiness_stays_until_it_is_cleared() {
    let _watch = watch::begin();
    for rt in runtimes() {
        rt.block_on(async {
            let (one, mut two) = pair();
            let one = registered(one);
            two.write_all(b"a").unwrap();
            one.readable().await.unwrap().retain_ready();
            drop(one.readable().await.unwrap());
            one.get_ref().read_exact(&mut [0]).unwrap();
            let mut guard = one.readable().await.unwrap();
            assert!(guard.try_io(|one| one.get_ref().read(&mut [0])).is_err(), "it was stale");
            assert_eq!(guard.ready(), Ready::EMPTY);
            let mut cx = Context::from_waker(NOOP);
            assert!(one.poll_read_ready(&mut cx).is_pending());
            two.write_all(b"b").unwrap();
            one.readable().await.unwrap().clear_ready();
            if tells_again() {
                one.readable().await.unwrap().retain_ready();
            } else {
                assert!(one.poll_read_ready(&mut cx).is_pending(), "cleared by hand");
            }
        });
    }
}

#[test]
fn one_kind_of_readiness_is_cleared_without_the_other() {
    let _watch = watch::begin();
    for rt in runtimes() {
        rt.block_on(async {
            let (one, mut two) = pair();
            let mut one = registered(one);
            two.write_all(b"a").unwrap();
            one.readable().await.unwrap().retain_ready();
            let both = Interest::READABLE | Interest::WRITABLE;
            let mut guard = one.ready_mut(both).await.unwrap();
            assert!(guard.ready().is_readable() && guard.ready().is_writable());
            guard.clear_ready_matching(Ready::READABLE);
            assert!(!guard.ready().is_readable() && guard.ready().is_writable());
            let mut cx = Context::from_waker(NOOP);
            assert!(tells_again() || one.poll_read_ready_mut(&mut cx).is_pending());
            assert!(one.poll_write_ready_mut(&mut cx).is_ready());
        });
    }
}

#[test]
fn an_operation_is_tried_until_it_does_not_block() {
    let _watch = watch::begin();
    for rt in runtimes() {
        rt.block_on(async {
            let (one, two) = pair();
            let (one, mut two) = (Arc::new(registered(one)), registered(two));
            fill(&one);
            let writes = {
                let one = one.clone();
                blitz_io::spawn(async move {
                    one.async_io(Interest::WRITABLE, |mut one| one.write(b"last")).await
                })
            };
            let mut read = 0;
            while !writes.is_finished() {
                let mut buf = [0; 4096];
                read +=
                    two.async_io_mut(Interest::READABLE, |two| two.read(&mut buf)).await.unwrap();
                blitz_io::task::yield_now().await;
            }
            assert_eq!(writes.await.unwrap().unwrap(), 4);
            assert!(read > 0);
        });
    }
}

#[test]
fn a_try_returns_would_block_without_a_call_when_no_readiness_is_known() {
    let _watch = watch::begin();
    make::one_thread_with_io().block_on(async {
        let (one, mut two) = pair();
        let mut one = registered(one);
        let called = AtomicBool::new(false);
        let error = one.try_io(Interest::READABLE, |_| {
            called.store(true, Relaxed);
            Ok(())
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(!called.load(Relaxed));
        two.write_all(b"a").unwrap();
        one.readable().await.unwrap().retain_ready();
        assert_eq!(one.try_io_mut(Interest::READABLE, |one| one.read(&mut [0; 8])).unwrap(), 1);
        let again = one.try_io(Interest::READABLE, |mut one| one.read(&mut [0; 8]));
        assert_eq!(again.unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(one.poll_read_ready(&mut Context::from_waker(NOOP)).is_pending());
    });
}

#[test]
fn many_wait_for_one_descriptor() {
    let _watch = watch::begin();
    for rt in runtimes() {
        rt.block_on(async {
            let (one, mut two) = pair();
            let one = Arc::new(registered(one));
            let waits: Vec<_> = (0..20)
                .map(|_| {
                    let one = one.clone();
                    blitz_io::spawn(
                        async move { one.readable().await.map(|mut g| g.retain_ready()) },
                    )
                })
                .collect();
            blitz_io::task::yield_now().await;
            two.write_all(b"a").unwrap();
            for wait in waits {
                wait.await.unwrap().unwrap();
            }
        });
    }
}

#[test]
fn the_last_poll_of_a_direction_is_the_one_that_is_woken() {
    let _watch = watch::begin();
    make::one_thread_with_io().block_on(async {
        let (one, mut two) = pair();
        let one = registered(one);
        let (first, second) = (Calls::new(), Calls::new());
        for calls in [&first, &second] {
            let waker = calls.waker();
            assert!(one.poll_read_ready(&mut Context::from_waker(&waker)).is_pending());
        }
        two.write_all(b"a").unwrap();
        one.readable().await.unwrap().retain_ready();
        assert_eq!((first.count(), second.count()), (0, 1));
    });
}

#[test]
fn the_end_of_the_other_side_is_seen() {
    let _watch = watch::begin();
    for rt in runtimes() {
        rt.block_on(async {
            let (one, two) = pair();
            let one = registered(one);
            drop(two);
            let guard = poll_fn(|cx| one.poll_read_ready(cx)).await.unwrap();
            assert!(guard.ready().is_read_closed());
        });
    }
}

#[test]
fn a_descriptor_that_cannot_be_waited_for_comes_back() {
    let _watch = watch::begin();
    let _rt = make::one_thread_with_io();
    let _guard = _rt.enter();
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    // SAFETY: obligations 1 and 2 hold because a file owns its descriptor until it is dropped.
    let error = unsafe { AsyncFd::register(file) }.unwrap_err();
    let (file, cause) = error.into_parts();
    assert_eq!(cause.kind(), ErrorKind::PermissionDenied);
    assert!(file.metadata().unwrap().is_file());
}

/// Records that it was dropped, and its descriptor at that time.
struct Noted(OwnedFd, Arc<AtomicBool>);

impl AsRawFd for Noted {
    fn as_raw_fd(&self) -> RawFd {
        assert!(!self.1.load(Relaxed), "it is asked before it is dropped, not after");
        self.0.as_raw_fd()
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.1.store(true, Relaxed);
    }
}

#[test]
fn a_descriptor_may_be_registered_again_after_it_was_taken_out() {
    let _watch = watch::begin();
    make::one_thread_with_io().block_on(async {
        let (one, mut two) = pair();
        let dropped = Arc::new(AtomicBool::new(false));
        let mut value = Noted(one.into(), dropped.clone());
        for _ in 0..3 {
            // SAFETY: obligations 1 and 2 hold because the value owns its descriptor until it is
            // dropped.
            let fd = unsafe { AsyncFd::register_with_interest(value, Interest::READABLE) };
            let fd = fd.unwrap();
            assert_eq!(fd.as_fd().as_raw_fd(), fd.as_raw_fd());
            two.write_all(b"a").unwrap();
            fd.readable().await.unwrap().retain_ready();
            value = fd.into_inner();
            assert!(!dropped.load(Relaxed));
        }
        // SAFETY: obligations 1 and 2 hold because the value owns its descriptor until it is
        // dropped.
        drop(unsafe { AsyncFd::register(value) });
        assert!(dropped.load(Relaxed));
    });
}

#[test]
fn a_guard_of_a_pair_that_waits_loses_nothing_when_it_is_dropped() {
    let _watch = watch::begin();
    make::one_thread_with_io().block_on(async {
        let (one, mut two) = pair();
        let one = registered(one);
        {
            let mut waits = std::pin::pin!(one.readable());
            assert!(matches!(crate::by_hand::poll(waits.as_mut()), Poll::Pending));
        }
        two.write_all(b"a").unwrap();
        one.readable().await.unwrap().retain_ready();
    });
}
