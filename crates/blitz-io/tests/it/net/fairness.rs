//! Tests that a task whose I/O or timers are always ready still lets others run.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    net::UdpSocket,
    runtime::Builder,
    task,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::support::{
    clock::{ms, paused},
    runtimes::on_one_thread,
    sockets, watchdog,
};

/// Polls `busy`, which never waits by itself, and returns the number of turns after which it
/// yielded.
async fn turns_until_it_yields<F: Future<Output = ()>>(busy: impl Fn() -> F) -> usize {
    let mut turns = 0;
    loop {
        let mut future = std::pin::pin!(busy());
        let ready = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await;
        if !ready {
            return turns;
        }
        turns += 1;
        assert!(turns < 100_000, "it never yields");
    }
}

#[test]
fn reading_what_is_there_spends_the_budget() {
    on_one_thread(async {
        let (mut client, server) = sockets::tcp_pair().await;
        client.write_all(&[0; 50_000]).await.unwrap();
        let server = Arc::new(blitz_io::sync::Mutex::new(server));
        task::spawn(async move {
            server.lock().await.readable().await.unwrap();
            task::yield_now().await;
            let mut server = server.lock().await;
            let mut turns = 0;
            loop {
                let mut byte = [0; 1];
                let mut read = std::pin::pin!(server.read(&mut byte));
                if poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx).is_pending())).await {
                    break;
                }
                turns += 1;
            }
            assert!(turns <= 1000, "{turns} reads in one go");
        })
        .await
        .unwrap();
    });
}

#[test]
fn datagrams_that_are_there_spend_the_budget() {
    on_one_thread(async {
        task::spawn(async {
            let socket = UdpSocket::bind(sockets::ANY).await.unwrap();
            let address = socket.local_addr().unwrap();
            // The socket sends to itself, so sends and receives are always ready.
            let turns = turns_until_it_yields(|| async {
                socket.send_to(b"x", address).await.unwrap();
                socket.recv(&mut [0; 4]).await.unwrap();
            });
            assert!(turns.await <= 1000);
        })
        .await
        .unwrap();
    });
}

#[test]
fn memory_that_is_never_empty_spends_the_budget() {
    on_one_thread(async {
        task::spawn(async {
            let turns = turns_until_it_yields(|| async {
                let (mut a, mut b) = duplex(8);
                a.write_all(b"x").await.unwrap();
                b.read_u8().await.unwrap();
            });
            assert!(turns.await <= 1000);
        })
        .await
        .unwrap();
    });
}

#[test]
fn sleeps_that_are_over_spend_the_budget() {
    paused(async {
        task::spawn(async {
            blitz_io::time::advance(ms(10)).await;
            let past = Instant::now() - ms(5);
            let turns = turns_until_it_yields(|| sleep_until(past));
            assert!(turns.await <= 1000);
        })
        .await
        .unwrap();
    });
}

#[test]
fn a_task_that_always_yields_does_not_keep_sockets_and_timers_waiting() {
    let _watch = watchdog::start();
    let multi = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for rt in [crate::support::runtimes::one_thread_with_drivers(), multi] {
        rt.block_on(async {
            let busy = task::spawn(async {
                loop {
                    task::yield_now().await;
                }
            });
            let work = task::spawn(async {
                let (mut a, mut b) = sockets::tcp_pair().await;
                for number in 0..50_u32 {
                    a.write_u32(number).await.unwrap();
                    assert_eq!(b.read_u32().await.unwrap(), number);
                    sleep(Duration::from_micros(50)).await;
                }
            });
            timeout(Duration::from_secs(20), work).await.expect("it starves").unwrap();
            busy.abort();
        });
    }
}

#[test]
fn sockets_that_are_always_busy_do_not_keep_others_waiting() {
    let _watch = watchdog::start();
    for rt in [
        crate::support::runtimes::one_thread_with_drivers(),
        crate::support::runtimes::workers_with_drivers(1),
    ] {
        rt.block_on(async {
            let (mut a, mut b) = sockets::tcp_pair().await;
            let flood = task::spawn(async move {
                let chunk = vec![0; 65536];
                while a.write_all(&chunk).await.is_ok() {}
            });
            let drain = task::spawn(async move {
                let mut chunk = vec![0; 65536];
                while b.read(&mut chunk).await.is_ok_and(|count| count > 0) {}
            });
            let quiet = task::spawn(async {
                let (mut a, mut b) = sockets::tcp_pair().await;
                for number in 0..100_u32 {
                    a.write_u32(number).await.unwrap();
                    assert_eq!(b.read_u32().await.unwrap(), number);
                }
            });
            timeout(Duration::from_secs(20), quiet).await.expect("it starves").unwrap();
            drain.abort();
            flood.abort();
        });
    }
}

/// More connections than a worker's own queue holds.
#[cfg(unix)]
#[test]
fn connections_that_are_always_ready_are_served_in_turns() {
    use std::{
        io::{ErrorKind, Read, Write},
        os::unix::net::UnixStream,
    };

    use crate::support::descriptor_limit;

    const CONNECTIONS: usize = 700;
    const ROUNDS: usize = 30;
    let _watch = watchdog::start();
    // Two for each connection, and some for the tests beside this one.
    if descriptor_limit::raise() < 2_000 {
        eprintln!("skipped: too few descriptors");
        return;
    }
    for rt in [
        crate::support::runtimes::one_thread_with_drivers(),
        crate::support::runtimes::workers_with_drivers(1),
    ] {
        let (mut clients, servers): (Vec<_>, Vec<_>) =
            (0..CONNECTIONS).map(|_| UnixStream::pair().unwrap()).unzip();
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let client = std::thread::spawn(move || {
            // All connections exist.
            gone.recv().unwrap();
            for client in &mut clients {
                client.set_nonblocking(true).unwrap();
                client.write_all(&[7]).unwrap();
            }
            // The number of replies so far, and that number when each client sent its request.
            let (mut replies, mut sent) = (0, vec![0; CONNECTIONS]);
            let mut longest = 0;
            while replies < CONNECTIONS * ROUNDS {
                for (client, sent) in clients.iter_mut().zip(&mut sent) {
                    match client.read(&mut [0]) {
                        Ok(count) => {
                            assert_eq!(count, 1, "the server is there");
                            replies += 1;
                            longest = longest.max(replies - *sent);
                            *sent = replies;
                            client.write_all(&[7]).unwrap();
                        }
                        Err(none) => assert_eq!(none.kind(), ErrorKind::WouldBlock),
                    }
                }
            }
            longest
        });
        let longest = rt.block_on(async {
            let echoes: Vec<_> = servers
                .into_iter()
                .map(|server| {
                    server.set_nonblocking(true).unwrap();
                    let mut server = blitz_io::net::UnixStream::from_std(server).unwrap();
                    task::spawn(async move {
                        while let Ok(byte) = server.read_u8().await {
                            if server.write_u8(byte).await.is_err() {
                                break;
                            }
                        }
                    })
                })
                .collect();
            go.send(()).unwrap();
            for echo in echoes {
                echo.await.unwrap();
            }
            client.join().unwrap()
        });
        let turns = longest as f64 / CONNECTIONS as f64;
        assert!(turns < 4.0, "one had to wait for {turns:.1} turns of all others");
    }
}
