//! The requirements on a driver on every Unix, where Windows behaves differently.

use std::{
    future::poll_fn,
    io::{self, ErrorKind, Write},
    net::UdpSocket,
    os::unix::{net::UnixStream as Stream, thread::JoinHandleExt},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use super::{BOTH, each, fd, look, pair, poll_ready, reports_closed_ends, run};
use crate::engine::{
    driver::{Direction, Driver, Registration, interest::Interest, ready::Ready},
    wait::test_waker::CountingWaker,
};

#[test]
fn a_pipe_without_a_reader_is_closed_for_its_writer() {
    each(|driver| {
        let (reader, writer) = io::pipe().unwrap();
        let registration = driver.register(fd(&writer), Interest::WRITABLE).unwrap();
        drop(reader);
        while look(driver) > 0 {}
        let ready = registration.ready_event(Interest::WRITABLE | Interest::ERROR).ready();
        assert!(ready.is_writable(), "{ready:?}");
        if reports_closed_ends(driver) {
            assert!(ready.is_write_closed() && ready.is_error(), "{ready:?}");
        }
    });
}

/// Closes another socket from within the wake-up of the first, while the turn has collected events
/// of both. (On Windows each may come in a turn of its own.)
#[test]
fn a_descriptor_closed_within_a_turn_gets_no_event_of_it() {
    struct Closes {
        other: Mutex<Option<(Registration, Stream)>>,
        driver: Arc<Driver>,
        next: Mutex<Option<(Registration, Stream, Stream)>>,
    }
    impl Wake for Closes {
        fn wake(self: Arc<Self>) {
            let Some((registration, stream)) = self.other.lock().unwrap().take() else { return };
            registration.deregister(fd(&stream)).unwrap();
            drop((registration, stream));
            let (near, far) = pair();
            let next = self.driver.register(fd(&near), Interest::READABLE).unwrap();
            *self.next.lock().unwrap() = Some((next, near, far));
        }
    }
    each(|driver| {
        let (sockets, mut wakers) = ([pair(), pair()], Vec::new());
        let [first, second] =
            [0, 1].map(|at| driver.register(fd(&sockets[at].0), Interest::READABLE).unwrap());
        let [(near, mut far), (other, mut distant)] = sockets;
        let closes = Arc::new(Closes {
            other: Mutex::new(Some((second, other))),
            driver: driver.clone(),
            next: Mutex::new(None),
        });
        let waker = Waker::from(closes.clone());
        assert!(first.poll_ready(&mut Context::from_waker(&waker), Direction::Read).is_pending());
        wakers.push(waker);
        far.write_all(b"x").unwrap();
        distant.write_all(b"x").unwrap();
        assert_eq!(look(driver), 2);
        while look(driver) > 0 {}
        let next = closes.next.lock().unwrap().take().expect("the waker was called");
        assert_eq!(next.0.ready_event(Interest::READABLE).ready(), Ready::EMPTY);
        drop((first, near));
    });
}

/// Signals interrupt the wait repeatedly, and it still lasts as long as its timeout.
#[test]
fn a_signal_does_not_end_a_turn() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing; without SA_RESTART system calls return EINTR. No other code
    // in this process uses the signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    each(|driver| {
        let (begin, ended) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
        let waiting = thread::spawn({
            let (driver, begin, ended) = (driver.clone(), begin.clone(), ended.clone());
            move || {
                begin.wait();
                let start = Instant::now();
                let count = driver.try_lock().unwrap().turn(Some(Duration::from_millis(30)));
                let elapsed = start.elapsed();
                ended.store(true, SeqCst);
                (count, elapsed)
            }
        });
        begin.wait();
        let mut sent = 0;
        while !ended.load(SeqCst) {
            // An integer in std, but an address in some C libraries.
            let thread = waiting.as_pthread_t() as libc::pthread_t;
            // SAFETY: the thread has not been joined yet, so its handle is valid.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
            sent += 1;
            thread::yield_now();
        }
        let (count, elapsed) = waiting.join().unwrap();
        assert_eq!(count.unwrap(), 0);
        assert!(elapsed >= Duration::from_millis(30), "{elapsed:?} after {sent} signals");
    });
}

/// Windows reports a reset instead, if anything.
#[test]
fn an_unreachable_peer_is_reported_to_a_reader() {
    each(|driver| {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = gone.local_addr().unwrap();
        drop(gone);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.connect(address).unwrap();
        let registration = driver.register(fd(&socket), BOTH).unwrap();
        while look(driver) > 0 {}
        let counter = CountingWaker::new();
        assert!(poll_ready(&registration, &counter, Direction::Read).is_pending());
        socket.send(b"datagram").unwrap();
        let result = run(
            driver,
            poll_fn(|cx| registration.poll_io(cx, Direction::Read, || socket.recv(&mut [0; 8]))),
        );
        assert_eq!(result.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}
