//! Opens and closes many sockets at once, as fast as possible.

use std::{io::ErrorKind, sync::Arc, time::Duration};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::support::{
    descriptor_limit,
    runtimes::{all_kinds_with_drivers, on_all_kinds},
    sockets, watchdog,
};

/// Windows does not reuse a descriptor's number soon.
#[cfg(unix)]
#[test]
fn a_descriptor_that_is_used_again_at_once_starts_afresh() {
    use std::os::fd::AsRawFd;

    use crate::support::{manual_poll::waiting, runtimes::on_one_thread};

    on_one_thread(async {
        // The readiness of the socket that had the number before must not be seen.
        let mut reused = 0;
        for _ in 0..200 {
            let (mut a, b) = sockets::local_pair().await;
            a.write_all(b"x").await.unwrap();
            b.readable().await.unwrap();
            let old = b.as_raw_fd();
            drop(b);
            let (c, mut d) = sockets::local_pair().await;
            if c.as_raw_fd() == old {
                reused += 1;
            }
            let mut readable = waiting(c.readable());
            readable.still_waits();
            d.write_all(b"y").await.unwrap();
            readable.pin().await.unwrap();
            let mut byte = [0; 1];
            assert_eq!(c.try_read(&mut byte).unwrap(), 1);
            assert_eq!(&byte, b"y");
        }
        assert!(reused > 0, "no number was used again: the test tests nothing");
    });
}

#[test]
fn a_task_that_waits_on_a_reused_number_gets_events_of_its_own_socket() {
    on_all_kinds(|| async {
        for _ in 0..50 {
            let (a, b) = sockets::local_pair().await;
            let waiting = blitz_io::spawn(async move {
                let mut b = b;
                b.read(&mut [0; 4]).await
            });
            waiting.abort();
            let _ = waiting.await;
            drop(a);
            let (mut c, mut d) = sockets::local_pair().await;
            let reading = blitz_io::spawn(async move { d.read_u8().await });
            c.write_all(b"z").await.unwrap();
            assert_eq!(reading.await.unwrap().unwrap(), b'z');
        }
    });
}

#[test]
fn connections_come_and_go_by_the_hundred() {
    let _watch = watchdog::start_for(Duration::from_secs(60));
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let (listener, address) = sockets::listener().await;
            let server = blitz_io::spawn(async move {
                let mut set = JoinSet::new();
                for _ in 0..400 {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    set.spawn(async move {
                        let number = stream.read_u32().await.unwrap();
                        stream.write_u32(number + 1).await.unwrap();
                        // Waits for the client's close, so that the port lingers on its side.
                        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
                    });
                }
                while let Some(ended) = set.join_next().await {
                    ended.unwrap();
                }
            });
            let room = Arc::new(Semaphore::new(50));
            let mut clients = JoinSet::new();
            for number in 0..400_u32 {
                let permit = room.clone().acquire_owned().await.unwrap();
                clients.spawn(async move {
                    let mut stream = TcpStream::connect(address).await.unwrap();
                    stream.write_u32(number).await.unwrap();
                    assert_eq!(stream.read_u32().await.unwrap(), number + 1);
                    drop(permit);
                });
            }
            while let Some(ended) = clients.join_next().await {
                ended.unwrap();
            }
            server.await.unwrap();
        });
    }
}

#[test]
fn resets_by_the_hundred_are_errors_and_nothing_else() {
    let _watch = watchdog::start_for(Duration::from_secs(60));
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let (listener, address) = sockets::listener().await;
            let server = blitz_io::spawn(async move {
                let mut set = JoinSet::new();
                for _ in 0..300 {
                    // A connection that was reset in the backlog may be an error here.
                    let Ok((mut stream, _)) = listener.accept().await else { continue };
                    set.spawn(async move {
                        match stream.read(&mut [0; 4]).await {
                            Ok(count) => assert_eq!(count, 0),
                            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
                        }
                    });
                }
                while let Some(ended) = set.join_next().await {
                    ended.unwrap();
                }
            });
            for _ in 0..300 {
                let client = TcpStream::connect(address).await.unwrap();
                client.set_zero_linger().unwrap();
            }
            server.await.unwrap();
        });
    }
}

#[test]
fn hundreds_of_idle_sockets_and_timers_leave_the_busy_one_alone() {
    let _watch = watchdog::start_for(Duration::from_secs(60));
    // Local pairs have two descriptors each; most of them are left to the tests beside this one.
    let pairs = descriptor_limit::raise().div_euclid(8).min(150);
    for rt in all_kinds_with_drivers() {
        rt.block_on(async {
            let mut idle = Vec::new();
            for _ in 0..pairs {
                let (a, b) = sockets::local_pair().await;
                idle.push(blitz_io::spawn(async move {
                    let mut b = b;
                    b.read(&mut [0; 1]).await.unwrap()
                }));
                idle.push(blitz_io::spawn(async move {
                    sleep(Duration::from_secs(3600)).await;
                    drop(a);
                    0
                }));
            }
            let (mut a, mut b) = sockets::tcp_pair().await;
            for number in 0..200_u32 {
                a.write_u32(number).await.unwrap();
                assert_eq!(b.read_u32().await.unwrap(), number);
            }
            for task in &idle {
                assert!(!task.is_finished());
                task.abort();
            }
            for task in idle {
                assert!(task.await.unwrap_err().is_cancelled());
            }
        });
    }
}

#[test]
fn timeouts_beside_sockets_neither_lose_nor_repeat() {
    on_all_kinds(|| async {
        let (a, b) = sockets::udp_pair().await;
        let mut got = Vec::new();
        for number in 0..100_u8 {
            let mut buffer = [0; 4];
            // No datagram has been sent.
            let early = timeout(Duration::from_micros(10), b.recv(&mut buffer)).await;
            assert!(early.is_err());
            a.send(&[number]).await.unwrap();
            let count = timeout(Duration::from_secs(20), b.recv(&mut buffer)).await;
            assert_eq!(count.unwrap().unwrap(), 1);
            got.push(buffer[0]);
        }
        assert_eq!(got, (0..100).collect::<Vec<u8>>());
        let _: &UdpSocket = &a;
    });
}
