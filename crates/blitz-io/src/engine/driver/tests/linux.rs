//! The requirements on a driver on Linux, where the system reports more.

use std::{
    fs::File,
    io::{ErrorKind, Write},
    net::{TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd},
};

use super::{each, fd, look, run};
use crate::engine::driver::{
    IoBackend, backend::Selector, interest::Interest, ready::Ready, uring::UringSelector,
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

/// A change of the mounts is reported as urgent data of this file.
#[test]
fn a_file_that_reports_changes_is_accepted() {
    each(|driver| {
        let mounts = File::open("/proc/self/mounts").unwrap();
        let registration = driver.register(fd(&mounts), Interest::PRIORITY).unwrap();
        registration.deregister(fd(&mounts)).unwrap();
        let status = File::open("/proc/self/status").unwrap();
        let why = driver.register(fd(&status), Interest::PRIORITY).unwrap_err();
        assert_eq!(why.raw_os_error(), Some(libc::EPERM));
    });
}

#[test]
fn urgent_data_is_reported_on_request() {
    each(|driver| {
        if let Selector::Polling(_) = driver.selector {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let registration = driver.register(fd(&near), Interest::PRIORITY).unwrap();
        assert_eq!(look(driver), 0);
        // SAFETY: the one byte is static, so it outlives the call.
        let sent = unsafe { libc::send(far.as_raw_fd(), b"!".as_ptr().cast(), 1, libc::MSG_OOB) };
        assert_eq!(sent, 1);
        let event = run(driver, registration.readiness(Interest::PRIORITY)).unwrap();
        assert_eq!(event.ready(), Ready::PRIORITY);
    });
}

/// In the kernel, a socket's wake-up reports urgent data with every byte.
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

#[test]
fn io_uring_is_used_where_it_is_had_and_refused_where_it_is_not() {
    match (Selector::new(Some(IoBackend::Uring)), UringSelector::new()) {
        (Ok(selector), Ok(_)) => assert_eq!(selector.backend(), IoBackend::Uring),
        (Err(why), Err(_)) => assert!(why.to_string().contains("IoBackend::Auto"), "{why}"),
        (requested, direct) => panic!("{requested:?} though {direct:?}"),
    }
}
