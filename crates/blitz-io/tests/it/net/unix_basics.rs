//! Unix sockets and pipes.

use std::{
    fs::File,
    future::poll_fn,
    io::{ErrorKind, Read, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use blitz_io::{
    io::{AsyncReadExt, AsyncWriteExt, ReadBuf},
    net::{
        UnixDatagram, UnixListener, UnixSocket, UnixStream,
        unix::pipe::{self, OpenOptions, Receiver, Sender},
    },
};

use crate::net::connected::{on_each, once, would_block};

/// A temporary folder, removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("blitz-it-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fifo(path: &Path) {
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: `path` ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

#[test]
fn a_stream_at_a_path_connects_and_carries_bytes() {
    on_each(async || {
        let folder = Folder::new();
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = UnixStream::connect(&path).await.unwrap();
        let (mut server, from) = listener.accept().await.unwrap();
        assert!(from.is_unnamed() && client.local_addr().unwrap().is_unnamed());
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(path.as_path()));
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(path.as_path()));

        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        server.write_all(b"answer").await.unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!((question.as_str(), answer.as_str()), ("question", "answer"));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_name_without_a_file_connects() {
    on_each(async || {
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
    on_each(async || {
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
    on_each(async || {
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
    on_each(async || {
        let (one, other) = UnixStream::pair().unwrap();
        let cred = one.peer_cred().unwrap();
        assert_eq!(cred, other.peer_cred().unwrap());
        #[cfg(target_os = "linux")]
        assert_eq!(cred.pid(), Some(std::process::id() as i32));
    });
}

#[test]
fn a_socket_can_be_bound_before_it_connects() {
    on_each(async || {
        let folder = Folder::new();
        let server = UnixSocket::new_stream().unwrap();
        server.bind(folder.join("server")).unwrap();
        let listener = server.listen(4).unwrap();
        let client = UnixSocket::new_stream().unwrap();
        client.bind(folder.join("client")).unwrap();
        let _stream = client.connect(folder.join("server")).await.unwrap();
        let (_, from) = listener.accept().await.unwrap();
        assert_eq!(from.as_pathname(), Some(folder.join("client").as_path()));
    });
}

#[test]
fn a_socket_of_the_other_kind_is_refused() {
    on_each(async || {
        assert!(UnixSocket::new_datagram().unwrap().listen(4).is_err());
        assert!(UnixSocket::new_datagram().unwrap().connect("/nowhere").await.is_err());
        assert!(UnixSocket::new_stream().unwrap().datagram().is_err());
        assert!(UnixSocket::new_datagram().unwrap().datagram().is_ok());
    });
}

#[test]
fn datagrams_arrive_with_their_bounds_and_their_sender() {
    on_each(async || {
        let folder = Folder::new();
        let (at_one, at_other) = (folder.join("one"), folder.join("other"));
        let one = UnixDatagram::bind(&at_one).unwrap();
        let other = UnixDatagram::bind(&at_other).unwrap();
        one.send_to(b"abcdef", &at_other).await.unwrap();
        UnixDatagram::unbound().unwrap().send_to(b"", &at_other).await.unwrap();
        let mut buf = [0; 4];
        let (count, from) = other.recv_from(&mut buf).await.unwrap();
        assert_eq!((count, &buf, from.as_pathname()), (4, b"abcd", Some(at_one.as_path())));
        let (count, from) = other.recv_from(&mut buf).await.unwrap();
        assert!(count == 0 && from.is_unnamed());
        other.connect(&at_one).unwrap();
        other.send(b"back").await.unwrap();
        let mut back = Vec::new();
        let (count, from) = one.recv_buf_from(&mut back).await.unwrap();
        assert_eq!(
            (count, &back[..], from.as_pathname()),
            (4, &b"back"[..], Some(at_other.as_path()))
        );
    });
}

#[test]
fn a_send_waits_until_there_is_room() {
    on_each(async || {
        let (one, other) = UnixDatagram::pair().unwrap();
        let mut sent = 0;
        while one.try_send(&[1; 64]).is_ok() {
            sent += 1;
        }
        assert!(sent > 0);
        assert!(once(one.send(b"more")).is_pending());
        let sends = blitz_io::spawn(async move { one.send(b"more").await.unwrap() });
        let mut buf = [0; 64];
        for _ in 0..sent {
            assert_eq!(other.recv(&mut buf).await.unwrap(), 64);
        }
        assert_eq!(other.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(sends.await.unwrap(), 4);
    });
}

#[test]
fn polling_datagrams_sends_and_receives() {
    on_each(async || {
        let (one, other) = UnixDatagram::pair().unwrap();
        assert_eq!(poll_fn(|cx| one.poll_send(cx, b"abc")).await.unwrap(), 3);
        let mut memory = [std::mem::MaybeUninit::uninit(); 8];
        let mut buf = ReadBuf::uninit(&mut memory);
        poll_fn(|cx| other.poll_recv_ready(cx)).await.unwrap();
        let from = poll_fn(|cx| other.poll_recv_from(cx, &mut buf)).await.unwrap();
        assert!(from.is_unnamed());
        assert_eq!(buf.filled(), b"abc");
    });
}

#[test]
fn a_pipe_carries_bytes_and_ends_with_its_sender() {
    on_each(async || {
        let (mut sender, mut receiver) = pipe::pipe().unwrap();
        let writes = blitz_io::spawn(async move {
            sender.write_all(&vec![5; 1 << 20]).await.unwrap();
        });
        let mut read = Vec::new();
        receiver.read_to_end(&mut read).await.unwrap();
        assert!(read.len() == 1 << 20 && read.iter().all(|byte| *byte == 5));
        writes.await.unwrap();
    });
}

#[test]
fn a_pipe_without_a_receiver_is_broken() {
    let _no_child = crate::child::none_starts();
    on_each(async || {
        let (mut sender, receiver) = pipe::pipe().unwrap();
        drop(receiver);
        assert_eq!(sender.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_pipe_with_a_name_is_opened_from_both_ends() {
    on_each(async || {
        let folder = Folder::new();
        let path = folder.join("fifo");
        fifo(&path);
        assert!(OpenOptions::new().open_sender(&path).is_err(), "nobody reads");
        let mut receiver = OpenOptions::new().open_receiver(&path).unwrap();
        let mut sender = OpenOptions::new().open_sender(&path).unwrap();
        sender.write_all(b"abc").await.unwrap();
        let mut buf = [0; 3];
        receiver.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"abc");
    });
}

#[test]
fn files_that_are_not_pipes_or_of_the_wrong_direction_are_refused() {
    on_each(async || {
        let folder = Folder::new();
        let plain = folder.join("plain");
        File::create(&plain).unwrap();
        let refused = |kind| assert_eq!(kind, ErrorKind::InvalidInput);
        refused(OpenOptions::new().open_receiver(&plain).unwrap_err().kind());
        refused(Sender::from_file(File::create(&plain).unwrap()).unwrap_err().kind());
        let (reader, writer) = std::io::pipe().unwrap();
        refused(Sender::from_owned_fd(reader.into()).unwrap_err().kind());
        refused(Receiver::from_owned_fd(writer.into()).unwrap_err().kind());
    });
}

#[test]
fn a_pipe_goes_to_std_in_either_mode() {
    on_each(async || {
        let (sender, receiver) = pipe::pipe().unwrap();
        let mut reader = File::from(receiver.into_nonblocking_fd().unwrap());
        would_block(reader.read(&mut [0; 8]));
        let mut writer = File::from(sender.into_blocking_fd().unwrap());
        writer.write_all(b"abc").unwrap();
        let mut receiver = Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        let mut buf = [0; 3];
        receiver.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"abc");
        // In blocking mode a read waits for the end, and does not return an error.
        let mut reader = File::from(receiver.into_blocking_fd().unwrap());
        drop(writer);
        assert_eq!(reader.read(&mut buf).unwrap(), 0);
    });
}

/// Binds a socket to a path that fills `sun_path`, so that no zero byte ends it.
#[cfg(target_os = "linux")]
fn bind_to_108_bytes(socket: &impl std::os::fd::AsRawFd, folder: &Folder) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let room = 108 - folder.join("").as_os_str().len();
    let path = folder.join(&"p".repeat(room));
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
#[cfg(target_os = "linux")]
fn a_message_of_a_peer_with_a_path_of_108_bytes_is_received() {
    on_each(async || {
        let folder = Folder::new();
        let here = UnixDatagram::bind(folder.join("here")).unwrap();
        let peer = std::os::unix::net::UnixDatagram::unbound().unwrap();
        let path = bind_to_108_bytes(&peer, &folder);
        peer.send_to(b"abc", folder.join("here")).unwrap();
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
#[cfg(target_os = "linux")]
fn a_connection_of_a_peer_with_a_path_of_108_bytes_is_accepted() {
    on_each(async || {
        let folder = Folder::new();
        let listener = UnixListener::bind(folder.join("here")).unwrap();
        let peer = UnixSocket::new_stream().unwrap();
        let path = bind_to_108_bytes(&peer, &folder);
        let mut peer = peer.connect(folder.join("here")).await.unwrap();
        let (mut stream, from) = listener.accept().await.unwrap();
        assert_eq!(from.as_pathname(), Some(path.as_path()));
        assert_eq!(stream.peer_addr().unwrap().as_pathname(), Some(path.as_path()));
        peer.write_all(b"abc").await.unwrap();
        let mut buf = [0; 3];
        stream.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"abc");
    });
}
