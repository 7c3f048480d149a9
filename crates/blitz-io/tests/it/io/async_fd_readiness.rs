//! `AsyncFd`: readiness of any descriptor.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    sync::Arc,
};

use blitz_io::io::{Interest, Ready, unix::AsyncFd};

use crate::{
    caught::panic_of,
    on::{each, one},
    polled::waiting,
};

fn pair() -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
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
    each(|| async {
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

/// Returns true if readiness that was cleared, and still holds, is reported again.
fn tells_again() -> bool {
    std::env::var("BLITZ_IO_BACKEND").is_ok_and(|name| name.eq_ignore_ascii_case("poll"))
}

#[test]
fn readiness_that_is_not_cleared_stays() {
    each(|| async {
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
        if !tells_again() {
            waiting(fd.readable()).still_waits();
        }
        b.write_all(b"y").unwrap();
        fd.readable().await.unwrap().retain_ready();
        assert_eq!(drain(fd.get_ref()), 2);
    });
}

#[test]
fn try_io_of_a_guard_clears_only_when_it_would_block() {
    each(|| async {
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
    each(|| async {
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
    each(|| async {
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
    each(|| async {
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
    each(|| async {
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
    each(|| async {
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
    each(|| async {
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
    one(async {
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
    one(async {
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let error = AsyncFd::new(file).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    });
}

#[test]
fn the_inner_value_can_be_borrowed_and_taken_out() {
    one(async {
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
    each(|| async {
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
    each(|| async {
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
    each(|| async {
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
