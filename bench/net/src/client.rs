//! A client that uses no contender: blocking sockets and one epoll on one thread.
//!
//! It keeps every connection busy with one request at a time and records the latency of each reply.
//! All contenders are measured by the same client on another core, so that any difference is the
//! server's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The number of bytes of a request and of its reply.
pub(crate) const MESSAGE: usize = 64;

/// One connection, and when its last request was sent.
struct Connection {
    stream: TcpStream,
    sent: Instant,
}

impl Connection {
    fn send(&mut self) {
        self.sent = Instant::now();
        self.stream.write_all(&[7; MESSAGE]).expect("the server is there");
    }
}

/// Open connections, all registered with one epoll.
pub(crate) struct Client {
    epoll: libc::c_int,
    connections: Vec<Connection>,
}

impl Client {
    pub(crate) fn connect(server: SocketAddr, count: usize) -> Client {
        // SAFETY: the call takes no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        assert!(epoll >= 0, "no epoll: run this on linux");
        let connect = |number| {
            let stream = TcpStream::connect(server).expect("the server listens");
            stream.set_nodelay(true).expect("a tcp option");
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
            let fd = stream.as_raw_fd();
            // SAFETY: both descriptors are open, and `event` lives through the call.
            let failed = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
            assert_eq!(failed, 0, "epoll refuses a socket");
            Connection { stream, sent: Instant::now() }
        };
        Client { epoll, connections: (0..count as u64).map(connect).collect() }
    }

    /// Sends a request on every connection, and the next as soon as the reply has arrived, for
    /// `span`. Returns the latencies, in nanoseconds.
    pub(crate) fn load(&mut self, span: Duration) -> Vec<f64> {
        let start = Instant::now();
        let mut took = Vec::new();
        let mut open = self.connections.len();
        self.connections.iter_mut().for_each(Connection::send);
        while open > 0 {
            for number in self.ready() {
                let connection = &mut self.connections[number];
                let mut reply = [0; MESSAGE];
                // Blocks if only a part has arrived; the rest is on its way.
                connection.stream.read_exact(&mut reply).expect("the server replies");
                assert_eq!(reply, [7; MESSAGE], "the reply is another one's");
                took.push(connection.sent.elapsed().as_nanos() as f64);
                match start.elapsed() < span {
                    true => connection.send(),
                    false => open -= 1,
                }
            }
        }
        took
    }

    /// Waits for an event; returns the connections that have something to read.
    fn ready(&self) -> Vec<usize> {
        const AT_ONCE: usize = 256;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        // SAFETY: `events` has room for `AT_ONCE` events and lives through the call.
        let count = unsafe {
            libc::epoll_wait(self.epoll, events.as_mut_ptr(), AT_ONCE as libc::c_int, -1)
        };
        // Negative if a signal came; the next call waits again.
        events.iter().take(count.max(0) as usize).map(|event| event.u64 as usize).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open, and no code uses it after this.
        unsafe { libc::close(self.epoll) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_measures_a_server_of_threads() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
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
        let took = Client::connect(address, 3).load(Duration::from_millis(20));
        assert!(took.len() >= 3 && took.iter().all(|ns| *ns > 0.0));
    }
}
