//! The client: a process of its own with one thread, one epoll and blocking sockets.
//!
//! At a *fixed rate* a timer determines when the next request is due, connection after connection.
//! The latency of a reply is counted from then, also if the request had to wait because the one
//! before it had no reply yet: a server that stalls is not spared the requests that would have come
//! meanwhile. In a *closed loop* each connection sends its next request when the reply has arrived.
//!
//! A client that waits for a processor would count that as the server's time. So it requests a
//! higher priority from the system; a record says whether that was granted.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use harness::measure::{Metric, percentile};

use crate::server::{HEAVY, MESSAGE};

/// One of this many requests is heavy, if any are.
const HEAVY_EACH: usize = 100;

/// The number of seconds after which the system kills a client that hangs.
const TIME_OUT: libc::c_uint = 120;

/// The nice value of the highest priority.
const PRECEDENCE: libc::c_int = -20;

/// The task of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    /// Requests per second on all connections; `None` for a closed loop.
    pub(crate) rate: Option<u32>,
    /// True if some requests are heavy.
    pub(crate) heavy: bool,
    /// The time at the beginning that is not counted.
    pub(crate) warm: Duration,
    pub(crate) span: Duration,
}

impl Load {
    /// Returns the words by which the driver passes it to a client.
    pub(crate) fn words(&self) -> [String; 5] {
        [
            self.connections.to_string(),
            self.rate.unwrap_or(0).to_string(),
            u8::from(self.heavy).to_string(),
            self.warm.as_millis().to_string(),
            self.span.as_millis().to_string(),
        ]
    }

    pub(crate) fn parse(words: &[&str]) -> Option<Load> {
        let numbers: Vec<u32> =
            words.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [connections, rate, heavy, warm, span] = numbers[..] else { return None };
        let ms = |count: u32| Duration::from_millis(count.into());
        Some(Load {
            connections: connections as usize,
            rate: Some(rate).filter(|rate| *rate > 0),
            heavy: heavy > 0,
            warm: ms(warm),
            span: ms(span),
        })
    }
}

/// A request: when it is due, and its first byte.
#[derive(Clone, Copy)]
struct Request {
    due: Instant,
    is_heavy: bool,
}

/// One connection. The first of its requests is under way, the others wait for it.
struct Connection {
    stream: TcpStream,
    requests: VecDeque<Request>,
}

impl Connection {
    fn add(&mut self, request: Request) {
        self.requests.push_back(request);
        if self.requests.len() == 1 {
            self.send();
        }
    }

    fn send(&mut self) {
        let message = message(self.requests[0].is_heavy);
        self.stream.write_all(&message).expect("the server is there");
    }

    /// Reads the reply to the first request, and sends the next one.
    fn take_reply(&mut self) -> Request {
        let mut reply = [0; MESSAGE];
        // Blocks if only a part has arrived; the rest is on its way.
        self.stream.read_exact(&mut reply).expect("the server replies");
        let request = self.requests.pop_front().expect("a reply has a request");
        assert_eq!(reply, message(request.is_heavy), "the reply is another one's");
        if !self.requests.is_empty() {
            self.send();
        }
        request
    }
}

fn message(is_heavy: bool) -> [u8; MESSAGE] {
    let mut message = [7; MESSAGE];
    if is_heavy {
        message[0] = HEAVY;
    }
    message
}

/// The latencies that were counted.
#[derive(Default)]
struct Counted {
    light_us: Vec<f64>,
    heavy_us: Vec<f64>,
}

/// An epoll instance; the timer has a number that no connection has.
struct Poll(OwnedFd);

const TIMER: u64 = u64::MAX;

impl Poll {
    fn new() -> Poll {
        // SAFETY: the call takes no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(epoll >= 0, "no epoll: run this on linux");
        // SAFETY: the descriptor was just opened, and no other code owns it.
        Poll(unsafe { OwnedFd::from_raw_fd(epoll) })
    }

    fn add(&self, descriptor: &impl AsRawFd, number: u64) {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        let (epoll, fd) = (self.0.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: both descriptors are open, and `event` lives through the call.
        let failed = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        assert_eq!(failed, 0, "epoll refuses a descriptor");
    }

    /// Waits for an event; returns the numbers of what can be read.
    fn ready(&self) -> Vec<u64> {
        const AT_ONCE: usize = 256;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        let (epoll, room) = (self.0.as_raw_fd(), AT_ONCE as libc::c_int);
        // SAFETY: `events` has room for `AT_ONCE` events and lives through the call.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), room, -1) };
        // Negative if a signal came; the next call waits again.
        events.iter().take(count.max(0) as usize).map(|event| event.u64).collect()
    }
}

/// A timer that ticks at a rate, starting when it is created.
struct Ticks {
    file: std::fs::File,
    start: Instant,
    interval: Duration,
    count: u32,
}

impl Ticks {
    fn new(rate: u32) -> Ticks {
        let interval = Duration::from_secs(1) / rate;
        // SAFETY: the call takes no pointers.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        assert!(timer >= 0, "no timer: run this on linux");
        let time = libc::timespec { tv_sec: 0, tv_nsec: interval.as_nanos() as libc::c_long };
        let times = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: `times` lives through the call, and the pointer for the old times may be null.
        let failed = unsafe { libc::timerfd_settime(timer, 0, &times, std::ptr::null_mut()) };
        assert_eq!(failed, 0, "the timer cannot tick at that rate: choose a lower one");
        // SAFETY: the descriptor was just opened, and no other code owns it.
        let file = unsafe { std::fs::File::from_raw_fd(timer) };
        Ticks { file, start: Instant::now(), interval, count: 0 }
    }

    /// Returns the times of the ticks since the last call, each with its number.
    fn due(&mut self) -> impl Iterator<Item = (usize, Instant)> + use<> {
        let mut new = [0; 8];
        self.file.read_exact(&mut new).expect("a timer can be read");
        let (first, start, interval) = (self.count, self.start, self.interval);
        self.count += u64::from_ne_bytes(new) as u32;
        (first..self.count).map(move |tick| (tick as usize, start + interval * (tick + 1)))
    }
}

/// Returns the connection of a tick, and whether its request is heavy: one in [`HEAVY_EACH`] of
/// each connection's, and not of all of them at once.
fn turn(tick: usize, connections: usize) -> (usize, bool) {
    let (round, connection) = (tick / connections, tick % connections);
    (connection, (round + connection) % HEAVY_EACH == HEAVY_EACH - 1)
}

/// Puts the load on the server at the port; prints `go` with its priority when it begins to count,
/// and its figures at the end.
pub(crate) fn main(port: u16, load: Load) {
    // SAFETY: the calls take no pointers. If the priority is refused, `go` reports it.
    let precedence = unsafe {
        libc::alarm(TIME_OUT);
        libc::setpriority(libc::PRIO_PROCESS, 0, PRECEDENCE);
        libc::getpriority(libc::PRIO_PROCESS, 0)
    };
    let (mut counted, span) = put(port, load, || println!("go {precedence}"));
    let mut metrics = Vec::new();
    let mut of = |name: &str, times: &mut [f64], rank| {
        metrics.push(Metric::new(name, "us", percentile(times, rank), None));
    };
    of("p50", &mut counted.light_us, 50);
    of("p99", &mut counted.light_us, 99);
    if load.heavy {
        of("heavy_p50", &mut counted.heavy_us, 50);
        of("heavy_p99", &mut counted.heavy_us, 99);
    }
    let replies = counted.light_us.len() + counted.heavy_us.len();
    metrics.push(Metric::new("echoes", "/s", replies as f64 / span.as_secs_f64(), None));
    metrics.iter().for_each(|metric| println!("{}", metric.line()));
}

/// Returns what was counted, and the time from the beginning of counting to the last reply.
fn put(port: u16, load: Load, go: impl FnOnce()) -> (Counted, Duration) {
    let poll = Poll::new();
    let connect = |number| {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
        stream.set_nodelay(true).expect("a tcp option");
        poll.add(&stream, number);
        Connection { stream, requests: VecDeque::new() }
    };
    let mut connections: Vec<_> = (0..load.connections as u64).map(connect).collect();
    let mut ticks = load.rate.map(Ticks::new);
    let begin = Instant::now() + load.warm;
    let end = begin + load.span;
    match &ticks {
        Some(ticks) => poll.add(&ticks.file, TIMER),
        None => connections.iter_mut().for_each(|connection| {
            connection.add(Request { due: Instant::now(), is_heavy: false });
        }),
    }
    let (mut counted, mut go) = (Counted::default(), Some(go));
    let is_open = |connections: &[Connection]| connections.iter().any(|it| !it.requests.is_empty());
    while Instant::now() < end || is_open(&connections) {
        for number in poll.ready() {
            let now = Instant::now();
            if now >= begin {
                go.take().into_iter().for_each(|go| go());
            }
            if number != TIMER {
                let connection = &mut connections[number as usize];
                let request = connection.take_reply();
                counted.add(request, begin..end);
                if ticks.is_none() && now < end {
                    connection.add(Request { due: now, is_heavy: false });
                }
                continue;
            }
            for (tick, due) in ticks.as_mut().into_iter().flat_map(Ticks::due) {
                let (connection, is_heavy) = turn(tick, connections.len());
                if due < end {
                    connections[connection].add(Request { due, is_heavy: is_heavy && load.heavy });
                }
            }
        }
    }
    (counted, begin.elapsed())
}

impl Counted {
    /// Counts a request that was due in the span and whose reply has just arrived.
    fn add(&mut self, request: Request, span: std::ops::Range<Instant>) {
        if span.contains(&request.due) {
            let times = if request.is_heavy { &mut self.heavy_us } else { &mut self.light_us };
            times.push(request.due.elapsed().as_nanos() as f64 / 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a threaded echo server; returns the port.
    fn echo() -> u16 {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut message = [0; MESSAGE];
                    while stream.read_exact(&mut message).is_ok() {
                        stream.write_all(&message).unwrap();
                    }
                });
            }
        });
        port
    }

    fn load(rate: Option<u32>, heavy: bool) -> Load {
        let span = Duration::from_millis(200);
        Load { connections: 4, rate, heavy, warm: Duration::from_millis(10), span }
    }

    #[test]
    fn a_load_survives_the_command_line() {
        for load in [load(None, false), load(Some(500), true)] {
            let words = load.words();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(Load::parse(&words), Some(load));
        }
        assert_eq!(Load::parse(&["1", "2", "3"]), None);
    }

    #[test]
    fn at_a_fixed_rate_every_request_that_was_due_is_counted() {
        let mut called = false;
        let (counted, _) = put(echo(), load(Some(2000), true), || called = true);
        // 200 ms at 2000 a second, one more or less at either end.
        let replies = counted.light_us.len() + counted.heavy_us.len();
        assert!(replies.abs_diff(400) <= 2, "{replies} replies");
        assert!(called && counted.light_us.iter().all(|us| *us > 0.0));
        assert!(!counted.heavy_us.is_empty());
    }

    #[test]
    fn in_a_closed_loop_all_connections_send() {
        let (counted, span) = put(echo(), load(None, false), || ());
        assert!(counted.light_us.len() >= 4 && counted.heavy_us.is_empty());
        assert!(span >= Duration::from_millis(200));
    }

    #[test]
    fn one_request_in_a_hundred_is_heavy_on_each_connection() {
        let turns: Vec<_> = (0..4 * HEAVY_EACH).map(|tick| turn(tick, 4)).collect();
        for connection in 0..4 {
            let heavy = turns.iter().filter(|it| **it == (connection, true));
            assert_eq!(heavy.count(), 1);
        }
    }
}
