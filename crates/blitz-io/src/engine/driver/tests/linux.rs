//! What a driver must do on Linux, where more is told.

use std::{
    fs::File,
    io::{ErrorKind, Write},
    net::{TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd},
};

use super::{each, fd, look, run};
use crate::engine::driver::{
    IoBackend, backend::Selector, interest::Interest, ready::Ready, uring::Uring,
};

#[test]
fn a_file_is_refused() {
    each(|driver| {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let why = driver.register(fd(&file), Interest::READABLE).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::PermissionDenied);
        assert_eq!(driver.registered_count(), 0);
    });
}

#[test]
fn urgent_data_is_told_to_who_asks_for_it() {
    each(|driver| {
        if let Selector::Other(_) = driver.selector {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let registration = driver.register(fd(&near), Interest::PRIORITY).unwrap();
        assert_eq!(look(driver), 0);
        // SAFETY: one byte that lives during the call.
        let sent = unsafe { libc::send(far.as_raw_fd(), b"!".as_ptr().cast(), 1, libc::MSG_OOB) };
        assert_eq!(sent, 1);
        let event = run(driver, registration.readiness(Interest::PRIORITY)).unwrap();
        assert_eq!(event.ready(), Ready::PRIORITY);
    });
}

/// A socket's waker in the kernel speaks of urgent data with every byte.
#[test]
fn a_byte_as_any_other_is_not_urgent() {
    each(|driver| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let interest = Interest::READABLE | Interest::PRIORITY;
        let registration = driver.register(near.as_fd(), interest).unwrap();
        assert_eq!(look(driver), 0);
        far.write_all(b"x").unwrap();
        let event = run(driver, registration.readiness(interest)).unwrap();
        assert_eq!(event.ready(), Ready::READABLE);
    });
}

/// Else the tests that want each mechanism would have epoll twice and not know it.
#[test]
fn io_uring_is_used_where_it_is_had() {
    let selector = Selector::new(Some(IoBackend::Uring)).unwrap();
    assert_eq!(matches!(selector, Selector::Uring(_)), Uring::new().is_ok());
}
