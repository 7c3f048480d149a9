//! Tests one socket that several tasks use at once.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{
    gate::Gate,
    manual_poll::waiting,
    runtimes::{on_all_kinds, on_one_thread, others_wait},
    sockets,
};

#[test]
fn several_accept_from_one_listener_and_each_connection_is_got_once() {
    on_all_kinds(|| async {
        let (listener, address) = sockets::listener().await;
        let listener = Arc::new(listener);
        let acceptors: Vec<_> = (0..4)
            .map(|_| {
                let listener = listener.clone();
                blitz_io::spawn(async move {
                    let mut got = Vec::new();
                    loop {
                        let (mut stream, _) = listener.accept().await.unwrap();
                        match stream.read_u32().await.unwrap() {
                            u32::MAX => return got,
                            number => got.push(number),
                        }
                    }
                })
            })
            .collect();
        for number in (0..100).chain([u32::MAX; 4]) {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_u32(number).await.unwrap();
        }
        let mut all = Vec::new();
        for acceptor in acceptors {
            all.extend(acceptor.await.unwrap());
        }
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn a_reader_and_a_writer_do_not_wake_each_other_needlessly() {
    on_one_thread(async {
        let (client, mut server) = sockets::tcp_pair().await;
        // The buffers are full, so no task can write.
        client.writable().await.unwrap();
        let mut sent = 0;
        while let Ok(count) = client.try_write(&[0; 65536]) {
            sent += count;
        }
        let mut writable = waiting(client.writable());
        let mut readable = waiting(client.readable());
        server.write_all(b"x").await.unwrap();
        readable.pin().await.unwrap();
        drop(readable);
        assert_eq!(client.try_read(&mut [0; 8]).unwrap(), 1);
        writable.pending();
        let mut got = vec![0; sent];
        server.read_exact(&mut got).await.unwrap();
        writable.pin().await.unwrap();
    });
}

#[test]
fn all_waiters_for_the_same_readiness_are_woken() {
    on_all_kinds(|| async {
        let (mut client, server) = sockets::tcp_pair().await;
        let server = Arc::new(server);
        let woken = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (server, woken) = (server.clone(), woken.clone());
                blitz_io::spawn(async move {
                    server.readable().await.unwrap();
                    woken.fetch_add(1, Relaxed);
                })
            })
            .collect();
        client.write_all(b"x").await.unwrap();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(woken.load(Relaxed), 20);
    });
}

#[test]
fn readers_of_one_stream_get_every_byte_once() {
    on_all_kinds(|| async {
        let (mut client, server) = sockets::tcp_pair().await;
        let server = Arc::new(server);
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let server = server.clone();
                blitz_io::spawn(async move {
                    let mut got = Vec::new();
                    let mut buffer = [0; 97];
                    loop {
                        server.readable().await.unwrap();
                        match server.try_read(&mut buffer) {
                            Ok(0) => return got,
                            Ok(count) => got.extend_from_slice(&buffer[..count]),
                            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
                        }
                    }
                })
            })
            .collect();
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 256) as u8).collect();
        client.write_all(&bytes).await.unwrap();
        drop(client);
        let mut counts = [0; 256];
        for reader in readers {
            for byte in reader.await.unwrap() {
                counts[byte as usize] += 1;
            }
        }
        let mut wanted = [0; 256];
        bytes.iter().for_each(|byte| wanted[*byte as usize] += 1);
        assert_eq!(counts, wanted);
    });
}

#[test]
fn a_stream_that_moves_from_task_to_task_keeps_its_place() {
    on_all_kinds(|| async {
        let (mut client, server) = sockets::tcp_pair().await;
        let mut server = Some(server);
        for number in 0..50_u32 {
            let mut moved = server.take().unwrap();
            // The stream waits in one task, which returns it to the next; no abort is involved.
            let task = blitz_io::spawn(async move {
                let got = moved.read_u32().await.unwrap();
                (got, moved)
            });
            client.write_u32(number).await.unwrap();
            let (got, back) = task.await.unwrap();
            assert_eq!(got, number);
            server = Some(back);
        }
    });
}

#[test]
fn a_waker_of_an_earlier_task_is_forgotten() {
    on_one_thread(async {
        let (mut client, server) = sockets::tcp_pair().await;
        let mut server = server;
        {
            let mut buffer = [0; 4];
            let mut first = waiting(server.read(&mut buffer));
            first.still_waits();
        }
        let mut buffer = [0; 4];
        let mut second = waiting(server.read(&mut buffer));
        client.write_all(b"x").await.unwrap();
        while !second.woken() {
            others_wait().await;
        }
        assert_eq!(second.ready().unwrap(), 1);
    });
}

#[test]
fn tasks_on_all_workers_talk_through_one_listener() {
    on_all_kinds(|| async {
        let (listener, address) = sockets::listener().await;
        let gate = Gate::new();
        let server = blitz_io::spawn({
            let gate = gate.clone();
            async move {
                let mut handlers = Vec::new();
                for _ in 0..64 {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    handlers.push(blitz_io::spawn(async move {
                        let (mut read, mut write) = stream.split();
                        blitz_io::io::copy(&mut read, &mut write).await.unwrap()
                    }));
                }
                gate.open();
                let mut all = 0;
                for handler in handlers {
                    all += handler.await.unwrap();
                }
                all
            }
        });
        let clients: Vec<_> = (0..64_u32)
            .map(|number| {
                let gate = gate.clone();
                blitz_io::spawn(async move {
                    let mut stream = TcpStream::connect(address).await.unwrap();
                    gate.opened().await;
                    for round in 0..20 {
                        stream.write_u32(number * 100 + round).await.unwrap();
                        assert_eq!(stream.read_u32().await.unwrap(), number * 100 + round);
                    }
                    number
                })
            })
            .collect();
        let mut done = BTreeSet::new();
        for client in clients {
            done.insert(client.await.unwrap());
        }
        assert_eq!((done.len(), server.await.unwrap()), (64, 64 * 20 * 4));
    });
}
