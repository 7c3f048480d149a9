//! Tests that a network future that is dropped while it waits loses no byte, datagram or
//! connection.

use blitz_io::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpStream, UdpSocket},
    time::{self, sleep, timeout},
};

use crate::support::{
    clock::{ms, paused},
    manual_poll::{by_hand, once, waiting},
    runtimes::{on_all_kinds, on_one_thread, others_wait},
    sockets::{ANY, listener, local_pair, tcp_pair, udp_pair},
};

#[test]
fn read_takes_nothing_when_it_is_dropped_at_any_poll() {
    on_one_thread(async {
        for polls in 0..4 {
            let (mut client, mut server) = tcp_pair().await;
            let mut buffer = [0; 16];
            {
                let mut reading = by_hand(server.read(&mut buffer));
                for _ in 0..polls {
                    reading.pending();
                }
                client.write_all(b"hello").await.unwrap();
                // Woken, and dropped without another poll.
                while polls > 0 && !reading.woken() {
                    others_wait().await;
                }
            }
            assert_eq!(buffer, [0; 16]);
            let mut five = [0; 5];
            server.read_exact(&mut five).await.unwrap();
            assert_eq!(&five, b"hello");
        }
    });
}

#[test]
fn reads_that_time_out_lose_nothing() {
    on_all_kinds(|| async {
        let (client, mut server) = tcp_pair().await;
        let writing = blitz_io::spawn(async move {
            let mut client = client;
            for number in 0..500_u32 {
                client.write_all(&number.to_be_bytes()).await.unwrap();
                blitz_io::task::yield_now().await;
            }
        });
        let mut got = Vec::new();
        let mut buffer = [0; 64];
        loop {
            // The timeout is mostly too short, and cuts the read off at some point.
            match timeout(std::time::Duration::from_micros(1), server.read(&mut buffer)).await {
                Err(_) => {}
                Ok(Ok(0)) => break,
                Ok(count) => got.extend_from_slice(&buffer[..count.unwrap()]),
            }
        }
        let wanted: Vec<u8> = (0..500_u32).flat_map(u32::to_be_bytes).collect();
        assert!(got == wanted);
        writing.await.unwrap();
    });
}

#[test]
fn accept_loses_no_connection() {
    on_one_thread(async {
        for polls in 0..4 {
            let (listener, address) = listener().await;
            {
                let mut accepting = by_hand(listener.accept());
                for _ in 0..polls {
                    accepting.pending();
                }
                let mut client = TcpStream::connect(address).await.unwrap();
                client.write_all(b"x").await.unwrap();
                while polls > 0 && !accepting.woken() {
                    others_wait().await;
                }
            }
            let (mut server, _) = listener.accept().await.unwrap();
            assert_eq!(server.read_u8().await.unwrap(), b'x');
        }
    });
}

#[test]
fn a_wake_up_of_a_dropped_accept_goes_to_another() {
    on_one_thread(async {
        let (listener, address) = listener().await;
        let first = waiting(listener.accept());
        let mut second = waiting(listener.accept());
        let _client = TcpStream::connect(address).await.unwrap();
        while !first.woken() && !second.woken() {
            others_wait().await;
        }
        drop(first);
        second.pin().await.unwrap();
    });
}

#[test]
fn recv_loses_no_datagram() {
    on_one_thread(async {
        for polls in 0..4 {
            let (a, b) = udp_pair().await;
            let mut buffer = [0; 8];
            {
                let mut receiving = by_hand(b.recv_from(&mut buffer));
                for _ in 0..polls {
                    receiving.pending();
                }
                a.send(b"only").await.unwrap();
                while polls > 0 && !receiving.woken() {
                    others_wait().await;
                }
            }
            assert_eq!(b.recv(&mut buffer).await.unwrap(), 4);
        }
    });
}

#[test]
fn connect_that_is_dropped_closes_what_it_began() {
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        for _ in 0..20 {
            drop(once(TcpStream::connect(address)));
        }
        // The connections that arrived have ended; one that is not dropped works.
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"x").await.unwrap();
        loop {
            let (mut server, _) = listener.accept().await.unwrap();
            if server.read(&mut [0; 1]).await.unwrap_or(0) == 1 {
                break;
            }
        }
    });
}

#[test]
fn writes_that_are_dropped_have_written_all_or_nothing_of_a_part() {
    on_all_kinds(|| async {
        // Each `write` returns how much it accepted; one that is dropped accepted nothing. So
        // exactly the bytes that were reported arrive.
        let (mut client, mut server) = tcp_pair().await;
        let reading = blitz_io::spawn(async move {
            let mut all = Vec::new();
            server.read_to_end(&mut all).await.unwrap();
            all
        });
        let mut written = Vec::new();
        let mut next = 0_u8;
        while written.len() < 3_000_000 {
            let part = vec![next; 100_000];
            match timeout(std::time::Duration::from_micros(1), client.write(&part)).await {
                Ok(count) => {
                    written.extend_from_slice(&part[..count.unwrap()]);
                    next = next.wrapping_add(1);
                }
                Err(_) => blitz_io::task::yield_now().await,
            }
        }
        drop(client);
        assert!(reading.await.unwrap() == written);
    });
}

#[test]
fn readable_and_writable_may_be_dropped_at_will() {
    on_one_thread(async {
        let (mut client, server) = tcp_pair().await;
        for _ in 0..100 {
            let _ = once(server.readable());
            let _ = once(server.writable());
        }
        // An accepted socket may start as ready; an attempt that finds nothing clears that.
        assert!(server.try_read(&mut [0; 1]).is_err());
        let mut kept = waiting(server.readable());
        client.write_all(b"x").await.unwrap();
        kept.pin().await.unwrap();
    });
}

#[test]
fn read_until_keeps_what_it_had_in_the_buffer_of_its_caller() {
    on_one_thread(async {
        let (mut a, b) = local_pair().await;
        let mut reader = BufReader::new(b);
        let mut line = Vec::new();
        a.write_all(b"he").await.unwrap();
        while line.is_empty() {
            assert!(once(reader.read_until(b'\n', &mut line)).is_pending());
            others_wait().await;
        }
        a.write_all(b"llo\n").await.unwrap();
        reader.read_until(b'\n', &mut line).await.unwrap();
        assert_eq!(line, b"hello\n");
    });
}

#[test]
fn select_in_a_loop_sees_every_message_of_every_socket() {
    on_all_kinds(|| async {
        let (a, b) = udp_pair().await;
        let (mut client, mut server) = tcp_pair().await;
        let sending = blitz_io::spawn(async move {
            for number in 0..100_u8 {
                a.send(&[number]).await.unwrap();
                client.write_all(&[number]).await.unwrap();
                // Leaves room in the receiver's queue.
                blitz_io::task::yield_now().await;
            }
            (a, client)
        });
        let (mut datagrams, mut bytes) = (0, 0);
        let (mut one, mut other) = ([0; 1], [0; 1]);
        while datagrams < 100 || bytes < 100 {
            blitz_io::select! {
                count = b.recv(&mut one), if datagrams < 100 => {
                    assert_eq!((count.unwrap(), one[0]), (1, datagrams));
                    datagrams += 1;
                }
                count = server.read(&mut other), if bytes < 100 => {
                    assert_eq!((count.unwrap(), other[0]), (1, bytes));
                    bytes += 1;
                }
            }
        }
        sending.await.unwrap();
    });
}

#[test]
fn a_sleep_that_is_cut_off_at_any_poll_leaves_the_others() {
    for polls in 0..4 {
        paused(async move {
            let mut cut = by_hand(sleep(ms(5)));
            let mut kept = waiting(sleep(ms(10)));
            for _ in 0..polls {
                cut.pending();
            }
            time::advance(ms(7)).await;
            others_wait().await;
            drop(cut);
            kept.still_waits();
            time::advance(ms(4)).await;
            others_wait().await;
            kept.woken_and_ready();
        });
    }
}

#[test]
fn a_task_that_is_aborted_gives_its_socket_up() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        let reading = blitz_io::spawn(async move {
            let mut server = server;
            server.read(&mut [0; 8]).await
        });
        reading.abort();
        assert!(reading.await.unwrap_err().is_cancelled());
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0, "it is closed");
        let _ = UdpSocket::bind(ANY).await.unwrap();
    });
}

#[test]
fn a_read_that_was_given_up_loses_nothing() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        for round in 0..32 {
            let mut buf = [0; 4];
            assert!(once(server.read(&mut buf)).is_pending());
            client.write_u32(round).await.unwrap();
            assert_eq!(server.read_u32().await.unwrap(), round);
        }
    });
}

#[test]
fn an_accept_that_was_given_up_takes_no_connection() {
    on_all_kinds(|| async {
        let (listener, address) = listener().await;
        for _ in 0..32 {
            assert!(once(listener.accept()).is_pending());
            let client = TcpStream::connect(address).await.unwrap();
            let (_, from) = listener.accept().await.unwrap();
            assert_eq!(from, client.local_addr().unwrap());
        }
    });
}

#[test]
fn a_receive_that_was_given_up_loses_no_datagram() {
    on_all_kinds(|| async {
        let (one, other) = udp_pair().await;
        for round in 0..64u8 {
            let mut buf = [0; 4];
            assert!(once(other.recv(&mut buf)).is_pending());
            one.send(&[round]).await.unwrap();
            assert_eq!(other.recv(&mut buf).await.unwrap(), 1);
            assert_eq!(buf[0], round);
        }
    });
}
