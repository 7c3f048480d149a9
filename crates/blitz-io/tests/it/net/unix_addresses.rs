//! Tests Unix sockets that are bound before they connect or have the wrong kind, and paths that
//! fill the address.

use blitz_io::net::UnixSocket;

use crate::support::{runtimes::on_all_kinds, temp_files::folder};

#[test]
fn a_socket_can_be_bound_before_it_connects() {
    on_all_kinds(|| async {
        let dir = folder();
        let server = UnixSocket::new_stream().unwrap();
        server.bind(dir.path().join("server")).unwrap();
        let listener = server.listen(4).unwrap();
        let client = UnixSocket::new_stream().unwrap();
        client.bind(dir.path().join("client")).unwrap();
        let _stream = client.connect(dir.path().join("server")).await.unwrap();
        let (_, from) = listener.accept().await.unwrap();
        assert_eq!(from.as_pathname(), Some(dir.path().join("client").as_path()));
    });
}

#[test]
fn a_socket_of_the_other_kind_is_refused() {
    on_all_kinds(|| async {
        assert!(UnixSocket::new_datagram().unwrap().listen(4).is_err());
        assert!(UnixSocket::new_datagram().unwrap().connect("/nowhere").await.is_err());
        assert!(UnixSocket::new_stream().unwrap().datagram().is_err());
        assert!(UnixSocket::new_datagram().unwrap().datagram().is_ok());
    });
}

/// Other systems have another length of the field, or a zero byte at its end.
#[cfg(target_os = "linux")]
mod full_paths {
    use std::path::PathBuf;

    use blitz_io::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{UnixDatagram, UnixListener, UnixSocket},
    };
    use tempfile::TempDir;

    use crate::support::{runtimes::on_all_kinds, temp_files::folder};

    /// Binds a socket to a path that fills `sun_path`, so that no zero byte ends it.
    fn bind_to_108_bytes(socket: &impl std::os::fd::AsRawFd, dir: &TempDir) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let room = 108 - dir.path().join("").as_os_str().len();
        let path = dir.path().join("p".repeat(room));
        // SAFETY: all zeros are a valid `sockaddr_un`.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        assert_eq!(path.as_os_str().len(), address.sun_path.len());
        for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_bytes()) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is valid for `length` bytes, and is only read during the call.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
        path
    }

    #[test]
    fn a_message_of_a_peer_with_a_path_of_108_bytes_is_received() {
        on_all_kinds(|| async {
            let dir = folder();
            let here = UnixDatagram::bind(dir.path().join("here")).unwrap();
            let peer = std::os::unix::net::UnixDatagram::unbound().unwrap();
            let path = bind_to_108_bytes(&peer, &dir);
            peer.send_to(b"abc", dir.path().join("here")).unwrap();
            let mut buf = [0; 8];
            let (count, from) = here.recv_from(&mut buf).await.unwrap();
            assert_eq!(&buf[..count], b"abc");
            assert_eq!((from.as_pathname(), from.is_unnamed()), (Some(path.as_path()), false));
            assert_eq!(format!("{from:?}"), format!("{path:?} (pathname)"));
            let refused = UnixListener::bind_addr(&from).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
            assert!(std::os::unix::net::SocketAddr::from(from).is_unnamed());
        });
    }

    #[test]
    fn a_connection_of_a_peer_with_a_path_of_108_bytes_is_accepted() {
        on_all_kinds(|| async {
            let dir = folder();
            let listener = UnixListener::bind(dir.path().join("here")).unwrap();
            let peer = UnixSocket::new_stream().unwrap();
            let path = bind_to_108_bytes(&peer, &dir);
            let mut peer = peer.connect(dir.path().join("here")).await.unwrap();
            let (mut stream, from) = listener.accept().await.unwrap();
            assert_eq!(from.as_pathname(), Some(path.as_path()));
            assert_eq!(stream.peer_addr().unwrap().as_pathname(), Some(path.as_path()));
            peer.write_all(b"abc").await.unwrap();
            let mut buf = [0; 3];
            stream.read_exact(&mut buf).await.unwrap();
            assert_eq!(&buf, b"abc");
        });
    }
}
