//! The echoes without a runtime: the system's part of their cost.
//!
//! A thread has an epoll and both ends of its connections, and each event is a read and a write.
//! There are no tasks, wakers or queues, and no thread helps another. What a runtime costs beyond
//! this is its own; what it costs less it saves by fewer calls.
//!
//! `bare-crossed` has the ends of each connection on different threads, if there are two: what one
//! core sends the other must fetch.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use harness::measure::{Metric, per_op};

use crate::{client::MESSAGE, sockets::TRIPS};

/// The number of events fetched at a time, as many as the runtimes do.
const EVENTS: usize = 1024;

/// The number of the eventfd among the registered descriptors.
const NOTIFIER: u64 = u64::MAX;

/// Runs a row; `None` if it has no such form.
pub(crate) fn run(
    row: &str,
    workers: usize,
    budget: Duration,
    crossed: bool,
) -> Option<Vec<Metric>> {
    let far = usize::from(crossed);
    Some(match row {
        "tcp_echo_1" => echoes(workers, far, budget, 1, tcp_pair),
        "tcp_echo_50" => echoes(workers, far, budget, 50, tcp_pair),
        "tcp_echo_500" => echoes(workers, far, budget, 500, tcp_pair),
        "udp_echo" => echoes(workers, far, budget, 1, udp_pair),
        "unix_echo" => echoes(workers, far, budget, 1, || UnixStream::pair().expect("two sockets")),
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

/// Runs echoes; the server of a connection is on the thread that is `far` places from the client's.
fn echoes<E: End>(
    workers: usize,
    far: usize,
    budget: Duration,
    connections: usize,
    pair: impl Fn() -> (E, E),
) -> Vec<Metric> {
    let each = TRIPS.div_ceil(connections);
    let mut loops: Vec<_> = (0..workers).map(|_| Loop::new()).collect();
    for number in 0..connections {
        let (client, server) = pair();
        loops[number % workers].add(client, true);
        loops[(number + far) % workers].add(server, false);
    }
    let notifiers: Vec<_> = loops.iter().map(|looping| looping.notifier.clone()).collect();
    let all = Arc::new(All { left: AtomicUsize::new(0), notifiers });
    let (begin, end) = (Arc::new(Barrier::new(workers + 1)), Arc::new(Barrier::new(workers + 1)));
    for mut looping in loops {
        let (all, begin, end) = (all.clone(), begin.clone(), end.clone());
        // The thread ends with the process.
        thread::spawn(move || {
            loop {
                begin.wait();
                looping.trips(each, &all);
                end.wait();
            }
        });
    }
    per_op(budget, each * connections, || {
        all.left.store(connections, SeqCst);
        begin.wait();
        end.wait();
    })
}

/// The state that the threads share.
struct All {
    /// The number of connections that have trips to make.
    left: AtomicUsize,
    notifiers: Vec<Arc<OwnedFd>>,
}

/// The connection ends of one thread.
struct Loop<E> {
    epoll: OwnedFd,
    /// An eventfd that is written when there is nothing left to do.
    notifier: Arc<OwnedFd>,
    /// The stream, whether it is a client's, and how many trips it has to make.
    ends: Vec<(E, bool, usize)>,
}

/// Takes ownership of a descriptor that a call has just created.
fn owned(fd: libc::c_int) -> OwnedFd {
    assert!(fd >= 0, "no descriptor: {}", io::Error::last_os_error());
    // SAFETY: the descriptor is new, and no other code owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

impl<E: End> Loop<E> {
    fn new() -> Self {
        // SAFETY: the call takes no pointers.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) });
        // SAFETY: the call takes no pointers.
        let notifier = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) });
        watch(&epoll, notifier.as_fd(), NOTIFIER);
        Self { epoll, notifier: Arc::new(notifier), ends: Vec::new() }
    }

    fn add(&mut self, end: E, is_client: bool) {
        end.does_not_block();
        watch(&self.epoll, end.as_fd(), self.ends.len() as u64);
        self.ends.push((end, is_client, 0));
    }

    /// Makes `each` round trips on each connection, until all threads have made theirs.
    fn trips(&mut self, each: usize, all: &All) {
        let Self { epoll, ends, .. } = self;
        let mut message = [3; MESSAGE];
        for (client, _, left) in ends.iter_mut().filter(|end| end.1) {
            *left = each;
            assert_eq!(client.write(&message).expect("there is room"), MESSAGE);
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        while all.left.load(SeqCst) > 0 {
            for token in wait(epoll, &mut events) {
                let Some((end, is_client, left)) = ends.get_mut(token) else { continue };
                match end.read(&mut message) {
                    Ok(count) => assert_eq!(count, MESSAGE, "a message comes whole"),
                    // The first event of a connection comes before there is anything to read.
                    Err(why) => {
                        assert_eq!(why.kind(), io::ErrorKind::WouldBlock, "{why}");
                        continue;
                    }
                }
                if *is_client {
                    *left -= 1;
                    if *left == 0 {
                        if all.left.fetch_sub(1, SeqCst) == 1 {
                            all.notifiers.iter().for_each(|notifier| notify(notifier));
                        }
                        continue;
                    }
                }
                assert_eq!(end.write(&message).expect("there is room"), MESSAGE);
            }
        }
    }
}

/// Causes an event for the threads that watch the eventfd; it is never read.
fn notify(notifier: &OwnedFd) {
    let one = 1_u64.to_ne_bytes();
    // SAFETY: the eight bytes live during the call.
    let written = unsafe { libc::write(notifier.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    assert_eq!(written, 8, "cannot notify: {}", io::Error::last_os_error());
}

fn watch(epoll: &OwnedFd, fd: BorrowedFd<'_>, token: u64) {
    let interest = libc::EPOLLIN | libc::EPOLLET;
    let mut event = libc::epoll_event { events: interest as u32, u64: token };
    // SAFETY: both descriptors are open, and the event lives during the call.
    let failed = unsafe {
        libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event)
    };
    assert_eq!(failed, 0, "cannot watch: {}", io::Error::last_os_error());
}

/// Waits, and returns the numbers of the descriptors that have something to read.
fn wait<'a>(
    epoll: &OwnedFd,
    events: &'a mut [libc::epoll_event],
) -> impl Iterator<Item = usize> + use<'a> {
    // SAFETY: the call writes at most `events.len()` events, for which the buffer has room.
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
