//! Tests the halves of a TCP stream, borrowed and owned.

use std::io::ErrorKind;

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::TcpStream,
};

use crate::support::{manual_poll::once, runtimes::on_all_kinds, sockets::tcp_pair};

#[test]
fn borrowed_halves_work_at_once() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        let (mut read, mut write) = client.split();
        let bytes = vec![5; 1_000_000];
        let echo = blitz_io::spawn(async move {
            let (mut read, mut write) = server.split();
            let count = blitz_io::io::copy(&mut read, &mut write).await.unwrap();
            write.shutdown().await.unwrap();
            count
        });
        let mut got = Vec::new();
        let (sent, read) = blitz_io::join!(
            async {
                write.write_all(&bytes).await.unwrap();
                write.shutdown().await
            },
            read.read_to_end(&mut got),
        );
        sent.unwrap();
        assert_eq!(read.unwrap(), 1_000_000);
        assert_eq!(echo.await.unwrap(), 1_000_000);
        assert!(got == bytes);
    });
}

#[test]
fn owned_halves_work_on_two_tasks() {
    on_all_kinds(|| async {
        let (client, server) = tcp_pair().await;
        let (mut read, mut write) = client.into_split();
        let (mut far_read, mut far_write) = server.into_split();
        let writing = blitz_io::spawn(async move {
            for number in 0..5000_u32 {
                write.write_u32(number).await.unwrap();
            }
            write
        });
        let echo = blitz_io::spawn(async move {
            blitz_io::io::copy(&mut far_read, &mut far_write).await.unwrap();
        });
        for number in 0..5000 {
            assert_eq!(read.read_u32().await.unwrap(), number);
        }
        // Dropping the write half shuts down that direction.
        drop(writing.await.unwrap());
        echo.await.unwrap();
        assert_eq!(read.read(&mut [0; 1]).await.unwrap(), 0);
    });
}

#[test]
fn a_dropped_write_half_shuts_down_and_a_forgotten_one_does_not() {
    on_all_kinds(|| async {
        let (client, mut server) = tcp_pair().await;
        let (mut read, write) = client.into_split();
        drop(write);
        assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 0);
        server.write_all(b"x").await.unwrap();
        assert_eq!(read.read_u8().await.unwrap(), b'x');

        let (client, mut server) = tcp_pair().await;
        let (mut read, write) = client.into_split();
        write.forget();
        server.write_all(b"x").await.unwrap();
        assert_eq!(read.read_u8().await.unwrap(), b'x');
        assert_eq!(server.try_read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_dropped_read_half_leaves_writing_alone() {
    on_all_kinds(|| async {
        let (client, mut server) = tcp_pair().await;
        let (read, mut write) = client.into_split();
        drop(read);
        write.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn halves_of_one_stream_become_it_again() {
    on_all_kinds(|| async {
        let (client, mut server) = tcp_pair().await;
        let address = client.local_addr().unwrap();
        let (read, write) = client.into_split();
        assert_eq!(read.local_addr().unwrap(), address);
        assert_eq!(write.peer_addr().unwrap(), server.local_addr().unwrap());
        let mut client: TcpStream = read.reunite(write).unwrap();
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn halves_of_two_streams_come_back_in_the_error() {
    on_all_kinds(|| async {
        let (a, mut a_far) = tcp_pair().await;
        let (b, _b_far) = tcp_pair().await;
        let (a_read, a_write) = a.into_split();
        let (b_read, b_write) = b.into_split();
        let error = a_read.reunite(b_write).unwrap_err();
        assert!(error.to_string().contains("not from the same socket"), "{error}");
        let (a_read, b_write) = (error.0, error.1);
        b_read.reunite(b_write).unwrap();
        let mut a = a_read.reunite(a_write).unwrap();
        a.write_all(b"x").await.unwrap();
        assert_eq!(a_far.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn halves_have_what_the_stream_has() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        let (mut read, write) = client.split();
        write.writable().await.unwrap();
        assert_eq!(write.try_write(b"ab").unwrap(), 2);
        assert!(write.ready(Interest::WRITABLE).await.unwrap().is_writable());
        server.write_all(b"cd").await.unwrap();
        read.readable().await.unwrap();
        let mut two = [0; 2];
        assert_eq!(read.peek(&mut two).await.unwrap(), 2);
        assert_eq!(read.try_read(&mut two).unwrap(), 2);
        assert_eq!(&two, b"cd");
        assert_eq!(read.as_ref().local_addr().unwrap(), write.local_addr().unwrap());
        server.read_exact(&mut two).await.unwrap();
        assert_eq!(&two, b"ab");
    });
}

#[test]
fn a_dropped_owned_writer_ends_the_writing_and_a_forgotten_one_does_not() {
    on_all_kinds(|| async {
        let (client, mut server) = tcp_pair().await;
        let (reader, writer) = client.into_split();
        writer.forget();
        assert!(once(server.readable()).is_pending() || server.try_read(&mut [0]).is_err());
        drop(reader);
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);

        let (client, mut server) = tcp_pair().await;
        let (_reader, writer) = client.into_split();
        drop(writer);
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn a_borrowed_writer_does_not_end_the_writing() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        {
            let (_reader, _writer) = client.split();
        }
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn halves_come_together_only_with_their_own() {
    on_all_kinds(|| async {
        let (client, server) = tcp_pair().await;
        let addr = client.local_addr().unwrap();
        let (client_reader, client_writer) = client.into_split();
        let (server_reader, server_writer) = server.into_split();
        let error = client_reader.reunite(server_writer).unwrap_err();
        assert!(error.to_string().starts_with("tried to reunite halves"), "{error}");
        let mut client = client_writer.reunite(error.0).unwrap();
        let mut server = server_reader.reunite(error.1).unwrap();
        assert_eq!(client.local_addr().unwrap(), addr);
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}
