//! The requirements that only the io_uring selector has: polls belong to threads, keep files open,
//! and must be restarted.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::UringSelector;
use crate::engine::driver::{
    Driver, DriverConfig, IoBackend, Registration, backend::Events, interest::Interest,
    limits::allow_descriptors, ready::Ready, record_table::Token,
};

const LONG: Duration = Duration::from_secs(30);
const NOW: Option<Duration> = Some(Duration::ZERO);

/// Creates a selector; returns `None` if this system has no io_uring, not even one without options.
fn uring() -> Option<(Arc<UringSelector>, Events)> {
    match UringSelector::new() {
        Ok(uring) => Some((Arc::new(uring), Events::new(1024))),
        Err(why) if why.kind() == ErrorKind::Unsupported => None,
        Err(why) => {
            let direct = io_uring::IoUring::new(1).and_then(|uring| uring.submit());
            assert!(direct.is_err(), "the kernel has it, and we have not: {why}");
            None
        }
    }
}

fn pair() -> (UnixStream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    far.set_nonblocking(true).unwrap();
    (near, far)
}

fn token(number: u64) -> Token {
    Token::from_bits(number)
}

/// Returns the events of one wait.
fn found(
    uring: &UringSelector,
    events: &mut Events,
    timeout: Option<Duration>,
) -> Vec<(u64, Ready)> {
    events.found.clear();
    uring.wait(events, timeout).unwrap();
    events.found.iter().map(|event| (event.token.bits(), event.ready)).collect()
}

/// Returns the events of waits with a zero timeout, until one finds none, sorted by token.
fn all_found(uring: &UringSelector, events: &mut Events) -> Vec<(u64, Ready)> {
    let mut all = Vec::new();
    while let more = found(uring, events, NOW)
        && !more.is_empty()
    {
        all.extend(more);
    }
    all.sort_by_key(|(token, _)| *token);
    all
}

/// Starts a thread that waits for signals in the selector until the returned flag is set.
fn waiting(
    uring: &Arc<UringSelector>,
) -> (thread::JoinHandle<()>, Arc<std::sync::atomic::AtomicBool>) {
    let end = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let thread = thread::spawn({
        let (uring, end) = (uring.clone(), end.clone());
        move || {
            let mut events = Events::new(16);
            while !end.load(std::sync::atomic::Ordering::SeqCst) {
                found(&uring, &mut events, Some(LONG));
            }
        }
    });
    (thread, end)
}

#[test]
fn a_poll_whose_thread_has_ended_begins_again() {
    let Some((uring, mut events)) = uring() else { return };
    let (near, mut far) = pair();
    uring.add(near.as_fd(), token(7), Interest::READABLE).unwrap();
    thread::scope(|scope| {
        let arms = || assert_eq!(found(&uring, &mut Events::new(8), NOW), []);
        scope.spawn(arms).join().unwrap();
    });
    // The event comes only when the thread has exited completely, with its polls, which ends a
    // wait.
    let begun = Instant::now();
    far.write_all(b"x").unwrap();
    while found(&uring, &mut events, Some(LONG)) != [(7, Ready::READABLE)] {
        assert!(begun.elapsed() < LONG, "the poll has ended with its thread");
    }
    let mut bytes = [0; 8];
    assert_eq!((&near).read(&mut bytes).unwrap(), 1);
    far.write_all(b"y").unwrap();
    assert_eq!(found(&uring, &mut events, Some(LONG)), [(7, Ready::READABLE)]);
}

/// The poll belongs to the waiting thread, and this thread closes the listener.
#[test]
fn the_port_of_a_listener_is_free_when_it_was_removed() {
    let Some((uring, mut events)) = uring() else { return };
    for others in [false, true] {
        let waits = others.then(|| waiting(&uring));
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        for round in 0..100 {
            uring.add(listener.as_fd(), token(round), Interest::READABLE).unwrap();
            if others {
                // Waits until the poll is pushed.
                while uring.table.lock().armed().is_empty() {
                    thread::yield_now();
                }
            } else {
                assert_eq!(found(&uring, &mut events, NOW), []);
            }
            uring.remove(listener.as_fd(), token(round)).unwrap();
            drop(listener);
            listener = TcpListener::bind(address).expect("the uring keeps the listener open");
        }
        if let Some((thread, end)) = waits {
            end.store(true, std::sync::atomic::Ordering::SeqCst);
            uring.signal();
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_token_removed_before_it_is_armed_never_reaches_the_kernel() {
    let Some((uring, mut events)) = uring() else { return };
    let (near, mut far) = pair();
    uring.add(near.as_fd(), token(1), Interest::READABLE).unwrap();
    uring.remove(near.as_fd(), token(1)).unwrap();
    uring.add(near.as_fd(), token(2), Interest::READABLE).unwrap();
    let twice = uring.add(near.as_fd(), token(3), Interest::READABLE).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
    far.write_all(b"x").unwrap();
    assert_eq!(found(&uring, &mut events, NOW), [(2, Ready::READABLE)]);
}

/// A registration that is dropped without being removed releases its file as well.
#[test]
fn a_registration_dropped_without_removal_closes_its_file() {
    let Some((uring, mut events)) = uring() else { return };
    let (near, far) = pair();
    uring.add(near.as_fd(), token(1), Interest::READABLE).unwrap();
    found(&uring, &mut events, NOW);
    drop(OwnedFd::from(near));
    assert_eq!((&far).read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    uring.forget(token(1));
    assert_eq!((&far).read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(found(&uring, &mut events, NOW), []);
}

#[test]
fn completions_for_which_there_is_no_room_are_not_lost() {
    let Some((uring, mut events)) = uring() else { return };
    let sockets: Vec<_> = (0..4).map(|_| pair()).collect();
    for (number, (near, _)) in sockets.iter().enumerate() {
        uring.add(near.as_fd(), token(number as u64), Interest::READABLE).unwrap();
    }
    assert_eq!(found(&uring, &mut events, NOW), []);
    for (near, far) in &sockets {
        for _ in 0..2 * super::COMPLETIONS {
            (&*far).write_all(b"x").unwrap();
            assert_eq!((&*near).read(&mut [0; 8]).unwrap(), 1);
        }
    }
    events.limit = 100;
    let mut reported = [0; 4];
    loop {
        let found = found(&uring, &mut events, NOW);
        assert!(found.len() <= 100, "more than a turn takes");
        if found.is_empty() {
            break;
        }
        found.iter().for_each(|(token, _)| reported[*token as usize] += 1);
    }
    assert!(reported.iter().all(|count| *count > 0), "{reported:?}");
    for (number, (_, far)) in sockets.iter().enumerate() {
        (&*far).write_all(b"x").unwrap();
        assert_eq!(found(&uring, &mut events, Some(LONG)), [(number as u64, Ready::READABLE)]);
    }
}

/// No thread reaps while all descriptors become ready, and most of their polls end for want of
/// room. Restarted polls report writability too, which is always true here.
#[test]
fn very_many_that_are_ready_at_once_are_reported_once() {
    let Some((uring, mut events)) = uring() else { return };
    if !allow_descriptors(4 * u64::from(super::COMPLETIONS)) {
        return;
    }
    let sockets: Vec<_> = (0..2 * super::COMPLETIONS as usize).map(|_| pair()).collect();
    let both = Interest::READABLE | Interest::WRITABLE;
    for (number, (near, _)) in sockets.iter().enumerate() {
        uring.add(near.as_fd(), token(number as u64), both).unwrap();
    }
    assert_eq!(all_found(&uring, &mut events).len(), sockets.len());
    sockets.iter().for_each(|(_, far)| (&*far).write_all(b"x").unwrap());
    let reported = all_found(&uring, &mut events);
    for number in 0..sockets.len() as u64 {
        let of_one = reported.iter().filter(|(token, _)| *token == number);
        assert!(of_one.clone().any(|(_, ready)| ready.is_readable()), "{number}");
        assert!(of_one.count() <= 8, "{number} is reported again and again");
    }
    for (number, (near, _)) in sockets.iter().enumerate() {
        uring.remove(near.as_fd(), token(number as u64)).unwrap();
    }
    drop(sockets);
    assert_eq!(all_found(&uring, &mut events), []);
}

/// After the kernel has lost a completion, it is unknown which poll it belonged to.
#[test]
fn every_poll_begins_again_when_a_completion_was_lost() {
    let Some((uring, mut events)) = uring() else { return };
    let sockets: Vec<_> = (0..100).map(|_| pair()).collect();
    for (number, (near, _)) in sockets.iter().enumerate() {
        uring.add(near.as_fd(), token(number as u64), Interest::WRITABLE).unwrap();
    }
    let all: Vec<_> = (0..100).map(|number| (number, Ready::WRITABLE)).collect();
    assert_eq!(all_found(&uring, &mut events), all);
    uring.renew();
    assert_eq!(all_found(&uring, &mut events), all);
    uring.remove(sockets[5].0.as_fd(), token(5)).unwrap();
    assert_eq!(uring.table.lock().armed().len(), 99, "each has one poll");
}

#[test]
fn a_socket_added_while_another_thread_sleeps_is_reported() {
    let Some((uring, mut events)) = uring() else { return };
    for round in 0..50 {
        let (near, _far) = pair();
        thread::scope(|scope| {
            let sleeps = scope.spawn(|| found(&uring, &mut events, Some(LONG)));
            uring.add(near.as_fd(), token(round), Interest::WRITABLE).unwrap();
            assert_eq!(sleeps.join().unwrap(), [(round, Ready::WRITABLE)]);
        });
        uring.remove(near.as_fd(), token(round)).unwrap();
    }
}

#[test]
fn each_signal_ends_one_wait_and_a_poll_does_not_consume_it() {
    let Some((uring, mut events)) = uring() else { return };
    for _ in 0..3 {
        uring.signal();
        assert_eq!(found(&uring, &mut events, NOW), []);
        assert_eq!(found(&uring, &mut events, None), []);
        let begun = Instant::now();
        assert_eq!(found(&uring, &mut events, Some(Duration::from_millis(2))), []);
        assert!(begun.elapsed() >= Duration::from_millis(2), "the signal was heard again");
    }
    uring.signal();
    assert_eq!(found(&uring, &mut events, Some(Duration::MAX)), [], "a wait without end");
}

/// Creates a descriptor to watch, and an action on its peer.
type Prepare = fn() -> (OwnedFd, Box<dyn FnOnce()>);

/// The name of an action, its preparation, and the readiness that it must cause.
type Deed = (&'static str, Prepare, Ready);

fn streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    near.set_nonblocking(true).unwrap();
    (near, listener.accept().unwrap().0)
}

const DEEDS: &[Deed] = &[
    (
        "the peer writes no more",
        || {
            let (near, far) = streams();
            (near.into(), Box::new(move || far.shutdown(std::net::Shutdown::Write).unwrap()))
        },
        Ready::READ_CLOSED,
    ),
    (
        "the peer is closed",
        || {
            let (near, far) = pair();
            (near.into(), Box::new(move || drop(far)))
        },
        Ready::WRITE_CLOSED,
    ),
    (
        "a reset",
        || {
            let (near, mut far) = streams();
            (&near).write_all(b"x").unwrap();
            while far.peek(&mut [0; 1]).unwrap() == 0 {}
            let reset = move || {
                far.write_all(b"last words").unwrap();
                drop(far);
            };
            (near.into(), Box::new(reset))
        },
        Ready::WRITE_CLOSED,
    ),
    (
        "a pipe without a reader",
        || {
            let (reader, writer) = std::io::pipe().unwrap();
            (writer.into(), Box::new(move || drop(reader)))
        },
        Ready::WRITE_CLOSED,
    ),
    (
        "a pipe without a writer",
        || {
            let (reader, writer) = std::io::pipe().unwrap();
            (reader.into(), Box::new(move || drop(writer)))
        },
        Ready::READ_CLOSED,
    ),
    (
        "a datagram without a receiver",
        || {
            let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(gone).unwrap();
            let same = socket.try_clone().unwrap();
            (socket.into(), Box::new(move || assert_eq!(same.send(b"x").unwrap(), 1)))
        },
        Ready::ERROR,
    ),
    (
        "a datagram without a receiver, and one that is there",
        || {
            let [socket, far] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
            socket.connect(far.local_addr().unwrap()).unwrap();
            far.send_to(b"x", socket.local_addr().unwrap()).unwrap();
            assert_eq!(socket.peek(&mut [0; 1]).unwrap(), 1);
            drop(far);
            let same = socket.try_clone().unwrap();
            (socket.into(), Box::new(move || assert_eq!(same.send(b"x").unwrap(), 1)))
        },
        Ready::ERROR,
    ),
];

/// After each action the records have the same readiness as with epoll.
#[test]
fn events_are_those_of_epoll() {
    if uring().is_none() {
        return;
    }
    let driver = |backend| {
        Driver::new(DriverConfig { backend: Some(backend), ..DriverConfig::default() }).unwrap()
    };
    let drivers = [driver(IoBackend::Epoll), driver(IoBackend::Uring)];
    let (reads, writes) = (Interest::READABLE, Interest::WRITABLE);
    for (name, prepare, sign) in DEEDS {
        for interest in [reads, writes, reads | writes, reads | writes | Interest::PRIORITY] {
            let known = drivers.each_ref().map(|driver| after(driver, *prepare, interest, *sign));
            assert_eq!(known[0], known[1], "{name}, {interest:?}");
        }
    }
}

/// Returns the final readiness. Not every interest gets every flag: those cases wait a little.
fn after(driver: &Arc<Driver>, prepare: Prepare, interest: Interest, sign: Ready) -> Ready {
    let (fd, deed) = prepare();
    let registration = driver.register(fd.as_fd(), interest).unwrap();
    let turn = |wait| driver.try_lock().unwrap().turn(Some(wait)).unwrap();
    while turn(Duration::ZERO) > 0 {}
    deed();
    let begun = Instant::now();
    let all = |registration: &Registration| {
        let all = Interest::READABLE | Interest::WRITABLE | Interest::PRIORITY | Interest::ERROR;
        registration.ready_event(all).ready()
    };
    while !all(&registration).meets(sign) && begun.elapsed() < Duration::from_millis(50) {
        turn(Duration::from_millis(5));
    }
    while turn(Duration::from_millis(1)) > 0 {}
    registration.deregister(fd.as_fd()).unwrap();
    all(&registration)
}
