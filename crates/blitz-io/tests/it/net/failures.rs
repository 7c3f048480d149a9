//! Tests failures on the network: each is an error with the system's number, and nothing hangs.

use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{self, TcpListener, TcpSocket, TcpStream, UdpSocket},
};

use crate::support::{
    caught_panic::panic_of,
    manual_poll::once,
    runtimes::{on_all_kinds, workers_with_drivers},
    sockets::{listener, tcp_pair},
    watchdog,
};

#[track_caller]
fn says(error: &io::Error, words: &[&str]) {
    for word in words {
        assert!(error.to_string().contains(word), "`{word}` is not in: {error}");
    }
}

/// Creates a socket that does not listen at its address. It keeps the address for as long as it
/// lives, because otherwise another test might get it.
fn deserted() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    (socket, addr)
}

/// The numbers of `WSAECONNREFUSED`, `WSAEADDRINUSE` and `WSAEADDRNOTAVAIL` on Windows.
#[cfg(windows)]
const REFUSED: i32 = 10_061;
#[cfg(windows)]
const IN_USE: i32 = 10_048;
#[cfg(windows)]
const NOT_AVAILABLE: i32 = 10_049;
#[cfg(unix)]
const REFUSED: i32 = libc::ECONNREFUSED;
#[cfg(unix)]
const IN_USE: i32 = libc::EADDRINUSE;
#[cfg(unix)]
const NOT_AVAILABLE: i32 = libc::EADDRNOTAVAIL;

#[test]
fn a_refused_connection_has_the_systems_number() {
    on_all_kinds(|| async {
        let (_deserted, addr) = deserted();
        let error = TcpStream::connect(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(error.raw_os_error(), Some(REFUSED));
        let error = TcpSocket::new_v4().unwrap().connect(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(error.raw_os_error(), Some(REFUSED));
    });
}

#[test]
fn every_address_is_tried_and_the_last_error_is_returned() {
    on_all_kinds(|| async {
        let (_listener, good) = listener().await;
        let (_one, one) = deserted();
        let stream = TcpStream::connect(&[one, good][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        // A broadcast address cannot be connected to.
        let bad: SocketAddr = "255.255.255.255:9".parse().unwrap();
        let last = |error: io::Error| error.raw_os_error();
        let error = TcpStream::connect(&[bad, one][..]).await.unwrap_err();
        assert_eq!(last(error), Some(REFUSED));
        let error = TcpStream::connect(&[one, bad][..]).await.unwrap_err();
        assert_ne!(last(error), Some(REFUSED));
    });
}

#[test]
fn no_address_at_all_is_bad_input() {
    on_all_kinds(|| async {
        let none: &[SocketAddr] = &[];
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let errors = [
            TcpStream::connect(none).await.unwrap_err(),
            TcpListener::bind(none).await.unwrap_err(),
            UdpSocket::bind(none).await.unwrap_err(),
            socket.connect(none).await.unwrap_err(),
            socket.send_to(b"x", none).await.unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::InvalidInput), "{errors:?}");
        assert_eq!(net::lookup_host(none).await.unwrap().count(), 0);
    });
}

#[test]
fn a_name_without_a_port_is_invalid_input_and_the_error_names_it() {
    on_all_kinds(|| async {
        let error = TcpStream::connect("localhost").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        says(&error, &["localhost"]);
    });
}

#[test]
fn a_taken_port_has_the_systems_number() {
    on_all_kinds(|| async {
        let (_taken, addr) = listener().await;
        let error = TcpListener::bind(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert_eq!(error.raw_os_error(), Some(IN_USE));

        let taken = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = taken.local_addr().unwrap();
        let error = UdpSocket::bind(addr).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert_eq!(error.raw_os_error(), Some(IN_USE));
    });
}

#[test]
fn an_address_of_another_machine_cannot_be_bound() {
    on_all_kinds(|| async {
        // An address of the block for documentation, which no machine has.
        let error = TcpListener::bind("192.0.2.1:0").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        assert_eq!(error.raw_os_error(), Some(NOT_AVAILABLE));
    });
}

#[cfg(unix)]
#[test]
fn a_path_that_is_taken_missing_or_too_long_is_an_error() {
    use blitz_io::net::{UnixDatagram, UnixListener, UnixStream};
    on_all_kinds(|| async {
        let error = UnixStream::connect("/nowhere/at/all").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let error = UnixListener::bind("/nowhere/at/all").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let error = UnixDatagram::bind("/").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE));
        let long = "x".repeat(200);
        for error in [
            UnixStream::connect(&long).await.unwrap_err(),
            UnixListener::bind(&long).unwrap_err(),
            UnixDatagram::bind(&long).unwrap_err(),
            UnixListener::bind("a\0b").unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    });
}

#[test]
fn an_empty_buffer_is_full_at_once() {
    on_all_kinds(|| async {
        let (mut client, mut server) = tcp_pair().await;
        assert_eq!(client.read(&mut []).await.unwrap(), 0);
        assert_eq!(client.write(&[]).await.unwrap(), 0);
        server.write_all(b"x").await.unwrap();
        assert_eq!(client.read(&mut []).await.unwrap(), 0);
        assert_eq!(client.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn writing_to_a_closed_connection_ends_with_an_error() {
    on_all_kinds(|| async {
        let (mut client, server) = tcp_pair().await;
        drop(server);
        let error = loop {
            if let Err(error) = client.write_all(&[0; 4096]).await {
                break error;
            }
        };
        assert!(
            matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
            "{error:?}"
        );
    });
}

/// Windows does not report whether a socket is in blocking mode.
#[test]
#[cfg(all(unix, debug_assertions))]
fn a_socket_in_blocking_mode_is_refused_in_debug_builds() {
    let _watch = watchdog::start();
    let rt = workers_with_drivers(2);
    let _guard = rt.enter();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = line!() + 1;
    let caught = panic_of(|| TcpListener::from_std(listener));
    caught.says(&["Registering a blocking socket with the tokio runtime is unsupported"]);
    caught.at(file!(), line);
}

#[test]
fn without_a_runtime_from_std_panics_at_the_callers_line() {
    let _watch = watchdog::start();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let line = line!() + 1;
    let caught = panic_of(|| UdpSocket::from_std(socket));
    caught.says(&["there is no reactor running, must be called from the context of a Tokio 1.x"]);
    caught.at(file!(), line);
    #[cfg(unix)]
    panic_of(blitz_io::net::UnixStream::pair).says(&["there is no reactor running"]);
}

#[test]
fn a_socket_works_from_another_runtime_while_its_own_runs() {
    let _watch = watchdog::start();
    let (first, abroad) = (workers_with_drivers(2), workers_with_drivers(2));
    let (mut client, mut server) = first.block_on(tcp_pair());
    abroad.block_on(async {
        assert!(once(server.read(&mut [0])).is_pending());
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn a_socket_used_after_its_runtime_returns_an_error_and_does_not_hang() {
    let _watch = watchdog::start();
    let (first, abroad) = (workers_with_drivers(2), workers_with_drivers(2));
    let (mut client, server) = first.block_on(tcp_pair());
    let (listener, _) = first.block_on(listener());
    drop(first);
    abroad.block_on(async {
        for error in [
            client.read(&mut [0]).await.unwrap_err(),
            server.readable().await.unwrap_err(),
            listener.accept().await.unwrap_err(),
        ] {
            says(&error, &["A Tokio 1.x context was found, but it is being shutdown"]);
        }
    });
    // Operations that do not wait return what they return for a socket that is not ready.
    assert_eq!(server.try_read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let tried = server.try_io(blitz_io::io::Interest::READABLE, || Ok(()));
    assert_eq!(tried.unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn an_operation_pending_when_the_runtime_ends_returns_an_error() {
    let _watch = watchdog::start();
    let (first, abroad) = (workers_with_drivers(2), workers_with_drivers(2));
    let (mut client, _server) = first.block_on(tcp_pair());
    let waits = abroad.spawn(async move { client.read(&mut [0]).await.unwrap_err() });
    drop(first);
    let error = abroad.block_on(waits).unwrap();
    says(&error, &["it is being shutdown"]);
}

/// The error has the number of a full epoll (`ENOSPC`) or of a kernel without memory (`ENOMEM`).
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_descriptor_that_epoll_refuses_has_the_systems_number() {
    let _watch = watchdog::start();
    for number in [libc::ENOSPC, libc::ENOMEM] {
        // The filter ends with its thread.
        let refused = std::thread::spawn(move || {
            let runtime = crate::support::runtimes::one_thread_with_drivers();
            if runtime.handle().io_backend() != Some(blitz_io::runtime::IoBackend::Epoll) {
                return;
            }
            crate::support::syscall_filter::forbid_with(libc::SYS_epoll_ctl, number, 0);
            runtime.block_on(async {
                let error = TcpListener::bind("127.0.0.1:0").await.unwrap_err();
                assert_eq!(error.raw_os_error(), Some(number), "{error:?}");
                let error = net::UnixStream::pair().unwrap_err();
                assert_eq!(error.raw_os_error(), Some(number), "{error:?}");
            });
        });
        refused.join().unwrap();
    }
}
