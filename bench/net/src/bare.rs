//! The echoes without a runtime: what the system's part of them costs.
//!
//! A thread has an epoll and both ends of its connections, and each event is a read and a
//! write. There are no tasks, wakers or queues, and no thread helps another. What a runtime
//! takes beyond this is its own; what it takes less it saves by fewer calls.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use crate::{
    client::MESSAGE,
    measure::{Metric, per_op},
    sockets::TRIPS,
};

/// As many as the runtimes take at a time.
const EVENTS: usize = 1024;

/// Runs a row. `None`: it has no such form.
pub(crate) fn run(row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
    Some(match row {
        "tcp_echo_1" => echoes(workers, budget, 1, tcp_pair),
        "tcp_echo_50" => echoes(workers, budget, 50, tcp_pair),
        "tcp_echo_500" => echoes(workers, budget, 500, tcp_pair),
        "udp_echo" => echoes(workers, budget, 1, udp_pair),
        "unix_echo" => echoes(workers, budget, 1, || UnixStream::pair().expect("two sockets")),
        _ => return None,
    })
}

/// An end of a connection.
trait End: AsFd + Send + 'static {
    fn read(&self, message: &mut [u8; MESSAGE]) -> io::Result<usize>;
    fn write(&self, message: &[u8; MESSAGE]) -> io::Result<usize>;
    fn does_not_block(&self);
}

macro_rules! ends {
    ($($end:ty: $read:path, $write:path;)*) => {$(
        impl End for $end {
            fn read(&self, message: &mut [u8; MESSAGE]) -> io::Result<usize> {
                $read(&mut &*self, message)
            }

            fn write(&self, message: &[u8; MESSAGE]) -> io::Result<usize> {
                $write(&mut &*self, message)
            }

            fn does_not_block(&self) {
                self.set_nonblocking(true).expect("a socket");
            }
        }
    )*};
}

ends!(
    TcpStream: Read::read, Write::write;
    UnixStream: Read::read, Write::write;
    UdpSocket: UdpSocket::recv, UdpSocket::send;
);

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let client = TcpStream::connect(listener.local_addr().expect("it is bound"));
    let (client, server) = (client.expect("it listens"), listener.accept().expect("one came").0);
    client.set_nodelay(true).expect("a tcp option");
    server.set_nodelay(true).expect("a tcp option");
    (client, server)
}

fn udp_pair() -> (UdpSocket, UdpSocket) {
    let bind = || UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (client, server) = (bind(), bind());
    client.connect(server.local_addr().expect("it is bound")).expect("it connects");
    server.connect(client.local_addr().expect("it is bound")).expect("it connects");
    (client, server)
}

fn echoes<E: End>(
    workers: usize,
    budget: Duration,
    connections: usize,
    pair: impl Fn() -> (E, E),
) -> Vec<Metric> {
    let each = TRIPS.div_ceil(connections);
    let (begin, end) = (Arc::new(Barrier::new(workers + 1)), Arc::new(Barrier::new(workers + 1)));
    for worker in 0..workers {
        let mine = (0..connections).filter(|number| number % workers == worker);
        let mut looping = Loop::new(mine.map(|_| pair()));
        let (begin, end) = (begin.clone(), end.clone());
        // It ends with the process.
        thread::spawn(move || {
            loop {
                begin.wait();
                looping.trips(each);
                end.wait();
            }
        });
    }
    per_op(budget, each * connections, || {
        begin.wait();
        end.wait();
    })
}

/// A thread's connections.
struct Loop<E> {
    epoll: OwnedFd,
    /// Clients have even places, and their servers the next.
    ends: Vec<E>,
    left: Vec<usize>,
}

impl<E: End> Loop<E> {
    fn new(pairs: impl Iterator<Item = (E, E)>) -> Self {
        // SAFETY: no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(epoll >= 0, "cannot make an epoll: {}", io::Error::last_os_error());
        // SAFETY: a new descriptor, which nobody else knows.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        let ends: Vec<E> = pairs.flat_map(|(client, server)| [client, server]).collect();
        for (place, end) in ends.iter().enumerate() {
            end.does_not_block();
            watch(&epoll, end.as_fd(), place);
        }
        Self { epoll, left: vec![0; ends.len() / 2], ends }
    }

    /// So many round trips on each.
    fn trips(&mut self, each: usize) {
        let Self { epoll, ends, left } = self;
        left.fill(each);
        let mut busy = left.len();
        let mut message = [3; MESSAGE];
        for client in ends.iter().step_by(2) {
            assert_eq!(client.write(&message).expect("there is room"), MESSAGE);
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        while busy > 0 {
            for place in wait(epoll, &mut events) {
                match ends[place].read(&mut message) {
                    Ok(count) => assert_eq!(count, MESSAGE, "a message comes whole"),
                    // The event that told of the connection, before there was anything.
                    Err(why) => {
                        assert_eq!(why.kind(), io::ErrorKind::WouldBlock, "{why}");
                        continue;
                    }
                }
                if place % 2 == 0 {
                    left[place / 2] -= 1;
                    if left[place / 2] == 0 {
                        busy -= 1;
                        continue;
                    }
                }
                assert_eq!(ends[place].write(&message).expect("there is room"), MESSAGE);
            }
        }
    }
}

fn watch(epoll: &OwnedFd, fd: BorrowedFd<'_>, place: usize) {
    let interest = libc::EPOLLIN | libc::EPOLLET;
    let mut event = libc::epoll_event { events: interest as u32, u64: place as u64 };
    // SAFETY: both are open, and the event is read during the call.
    let failed = unsafe {
        libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event)
    };
    assert_eq!(failed, 0, "cannot watch: {}", io::Error::last_os_error());
}

/// The places that have something to read.
fn wait<'a>(
    epoll: &OwnedFd,
    events: &'a mut [libc::epoll_event],
) -> impl Iterator<Item = usize> + use<'a> {
    // SAFETY: so many events have room.
    let found = unsafe {
        libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, -1)
    };
    let found = usize::try_from(found).unwrap_or_else(|_| {
        let why = io::Error::last_os_error();
        assert_eq!(why.kind(), io::ErrorKind::Interrupted, "cannot wait: {why}");
        0
    });
    events[..found].iter().map(|event| event.u64 as usize)
}
