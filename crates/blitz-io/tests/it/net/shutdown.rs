//! Tests sockets and timers whose runtime ends before them or with them.

use std::{io::ErrorKind, sync::mpsc, thread, time::Duration};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UdpSocket},
    time::{Instant, interval, sleep},
};

use crate::support::{
    caught_panic::panic_of,
    child,
    drop_tally::Tally,
    gate::Gate,
    manual_poll::by_hand,
    runtimes::{all_kinds_with_drivers, one_thread_with_drivers, workers_with_drivers},
    sockets, watchdog,
};

#[test]
fn a_runtime_ends_with_everything_pending() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let tally = Tally::new();
        let started = Gate::new();
        rt.block_on(async {
            let (listener, address) = sockets::listener().await;
            let client = TcpStream::connect(address).await.unwrap();
            let udp = UdpSocket::bind(sockets::ANY).await.unwrap();
            let (unix, far) = sockets::local_pair().await;
            let token = tally.token();
            blitz_io::spawn(async move {
                token.keep();
                let (_server, _) = listener.accept().await.unwrap();
                listener.accept().await.map(drop)
            });
            let token = tally.token();
            blitz_io::spawn(async move {
                token.keep();
                let mut client = client;
                client.read(&mut [0; 1]).await
            });
            let token = tally.token();
            blitz_io::spawn(async move {
                token.keep();
                udp.recv(&mut [0; 1]).await
            });
            let token = tally.token();
            blitz_io::spawn(async move {
                token.keep();
                let _far = far;
                unix.readable().await
            });
            let token = tally.token();
            blitz_io::spawn(async move {
                token.keep();
                sleep(Duration::from_secs(3600)).await;
            });
            let token = tally.token();
            let opening = started.clone();
            blitz_io::spawn(async move {
                token.keep();
                let mut interval = interval(Duration::from_secs(3600));
                loop {
                    interval.tick().await;
                    opening.open();
                }
            });
            started.opened().await;
        });
        drop(rt);
        tally.assert_all_dropped(6);
    }
}

/// Returns the output of a future that a second runtime polls after the first one has ended.
fn after_the_end<T>(work: impl Future<Output = T>) -> T {
    one_thread_with_drivers().block_on(work)
}

#[test]
fn a_socket_that_outlives_its_runtime_gives_errors_and_does_not_hang() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (mut client, server, listener, udp) = rt.block_on(async {
            let (client, server) = sockets::tcp_pair().await;
            let (listener, _) = sockets::listener().await;
            (client, server, listener, UdpSocket::bind(sockets::ANY).await.unwrap())
        });
        drop(rt);
        let error = after_the_end(client.read(&mut [0; 4])).unwrap_err();
        assert_ne!(error.kind(), ErrorKind::WouldBlock);
        assert!(after_the_end(listener.accept()).is_err());
        assert!(after_the_end(udp.recv(&mut [0; 4])).is_err());
        assert!(after_the_end(server.readable()).is_err());
        // Operations that need no readiness still work.
        assert!(server.local_addr().is_ok());
        drop(server);
        let std = client.into_std().unwrap();
        assert!(std.peer_addr().is_ok());
    }
}

#[test]
fn a_waiter_on_another_runtime_gets_an_error_at_the_end() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (client, mut server) = rt.block_on(sockets::tcp_pair());
        let (waits, waiting) = mpsc::channel();
        let thread = thread::spawn(move || {
            one_thread_with_drivers().block_on(async {
                let mut buffer = [0; 4];
                let mut reading = by_hand(server.read(&mut buffer));
                reading.pending();
                waits.send(()).unwrap();
                reading.pin().await.map(drop)
            })
        });
        waiting.recv().unwrap();
        drop(rt);
        assert!(thread.join().unwrap().is_err());
        drop(client);
    }
}

#[test]
fn sockets_of_one_runtime_are_used_on_another() {
    let _watch = watchdog::start();
    let (first, away) = (workers_with_drivers(1), workers_with_drivers(2));
    let (mut client, mut server) = first.block_on(sockets::tcp_pair());
    away.block_on(async move {
        let echo = blitz_io::spawn(async move {
            let mut four = [0; 4];
            server.read_exact(&mut four).await.unwrap();
            server.write_all(&four).await.unwrap();
        });
        client.write_all(b"ping").await.unwrap();
        let mut four = [0; 4];
        client.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"ping");
        echo.await.unwrap();
    });
}

#[test]
fn timers_of_one_runtime_are_awaited_on_another() {
    let _watch = watchdog::start();
    let (first, away) = (workers_with_drivers(1), one_thread_with_drivers());
    let entered = first.enter();
    let start = std::time::Instant::now();
    let sleeper = sleep(Duration::from_millis(5));
    drop(entered);
    away.block_on(sleeper);
    assert!(start.elapsed() >= Duration::from_millis(5));
}

#[test]
fn a_timer_that_outlives_its_runtime_panics_when_it_is_polled_and_not_when_dropped() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (kept, polled, fresh) = rt.block_on(async {
            let kept = Box::pin(sleep(Duration::from_secs(3600)));
            let mut polled = by_hand(sleep(Duration::from_secs(3600)));
            polled.pending();
            (kept, polled, sleep(Duration::ZERO).deadline())
        });
        drop(rt);
        assert!(fresh <= Instant::now());
        drop(kept);
        let mut polled = polled;
        panic_of(|| polled.poll())
            .says(&["A Tokio 1.x context was found, but it is being shutdown."]);
        drop(polled);
    }
}

#[test]
fn a_socket_is_dropped_after_its_runtime_and_its_port_is_free() {
    let _watch = watchdog::start();
    let _no_child = child::none_starts();
    for rt in all_kinds_with_drivers() {
        let (listener, address) = rt.block_on(sockets::listener());
        drop(rt);
        drop(listener);
        std::net::TcpListener::bind(address).expect("the port is free");
    }
}

#[test]
fn a_socket_is_dropped_on_a_thread_without_a_runtime() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (client, mut server) = rt.block_on(sockets::tcp_pair());
        thread::spawn(move || drop(client)).join().unwrap();
        assert_eq!(rt.block_on(server.read(&mut [0; 1])).unwrap(), 0);
    }
}

#[test]
fn registering_with_a_runtime_that_is_gone_is_an_error() {
    let _watch = watchdog::start();
    for rt in [workers_with_drivers(1), workers_with_drivers(2)] {
        let handle = rt.handle().clone();
        drop(rt);
        let _entered = handle.enter();
        let std = std::net::TcpListener::bind(sockets::ANY).unwrap();
        std.set_nonblocking(true).unwrap();
        assert!(TcpListener::from_std(std).is_err());
    }
}

#[test]
fn shutdown_in_the_background_does_not_wait_for_sockets() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (_client, server) = rt.block_on(sockets::tcp_pair());
        rt.spawn(async move {
            let mut server = server;
            let _ = server.read(&mut [0; 1]).await;
        });
        rt.shutdown_background();
    }
}

#[test]
fn runtimes_come_and_go_without_leaving_descriptors() {
    let _watch = watchdog::start();
    if !cfg!(target_os = "linux") {
        return;
    }
    // The descriptors of this thread's runtimes cannot be distinguished from those of other tests,
    // so a child process counts them.
    let name = "net::shutdown::child_counts_descriptors";
    let mut command = child::program();
    command.args([name, "--exact", "--include-ignored", "--test-threads=1"]);
    let output = child::output(&mut command).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "a part of `runtimes_come_and_go_without_leaving_descriptors`"]
fn child_counts_descriptors() {
    let count = child::descriptors;
    let run = || {
        for rt in all_kinds_with_drivers() {
            rt.block_on(async {
                let (mut client, mut server) = sockets::tcp_pair().await;
                client.write_all(b"x").await.unwrap();
                server.read_u8().await.unwrap();
                sleep(Duration::from_micros(10)).await;
            });
        }
    };
    run();
    let before = count();
    for _ in 0..20 {
        run();
    }
    assert_eq!(count(), before);
}
