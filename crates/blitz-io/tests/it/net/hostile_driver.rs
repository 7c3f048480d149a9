//! Tests sockets and pipes that change their state after they reported an event to the driver,
//! sockets that are dropped while waits on them are leaked, and backends that the system refuses.
#![cfg(all(target_os = "linux", feature = "net", feature = "time", feature = "io-util"))]

use std::{
    fs::{File, OpenOptions},
    future::Future,
    io::Write,
    mem::{forget, size_of},
    os::fd::AsRawFd,
    path::Path,
    sync::mpsc,
    task::{Context, Waker},
    time::Duration,
};

use blitz_io::{
    io::{AsyncReadExt, Interest},
    net::{TcpStream, UnixStream, unix::pipe},
    runtime::{Builder, IoBackend, Preemption},
    time::timeout,
};

use crate::support::{runtimes::one_thread_with_drivers, temp_files::make_fifo, watchdog};

/// A time that is long enough for code that does not hang, and short enough to wait for.
const SOON: Duration = Duration::from_millis(50);

fn open_writer(path: &Path) -> File {
    OpenOptions::new().write(true).open(path).unwrap()
}

/// When the first writer closes a FIFO, the reader is at its end; once a second writer has opened
/// it, there is no end and nothing to read.
#[test]
fn a_fifo_with_a_second_writer_is_waited_for() {
    let _watch = watchdog::start();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fifo");
    make_fifo(&path);
    one_thread_with_drivers().block_on(async {
        let mut receiver = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        let mut bytes = [0; 8];
        let mut first = open_writer(&path);
        first.write_all(b"1").unwrap();
        assert_eq!(receiver.read(&mut bytes).await.unwrap(), 1);
        drop(first);
        // Waits until the driver has reported the end, too; `poll` reports it only to a task that
        // waits.
        for _ in 0..100_000 {
            if receiver.ready(Interest::READABLE).await.unwrap().is_read_closed() {
                break;
            }
            blitz_io::task::yield_now().await;
        }
        assert_eq!(receiver.read(&mut bytes).await.unwrap(), 0);
        let mut second = open_writer(&path);
        assert!(timeout(SOON, receiver.read(&mut bytes)).await.is_err(), "nothing was written");
        second.write_all(b"22").unwrap();
        assert_eq!(receiver.read(&mut bytes).await.unwrap(), 2);
    });
}

fn send_with_descriptor(socket: &std::os::unix::net::UnixStream, bytes: &[u8]) {
    #[repr(align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut piece =
        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all zeros are a valid empty `msghdr`. The buffers belong to this function, live
    // until the call returns, and have room for one descriptor.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<i32>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as _;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(socket.as_raw_fd());
        libc::sendmsg(socket.as_raw_fd(), &raw const message, 0)
    };
    assert_eq!(sent, bytes.len() as isize);
}

/// The kernel ends a read behind the bytes that came with a descriptor, although there are more.
#[test]
fn a_read_that_ends_at_a_descriptor_does_not_forget_what_is_behind_it() {
    let _watch = watchdog::start();
    one_thread_with_drivers().block_on(async {
        let (theirs, ours) = std::os::unix::net::UnixStream::pair().unwrap();
        send_with_descriptor(&theirs, b"one");
        (&theirs).write_all(b"four").unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = UnixStream::from_std(ours).unwrap();
        let mut bytes = [0; 16];
        assert_eq!(ours.read(&mut bytes).await.unwrap(), 3);
        let second = timeout(Duration::from_secs(5), ours.read(&mut bytes)).await;
        assert_eq!(second.expect("four bytes lie there").unwrap(), 4);
    });
}

/// The waits are leaked, so they stay in the socket's wait queues when it is dropped.
#[test]
fn a_socket_whose_waits_were_forgotten_can_be_dropped_and_its_place_used_again() {
    let _watch = watchdog::start();
    one_thread_with_drivers().block_on(async {
        for _ in 0..3 {
            let (one, other) = UnixStream::pair().unwrap();
            let mut cx = Context::from_waker(Waker::noop());
            let mut wait = Box::pin(one.readable());
            assert!(wait.as_mut().poll(&mut cx).is_pending());
            forget(wait);
            drop(one);
            other.readable().await.unwrap();
            let (one, other) = UnixStream::pair().unwrap();
            other.try_write(b"x").unwrap();
            one.readable().await.unwrap();
        }
    });
}

/// One worker gets stuck in the poll for which an event woke it, until a second event has been
/// dispatched; the other worker sleeps.
#[test]
fn an_event_is_dispatched_while_the_worker_of_the_last_one_is_stuck() {
    let _watch = watchdog::start();
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .preemption(Preemption::new())
        .enable_all()
        .build()
        .expect("a runtime");
    let pair = || {
        let (theirs, ours) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (theirs, ours)
    };
    for _ in 0..10 {
        let ((mut calls, called), (mut frees, freed)) = (pair(), pair());
        let (is_stuck, stuck) = mpsc::channel();
        let (is_done, done) = mpsc::channel();
        rt.spawn(async move {
            UnixStream::from_std(called).unwrap().read_u8().await.unwrap();
            is_stuck.send(()).unwrap();
            done.recv().unwrap();
        });
        let waits = rt.spawn(async move {
            UnixStream::from_std(freed).unwrap().read_u8().await.unwrap();
            is_done.send(()).unwrap();
        });
        // Both tasks wait, and both workers sleep.
        watchdog::until(|| rt.metrics().worker_park_unpark_count(0) % 2 == 1);
        watchdog::until(|| rt.metrics().worker_park_unpark_count(1) % 2 == 1);
        calls.write_all(b"x").unwrap();
        stuck.recv().unwrap();
        frees.write_all(b"x").unwrap();
        // Not by `block_on`, whose wake-up would wake a worker.
        watchdog::until(|| waits.is_finished());
    }
}

/// The kernel ends a read in front of a byte that was sent out of band.
#[test]
fn a_read_that_ends_at_an_urgent_byte_does_not_forget_what_is_behind_it() {
    let _watch = watchdog::start();
    one_thread_with_drivers().block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut theirs = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        theirs.write_all(b"one").unwrap();
        socket2::SockRef::from(&theirs).send_out_of_band(b"!").unwrap();
        theirs.write_all(b"four").unwrap();
        // All bytes arrive before the first read.
        let mut all = [0; 16];
        watchdog::until(|| {
            let mut unread: libc::c_int = 0;
            // SAFETY: the call writes one integer, to `unread`.
            unsafe { libc::ioctl(ours.as_raw_fd(), libc::FIONREAD, &raw mut unread) };
            // The bytes in front of the urgent byte, or all if the kernel counts those behind it.
            unread >= 3
        });
        ours.set_nonblocking(true).unwrap();
        let mut ours = TcpStream::from_std(ours).unwrap();
        let mut read = ours.read(&mut all).await.unwrap();
        while read < 7 {
            let more = timeout(Duration::from_secs(5), ours.read(&mut all[read..])).await;
            read += more.expect("four bytes lie there").unwrap();
        }
        assert_eq!(&all[..7], b"onefour");
    });
}

#[test]
fn a_runtime_returns_its_io_backend() {
    let _watch = watchdog::start();
    // The environment variable would override the setting.
    if std::env::var_os("BLITZ_IO_BACKEND").is_some() {
        return;
    }
    assert_eq!(one_thread_with_drivers().handle().io_backend(), Some(IoBackend::Epoll));
    assert_eq!(Builder::new_current_thread().build().unwrap().handle().io_backend(), None);
    for backend in [IoBackend::Poll, IoBackend::Epoll, IoBackend::Uring] {
        // Some systems refuse io_uring, so the build fails.
        if let Ok(rt) = Builder::new_current_thread().io_backend(backend).enable_io().build() {
            assert_eq!(rt.handle().io_backend(), Some(backend));
        } else {
            assert_eq!(backend, IoBackend::Uring);
        }
    }
}

/// A system call filter stays with its thread, so each case runs on its own thread.
#[cfg(target_arch = "x86_64")]
#[test]
fn where_epoll_is_refused_poll_takes_its_place_unless_epoll_was_requested() {
    use blitz_io::io::AsyncWriteExt;

    let _watch = watchdog::start();
    if std::env::var_os("BLITZ_IO_BACKEND").is_some() {
        return;
    }
    let refused = std::thread::spawn(|| {
        crate::support::syscall_filter::forbid(libc::SYS_epoll_create1, 0);
        let rt = one_thread_with_drivers();
        assert_eq!(rt.handle().io_backend(), Some(IoBackend::Poll));
        rt.block_on(async {
            let (mut near, mut far) = UnixStream::pair().unwrap();
            let reading = blitz_io::spawn(async move {
                let mut bytes = [0; 3];
                near.read_exact(&mut bytes).await.unwrap();
                bytes
            });
            blitz_io::task::yield_now().await;
            far.write_all(b"abc").await.unwrap();
            assert_eq!(reading.await.unwrap(), *b"abc");
        });
        Builder::new_current_thread().io_backend(IoBackend::Epoll).enable_io().build()
    });
    let why = refused.join().unwrap().unwrap_err();
    assert_eq!(why.kind(), std::io::ErrorKind::Unsupported);
    let text = why.to_string();
    for part in
        ["epoll is refused here", "os error 1", "`IoBackend::Auto`", "unset BLITZ_IO_BACKEND"]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_requested_uring_that_is_refused_is_an_error() {
    let _watch = watchdog::start();
    if std::env::var_os("BLITZ_IO_BACKEND").is_some() {
        return;
    }
    let refused = std::thread::spawn(|| {
        crate::support::syscall_filter::forbid(libc::SYS_io_uring_setup, 0);
        Builder::new_current_thread().io_backend(IoBackend::Uring).enable_io().build()
    });
    let text = refused.join().unwrap().unwrap_err().to_string();
    for part in ["uring is refused here", "`IoBackend::Auto`", "blitz doctor"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}
