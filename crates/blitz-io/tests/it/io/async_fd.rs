//! Tests `AsyncFd`, which waits for descriptors for which the runtime has no type.

use std::{
    future::poll_fn,
    io::{self, ErrorKind, Read, Write},
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

use crate::support::{
    caught_panic::panic_of,
    manual_io::NOOP,
    manual_poll::waiting,
    runtimes::{self, on_all_kinds, on_one_thread},
    wakers::WakeCount,
    watchdog,
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
    vec![runtimes::one_thread_with_io(), runtimes::workers_with_io(2)]
}

#[test]
fn a_descriptor_becomes_readable_when_something_came() {
    let _watch = watchdog::start();
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
fn is_level_triggered() -> bool {
    std::env::var("BLITZ_IO_BACKEND").is_ok_and(|name| name.eq_ignore_ascii_case("poll"))
}

#[test]
fn readiness_stays_until_it_is_cleared() {
    let _watch = watchdog::start();
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
            if is_level_triggered() {
                one.readable().await.unwrap().retain_ready();
            } else {
                assert!(one.poll_read_ready(&mut cx).is_pending(), "cleared by hand");
            }
        });
    }
}

#[test]
fn one_kind_of_readiness_is_cleared_without_the_other() {
    let _watch = watchdog::start();
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
            assert!(is_level_triggered() || one.poll_read_ready_mut(&mut cx).is_pending());
            assert!(one.poll_write_ready_mut(&mut cx).is_ready());
        });
    }
}

#[test]
fn an_operation_is_tried_until_it_does_not_block() {
    let _watch = watchdog::start();
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
    let _watch = watchdog::start();
    runtimes::one_thread_with_io().block_on(async {
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
    let _watch = watchdog::start();
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
    let _watch = watchdog::start();
    runtimes::one_thread_with_io().block_on(async {
        let (one, mut two) = pair();
        let one = registered(one);
        let (first, second) = (WakeCount::new(), WakeCount::new());
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
    let _watch = watchdog::start();
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
    let _watch = watchdog::start();
    let _rt = runtimes::one_thread_with_io();
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
        assert!(!self.1.load(Relaxed), "it is called before it is dropped, not after");
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
    let _watch = watchdog::start();
    runtimes::one_thread_with_io().block_on(async {
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
    let _watch = watchdog::start();
    runtimes::one_thread_with_io().block_on(async {
        let (one, mut two) = pair();
        let one = registered(one);
        {
            let mut waits = std::pin::pin!(one.readable());
            assert!(matches!(crate::support::manual_poll::poll_once(&mut waits), Poll::Pending));
        }
        two.write_all(b"a").unwrap();
        one.readable().await.unwrap().retain_ready();
    });
}

fn drain(mut stream: &UnixStream) -> usize {
    let mut all = 0;
    let mut buffer = [0; 512];
    while let Ok(count) = stream.read(&mut buffer) {
        if count == 0 {
            break;
        }
        all += count;
    }
    all
}

#[test]
fn readable_waits_until_there_is_data() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let fd = AsyncFd::new(a).unwrap();
        let mut readable = waiting(fd.readable());
        readable.still_waits();
        b.write_all(b"x").unwrap();
        let mut guard = readable.pin().await.unwrap();
        assert_eq!(drain(guard.get_inner()), 1);
        guard.clear_ready();
        drop(guard);
        drop(readable);
        waiting(fd.readable()).still_waits();
    });
}

#[test]
fn readiness_that_is_not_cleared_stays() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let fd = AsyncFd::new(a).unwrap();
        b.write_all(b"x").unwrap();
        for _ in 0..3 {
            let mut guard = fd.readable().await.unwrap();
            assert!(guard.ready().is_readable());
            guard.retain_ready();
        }
        // A guard that is dropped clears nothing either.
        drop(fd.readable().await.unwrap());
        fd.readable().await.unwrap().clear_ready();
        // The byte is there but no new edge has come. (`poll(2)` knows no edges.)
        if !is_level_triggered() {
            waiting(fd.readable()).still_waits();
        }
        b.write_all(b"y").unwrap();
        fd.readable().await.unwrap().retain_ready();
        assert_eq!(drain(fd.get_ref()), 2);
    });
}

#[test]
fn try_io_of_a_guard_clears_only_when_it_would_block() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let fd = AsyncFd::new(a).unwrap();
        b.write_all(b"abc").unwrap();
        let mut guard = fd.readable().await.unwrap();
        let mut buffer = [0; 2];
        let read = guard.try_io(|fd| fd.get_ref().read(&mut buffer));
        assert_eq!(read.unwrap().unwrap(), 2);
        let failed = guard.try_io(|_| Err::<(), _>(io::Error::from(ErrorKind::TimedOut)));
        assert_eq!(failed.unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
        drop(guard);
        let mut guard = fd.readable().await.unwrap();
        let read = guard.try_io(|fd| fd.get_ref().read(&mut buffer));
        assert_eq!(read.unwrap().unwrap(), 1);
        assert!(guard.try_io(|fd| fd.get_ref().read(&mut buffer)).is_err());
        drop(guard);
        waiting(fd.readable()).still_waits();
    });
}

#[test]
fn writing_is_ready_until_all_is_full() {
    on_all_kinds(|| async {
        let (a, b) = pair();
        let fd = AsyncFd::new(a).unwrap();
        let mut guard = fd.writable().await.unwrap();
        while guard.try_io(|fd| fd.get_ref().write(&[0; 4096])).is_ok() {}
        drop(guard);
        let mut writable = waiting(fd.writable());
        writable.still_waits();
        assert!(drain(&b) > 0);
        writable.pin().await.unwrap().retain_ready();
    });
}

#[test]
fn interest_decides_what_is_waited_for() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let fd = AsyncFd::with_interest(a, Interest::READABLE).unwrap();
        b.write_all(b"x").unwrap();
        fd.readable().await.unwrap().retain_ready();
        waiting(fd.writable()).still_waits();
        let (a, _b) = pair();
        let fd = AsyncFd::with_interest(a, Interest::WRITABLE).unwrap();
        fd.writable().await.unwrap().retain_ready();
    });
}

#[test]
fn ready_with_two_interests_returns_the_one_that_is_ready() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let fd = AsyncFd::new(a).unwrap();
        let mut guard = fd.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap();
        assert!(guard.ready().is_writable());
        guard.clear_ready_matching(Ready::WRITABLE);
        drop(guard);
        b.write_all(b"x").unwrap();
        let guard = fd.ready(Interest::READABLE).await.unwrap();
        assert!(guard.ready().is_readable());
    });
}

#[test]
fn the_end_of_the_peer_is_readiness() {
    on_all_kinds(|| async {
        let (a, b) = pair();
        let fd = AsyncFd::new(a).unwrap();
        let mut readable = waiting(fd.readable());
        drop(b);
        let guard = readable.pin().await.unwrap();
        assert!(guard.ready().is_read_closed());
    });
}

#[test]
fn many_may_wait_at_once_and_all_are_woken() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let fd = Arc::new(AsyncFd::new(a).unwrap());
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let fd = fd.clone();
                blitz_io::spawn(async move { fd.readable().await.unwrap().retain_ready() })
            })
            .collect();
        b.write_all(b"x").unwrap();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_cancelled_waiter_does_not_hold_back_the_others() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let fd = AsyncFd::new(a).unwrap();
        let first = waiting(fd.readable());
        let mut second = waiting(fd.readable());
        drop(first);
        b.write_all(b"x").unwrap();
        second.pin().await.unwrap().retain_ready();
    });
}

#[test]
fn a_descriptor_is_registered_once() {
    on_one_thread(async {
        #[derive(Debug)]
        struct Same(RawFd);
        impl AsRawFd for Same {
            fn as_raw_fd(&self) -> RawFd {
                self.0
            }
        }
        let (a, mut b) = pair();
        let raw = a.as_raw_fd();
        let fd = AsyncFd::new(a).unwrap();
        let error = AsyncFd::new(Same(raw)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let error = AsyncFd::try_new(Same(raw)).unwrap_err();
        let (same, cause) = error.into_parts();
        assert_eq!((same.0, cause.kind()), (raw, ErrorKind::AlreadyExists));
        // The failed attempts have not changed the first registration.
        b.write_all(b"x").unwrap();
        fd.readable().await.unwrap().retain_ready();
        // After deregistration the descriptor is free.
        let a = fd.into_inner();
        let again = AsyncFd::new(a).unwrap();
        again.readable().await.unwrap().retain_ready();
    });
}

#[test]
fn a_descriptor_that_cannot_wait_is_refused() {
    on_one_thread(async {
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let error = AsyncFd::new(file).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    });
}

#[test]
fn the_inner_value_can_be_borrowed_and_taken_out() {
    on_one_thread(async {
        let (a, _b) = pair();
        let raw = a.as_raw_fd();
        let mut fd = AsyncFd::new(a).unwrap();
        assert_eq!((fd.as_raw_fd(), fd.get_ref().as_raw_fd()), (raw, raw));
        fd.get_mut().set_nonblocking(true).unwrap();
        fd.writable_mut().await.unwrap().get_inner_mut().write_all(b"x").unwrap();
        assert_eq!(fd.into_inner().as_raw_fd(), raw);
    });
}

#[test]
fn async_io_and_try_io_take_closures() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let fd = Arc::new(AsyncFd::new(a).unwrap());
        let reading = {
            let fd = fd.clone();
            blitz_io::spawn(async move {
                fd.async_io(Interest::READABLE, |mut stream| stream.read(&mut [0; 8])).await
            })
        };
        b.write_all(b"abc").unwrap();
        assert!(reading.await.unwrap().unwrap() > 0);
        drain(fd.get_ref());
        let blocked = fd.try_io(Interest::READABLE, |mut stream| stream.read(&mut [0; 8]));
        assert_eq!(blocked.unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn without_a_runtime_it_panics() {
    panic_of(|| AsyncFd::new(pair().0)).says(&["there is no reactor running"]);
}

#[test]
fn interests_are_sets() {
    let both = Interest::READABLE | Interest::WRITABLE;
    assert_eq!(Interest::READABLE.add(Interest::WRITABLE), both);
    assert!(both.is_readable() && both.is_writable() && !both.is_error());
    assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
    let ready = Ready::READABLE | Ready::WRITE_CLOSED;
    assert!(ready.is_readable() && ready.is_write_closed() && ready.is_writable());
    assert!(Ready::EMPTY.is_empty() && !ready.is_empty());
    assert_eq!(ready - Ready::READABLE, Ready::WRITE_CLOSED);
    assert!(Ready::ALL.is_read_closed() && (Ready::ALL & Ready::READABLE) == Ready::READABLE);
    assert!(!format!("{both:?} {ready:?}").is_empty());
}

/// A value whose descriptor can become invalid.
#[derive(Debug)]
struct Changing(Arc<std::sync::atomic::AtomicI32>);

impl AsRawFd for Changing {
    fn as_raw_fd(&self) -> RawFd {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[test]
fn a_value_without_a_descriptor_is_refused_and_comes_back() {
    on_all_kinds(|| async {
        // No descriptor, and two numbers that are not open.
        for bad in [-1, -5, 1 << 20] {
            let value = || Changing(Arc::new(bad.into()));
            let error = AsyncFd::new(value()).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF), "{bad}");
            let error = AsyncFd::with_interest(value(), Interest::READABLE).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF), "{bad}");
            // SAFETY: the call returns an error, so nothing is registered.
            let error = unsafe { AsyncFd::register(value()) }.unwrap_err();
            let (value, cause) = error.into_parts();
            assert_eq!((value.as_raw_fd(), cause.raw_os_error()), (bad, Some(libc::EBADF)));
        }
    });
}

#[test]
fn a_value_that_has_lost_its_descriptor_is_dropped_in_peace() {
    on_all_kinds(|| async {
        let (a, mut b) = pair();
        let number = Arc::new(std::sync::atomic::AtomicI32::new(a.as_raw_fd()));
        let fd = AsyncFd::new(Changing(number.clone())).unwrap();
        number.store(-1, std::sync::atomic::Ordering::SeqCst);
        drop(fd);
        number.store(a.as_raw_fd(), std::sync::atomic::Ordering::SeqCst);
        // Closed elsewhere, while a copy is open.
        let copy = a.try_clone().unwrap();
        let other = AsyncFd::new(Changing(Arc::new(copy.as_raw_fd().into()))).unwrap();
        drop(copy);
        drop(other);
        // Events for the descriptors that are gone wake no task, and other descriptors work.
        b.write_all(b"x").unwrap();
        blitz_io::task::yield_now().await;
        let (c, mut d) = pair();
        let last = AsyncFd::new(c).unwrap();
        d.write_all(b"x").unwrap();
        last.readable().await.unwrap().retain_ready();
    });
}
