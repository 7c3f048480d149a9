//! Tests Unix stream sockets and listeners.

use std::{future::poll_fn, io::ErrorKind};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{UnixListener, UnixSocket, UnixStream},
};

use crate::support::{
    runtimes::{on_all_kinds, on_one_thread},
    sockets::would_block,
    temp_files::{folder, unused_path},
};

#[test]
fn a_pair_is_connected() {
    on_all_kinds(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        a.write_all(b"ping").await.unwrap();
        let mut four = [0; 4];
        b.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"ping");
        drop(a);
        assert_eq!(b.read(&mut four).await.unwrap(), 0);
        let error = b.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_listener_at_a_path_is_found_there() {
    on_all_kinds(|| async {
        let path = unused_path();
        let listener = UnixListener::bind(&path).unwrap();
        let (client, server) = blitz_io::join!(UnixStream::connect(&path), listener.accept());
        let (mut client, (mut server, from)) = (client.unwrap(), server.unwrap());
        assert!(from.is_unnamed());
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(path.as_ref()));
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(path.as_ref()));
        client.write_all(b"hello").await.unwrap();
        client.shutdown().await.unwrap();
        let mut all = String::new();
        server.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "hello");
        let again = UnixStream::connect(&path).await.unwrap();
        poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
        drop(again);
    });
}

#[test]
fn a_path_without_a_listener_is_an_error_that_names_the_path() {
    let _no_child = crate::support::child::none_starts();
    on_all_kinds(|| async {
        let path = unused_path();
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        drop(UnixListener::bind(&path).unwrap());
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = UnixListener::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    });
}

#[test]
fn a_path_that_is_too_long_is_an_error() {
    on_all_kinds(|| async {
        let long = "x".repeat(300);
        assert_eq!(UnixListener::bind(&long).unwrap_err().kind(), ErrorKind::InvalidInput);
        let error = UnixStream::connect(&long).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn an_abstract_name_needs_no_file() {
    on_all_kinds(|| async {
        let name = format!("\0{}", unused_path().as_ref().display());
        let listener = UnixListener::bind(&name).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(address.as_abstract_name(), Some(&name.as_bytes()[1..]));
        let (client, server) = blitz_io::join!(UnixStream::connect(&name), listener.accept());
        client.unwrap();
        server.unwrap();
    });
}

#[test]
fn credentials_are_those_of_this_process() {
    on_one_thread(async {
        let (a, _b) = UnixStream::pair().unwrap();
        let cred = a.peer_cred().unwrap();
        // SAFETY: neither call takes or returns a pointer.
        let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
        assert_eq!((cred.uid(), cred.gid()), (uid, gid));
        #[cfg(target_os = "linux")]
        assert_eq!(cred.pid(), Some(std::process::id() as i32));
        assert_eq!(cred, a.peer_cred().unwrap());
    });
}

#[test]
fn tries_and_readiness_are_as_with_tcp() {
    on_all_kinds(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let mut buffer = [0; 8];
        assert_eq!(b.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        a.writable().await.unwrap();
        assert_eq!(a.try_write(b"abc").unwrap(), 3);
        b.readable().await.unwrap();
        assert!(b.ready(Interest::READABLE).await.unwrap().is_readable());
        assert_eq!(b.try_read(&mut buffer).unwrap(), 3);
        assert_eq!(b.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(a);
        b.readable().await.unwrap();
        assert_eq!(b.try_read(&mut buffer).unwrap(), 0);
    });
}

#[test]
fn halves_work_on_two_tasks_and_join_again() {
    on_all_kinds(|| async {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut read, mut write) = a.into_split();
        let (mut far_read, mut far_write) = b.into_split();
        let echo = blitz_io::spawn(async move {
            blitz_io::io::copy(&mut far_read, &mut far_write).await.unwrap()
        });
        let writing = blitz_io::spawn(async move {
            write.write_all(&[3; 300_000]).await.unwrap();
            write.shutdown().await.unwrap();
            write
        });
        let mut got = Vec::new();
        read.read_to_end(&mut got).await.unwrap();
        assert_eq!(got.len(), 300_000);
        assert_eq!(echo.await.unwrap(), 300_000);
        let write = writing.await.unwrap();
        let other = UnixStream::pair().unwrap().0.into_split().1;
        let error = read.reunite(other).unwrap_err();
        error.0.reunite(write).unwrap();
    });
}

#[test]
fn borrowed_halves_work_at_once() {
    on_all_kinds(|| async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let echo = blitz_io::spawn(async move {
            let (mut read, mut write) = b.split();
            blitz_io::io::copy(&mut read, &mut write).await.unwrap();
        });
        let (mut read, mut write) = a.split();
        let mut got = vec![0; 500_000];
        let (sent, read) =
            blitz_io::join!(write.write_all(&[7; 500_000]), read.read_exact(&mut got));
        sent.unwrap();
        read.unwrap();
        drop(a);
        echo.await.unwrap();
    });
}

#[test]
fn a_socket_becomes_a_listener_or_a_stream() {
    on_all_kinds(|| async {
        let path = unused_path();
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let listener = socket.listen(8).unwrap();
        let socket = UnixSocket::new_stream().unwrap();
        let (client, server) = blitz_io::join!(socket.connect(&path), listener.accept());
        client.unwrap();
        server.unwrap();
        let datagram = UnixSocket::new_datagram().unwrap();
        assert!(datagram.listen(8).is_err());
        assert!(UnixSocket::new_datagram().unwrap().connect(&path).await.is_err());
        assert!(UnixSocket::new_stream().unwrap().datagram().is_err());
    });
}

#[test]
fn a_std_stream_converts_in_and_out() {
    on_all_kinds(|| async {
        let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        b.set_nonblocking(true).unwrap();
        let (mut a, mut b) = (UnixStream::from_std(a).unwrap(), UnixStream::from_std(b).unwrap());
        a.write_all(b"x").await.unwrap();
        assert_eq!(b.read_u8().await.unwrap(), b'x');
        let a = a.into_std().unwrap();
        drop(a);
        assert_eq!(b.read(&mut [0; 1]).await.unwrap(), 0);
    });
}

#[test]
fn a_stream_at_a_path_connects_and_carries_bytes() {
    on_all_kinds(|| async {
        let dir = folder();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = UnixStream::connect(&path).await.unwrap();
        let (mut server, from) = listener.accept().await.unwrap();
        assert!(from.is_unnamed() && client.local_addr().unwrap().is_unnamed());
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(path.as_path()));
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(path.as_path()));

        client.write_all(b"request").await.unwrap();
        client.shutdown().await.unwrap();
        let mut request = String::new();
        server.read_to_string(&mut request).await.unwrap();
        server.write_all(b"reply").await.unwrap();
        drop(server);
        let mut reply = String::new();
        client.read_to_string(&mut reply).await.unwrap();
        assert_eq!((request.as_str(), reply.as_str()), ("request", "reply"));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_name_without_a_file_connects() {
    on_all_kinds(|| async {
        let name = format!("\0blitz-it-{}-{:?}", std::process::id(), std::thread::current().id());
        let listener = UnixListener::bind(&name).unwrap();
        let addr = listener.local_addr().unwrap();
        assert_eq!(addr.as_abstract_name(), Some(&name.as_bytes()[1..]));
        assert_eq!(addr.as_pathname(), None);
        let by_name = UnixStream::connect(&name).await.unwrap();
        let by_addr = UnixStream::connect_addr(&addr).await.unwrap();
        assert_eq!(
            by_name.peer_addr().unwrap().as_abstract_name(),
            by_addr.peer_addr().unwrap().as_abstract_name()
        );
        let error = UnixListener::bind_addr(&addr).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    });
}

#[test]
fn a_pair_is_connected_and_can_be_written_to_at_once() {
    on_all_kinds(|| async {
        let (one, mut other) = UnixStream::pair().unwrap();
        assert_eq!(one.try_write(b"abc").unwrap(), 3);
        let mut buf = [0; 3];
        other.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"abc");
        would_block(other.try_read(&mut buf));
        drop(one);
        assert_eq!(other.read(&mut buf).await.unwrap(), 0);
    });
}

#[test]
fn much_goes_through_a_pair_both_ways_at_once() {
    on_all_kinds(|| async {
        let (one, other) = UnixStream::pair().unwrap();
        let ends = [one, other].map(|stream| {
            let (mut reader, mut writer) = stream.into_split();
            let writes =
                blitz_io::spawn(async move { writer.write_all(&vec![9; 4 << 20]).await.unwrap() });
            let reads = blitz_io::spawn(async move {
                let mut read = Vec::new();
                reader.read_to_end(&mut read).await.unwrap();
                read.len()
            });
            (writes, reads)
        });
        for (writes, reads) in ends {
            writes.await.unwrap();
            assert_eq!(reads.await.unwrap(), 4 << 20);
        }
    });
}

#[test]
fn the_peer_of_a_pair_is_this_process() {
    on_all_kinds(|| async {
        let (one, other) = UnixStream::pair().unwrap();
        let cred = one.peer_cred().unwrap();
        assert_eq!(cred, other.peer_cred().unwrap());
        #[cfg(target_os = "linux")]
        assert_eq!(cred.pid(), Some(std::process::id() as i32));
    });
}
