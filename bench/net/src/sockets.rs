//! Rows of sockets, written once for every runtime crate with Tokio's names.
//!
//! Connections are made before the clock starts and kept over all batches. Both ends are tasks of
//! the same runtime, except where a row says that the client is separate.

/// The number of round trips of a batch, shared out among its connections: enough that waking the
/// runtime for the batch is negligible.
pub(crate) const TRIPS: usize = 5000;
/// The number of bytes of a large write; the usual size of a pipe and of a large read.
pub(crate) const CHUNK: usize = 64 * 1024;
/// The number of chunks of a batch.
pub(crate) const CHUNKS: usize = 500;
/// The number of connections of the row that measures the tail.
pub(crate) const READY: usize = 500;
/// The number of connections that are open and idle.
pub(crate) const IDLE: usize = 1000;
/// The uncertainty of reading two clocks one after the other: what is below this counts as nothing.
/// As in ../sched.
pub(crate) const READING_NS: i64 = 2000;

macro_rules! sockets {
    ($runtime:ident) => {
        use std::net::SocketAddr;
        use std::thread;

        use $runtime::io::{AsyncReadExt, AsyncWriteExt};
        use $runtime::net::{TcpListener, TcpStream, UdpSocket, UnixStream};

        use crate::client::{Client, MESSAGE};
        use crate::sockets::*;
        use harness::measure::{
            Of, allowed_cores, cpu_ns, percentile, resident_bytes, stay_on, voluntary_switches,
        };

        /// Runs the row if it is one of these.
        pub(crate) fn on_sockets(
            row: &str,
            workers: usize,
            budget: Duration,
        ) -> Option<Vec<Metric>> {
            Some(match row {
                "tcp_echo_1" => tcp_echo(workers, budget, 1),
                "tcp_echo_50" => tcp_echo(workers, budget, 50),
                "tcp_echo_500" => tcp_echo(workers, budget, 500),
                "udp_echo" => udp_echo(workers, budget),
                "unix_echo" => unix_echo(workers, budget),
                "tcp_stream_64k" => tcp_stream(workers, budget, false),
                "tcp_copy_proxy" => tcp_stream(workers, budget, true),
                "tcp_ready_500" => tcp_ready(workers, budget),
                "idle_connections" => idle_connections(workers),
                _ => return None,
            })
        }

        async fn tcp_pair() -> (TcpStream, TcpStream) {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            let client = TcpStream::connect(address).await.expect("it listens");
            let (server, _) = listener.accept().await.expect("a client connected");
            client.set_nodelay(true).expect("a tcp option");
            server.set_nodelay(true).expect("a tcp option");
            (client, server)
        }

        /// Echoes until the other end is closed.
        async fn echo<S>(mut stream: S)
        where
            S: $runtime::io::AsyncRead + $runtime::io::AsyncWrite + Unpin,
        {
            let mut message = [0; MESSAGE];
            // Any error or end of the client ends the row.
            while stream.read_exact(&mut message).await.is_ok() {
                if stream.write_all(&message).await.is_err() {
                    return;
                }
            }
        }

        /// Makes `count` round trips; returns the stream.
        async fn trips<S>(mut stream: S, count: usize) -> S
        where
            S: $runtime::io::AsyncRead + $runtime::io::AsyncWrite + Unpin,
        {
            let mut message = [3; MESSAGE];
            for _ in 0..count {
                stream.write_all(&message).await.expect("the server is there");
                stream.read_exact(&mut message).await.expect("the server replies");
            }
            assert_eq!(message, [3; MESSAGE], "the reply is another one's");
            stream
        }

        fn tcp_echo(workers: usize, budget: Duration, connections: usize) -> Vec<Metric> {
            let runtime = build(workers);
            let mut clients = runtime.block_on(async {
                let mut clients = Vec::new();
                for _ in 0..connections {
                    let (client, server) = tcp_pair().await;
                    spawn(echo(server));
                    clients.push(client);
                }
                clients
            });
            let each = TRIPS.div_ceil(connections);
            per_op(budget, each * connections, || {
                let batch = std::mem::take(&mut clients);
                clients = on_a_worker(&runtime, async move {
                    let tasks: Vec<_> =
                        batch.into_iter().map(|client| spawn(trips(client, each))).collect();
                    let mut back = Vec::new();
                    for task in tasks {
                        back.push(task.await.expect("a client panicked"));
                    }
                    back
                });
            })
        }

        fn unix_echo(workers: usize, budget: Duration) -> Vec<Metric> {
            let runtime = build(workers);
            let client = runtime.block_on(async {
                let (client, server) = UnixStream::pair().expect("two sockets");
                spawn(echo(server));
                client
            });
            let mut client = Some(client);
            per_op(budget, TRIPS, || {
                let stream = client.take().expect("the last batch gave it back");
                client = Some(on_a_worker(&runtime, trips(stream, TRIPS)));
            })
        }

        fn udp_echo(workers: usize, budget: Duration) -> Vec<Metric> {
            let runtime = build(workers);
            let client = runtime.block_on(async {
                let bind = || UdpSocket::bind("127.0.0.1:0");
                let (client, server) = (bind().await, bind().await);
                let (client, server) = (client.expect("a port"), server.expect("a port"));
                let address = |socket: &UdpSocket| socket.local_addr().expect("it is bound");
                client.connect(address(&server)).await.expect("it connects");
                server.connect(address(&client)).await.expect("it connects");
                spawn(async move {
                    let mut message = [0; MESSAGE];
                    while let Ok(count) = server.recv(&mut message).await {
                        if server.send(&message[..count]).await.is_err() {
                            return;
                        }
                    }
                });
                client
            });
            // One at a time over the loopback, so nothing is lost.
            let client = std::sync::Arc::new(client);
            per_op(budget, TRIPS, || {
                let client = client.clone();
                on_a_worker(&runtime, async move {
                    let mut message = [5; MESSAGE];
                    for _ in 0..TRIPS {
                        client.send(&message).await.expect("the server is there");
                        let count = client.recv(&mut message).await.expect("it replies");
                        assert_eq!(count, MESSAGE);
                    }
                });
            })
        }

        /// Sends 64 KiB at a time in one direction; through a copying proxy if requested.
        fn tcp_stream(workers: usize, budget: Duration, proxy: bool) -> Vec<Metric> {
            let runtime = build(workers);
            let mut ends = Some(runtime.block_on(async {
                let (source, mut middle) = tcp_pair().await;
                if !proxy {
                    return (source, middle);
                }
                let (mut other, sink) = tcp_pair().await;
                spawn(async move {
                    // Ends with an error when the row is over and its sockets are closed.
                    let _ = $runtime::io::copy(&mut middle, &mut other).await;
                });
                (source, sink)
            }));
            per_op(budget, CHUNKS, || {
                let (mut source, mut sink) = ends.take().expect("the last batch gave them back");
                ends = Some(on_a_worker(&runtime, async move {
                    let writing = spawn(async move {
                        let chunk = vec![1; CHUNK];
                        for _ in 0..CHUNKS {
                            source.write_all(&chunk).await.expect("the reader is there");
                        }
                        source
                    });
                    let mut chunk = vec![0; CHUNK];
                    let mut left = CHUNK * CHUNKS;
                    while left > 0 {
                        let room = left.min(CHUNK);
                        let count = sink.read(&mut chunk[..room]).await;
                        let count = count.expect("the writer is there");
                        assert!(count > 0, "bytes were lost");
                        left -= count;
                    }
                    (writing.await.expect("the writer panicked"), sink)
                }));
            })
        }

        /// Listens and echoes, for a client that is not on this runtime.
        async fn serve() -> SocketAddr {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    stream.set_nodelay(true).expect("a tcp option");
                    spawn(echo(stream));
                }
            });
            address
        }

        /// Runs the server on the first core, however many workers it has, and the client on the
        /// last: measures the latency when all connections always have a request.
        fn tcp_ready(workers: usize, budget: Duration) -> Vec<Metric> {
            let cores = allowed_cores();
            let (first, last) = (cores[0], cores[cores.len() - 1]);
            let runtime = thread::spawn(move || {
                stay_on(first);
                build(workers)
            });
            let runtime = runtime.join().expect("the runtime is built");
            let address = on_a_worker(&runtime, serve());
            let client = thread::spawn(move || {
                stay_on(last);
                let mut client = Client::connect(address, READY);
                // Touches all code and fills all pools once.
                client.load(Duration::ZERO);
                let start = std::time::Instant::now();
                let took = client.load(budget);
                (took, start.elapsed())
            });
            let (mut took, span) = client.join().expect("the client ends well");
            let reply = span.as_nanos() as f64 / took.len() as f64;
            vec![
                Metric::new("p50", "ns", percentile(&mut took, 50), None).in_us(),
                Metric::new("p99", "ns", percentile(&mut took, 99), None).in_us(),
                Metric::new("answer", "ns", reply, None),
            ]
        }

        /// Measures unused connections: the memory of each, and the processor time of all.
        fn idle_connections(workers: usize) -> Vec<Metric> {
            let runtime = build(workers);
            let address = on_a_worker(&runtime, async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                let address = listener.local_addr().expect("it is bound");
                spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        spawn(async move {
                            stream.readable().await.expect("the runtime lives");
                            // Waits with only the socket as its state.
                            let mut byte = [0; 1];
                            let mut stream = stream;
                            while stream.read(&mut byte).await.is_ok_and(|count| count > 0) {
                                stream.write_all(&byte).await.expect("the client is there");
                            }
                        });
                    }
                });
                address
            });
            let open = |count| {
                let mut clients = Vec::with_capacity(count);
                for _ in 0..count {
                    let client = std::net::TcpStream::connect(address);
                    let mut client = client.expect("the server listens");
                    // A reply proves that it was accepted and has waited.
                    std::io::Write::write_all(&mut client, &[1]).expect("it is open");
                    std::io::Read::read_exact(&mut client, &mut [0]).expect("it replies");
                    clients.push(client);
                }
                clients
            };
            // The first few connections cause one-time allocations.
            let _warm = open(100);
            let before = resident_bytes();
            let clients = open(IDLE);
            let bytes = resident_bytes().saturating_sub(before) as f64 / clients.len() as f64;
            // Picked, not measured: a contender may finish what it does before it sleeps.
            thread::sleep(Duration::from_millis(100));
            // The main thread's own sleep is not work of the runtime.
            let others = |reading: fn(Of) -> u64| {
                let main_thread = reading(Of::ThisThread) as i64;
                reading(Of::Process) as i64 - main_thread
            };
            let (cpu, switches) = (others(cpu_ns), others(voluntary_switches));
            thread::sleep(Duration::from_secs(1));
            let (cpu, switches) = (others(cpu_ns) - cpu, others(voluntary_switches) - switches);
            let cpu = if cpu < READING_NS { 0.0 } else { cpu as f64 / 1e3 };
            vec![
                Metric::new("bytes", "B", bytes, None),
                Metric::new("cpu", "us", cpu, None),
                Metric::new("switches", "count", switches.max(0) as f64, None),
            ]
        }
    };
}

pub(crate) use sockets;
