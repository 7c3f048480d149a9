//! Unix sockets: streams, datagrams, addresses and credentials.

use crate::probe::{sockets::*, *};
use futures_util::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, FromRawFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::{UnixDatagram, UnixListener, UnixStream};
use tokio::time::timeout;

use std::io::{Read, Write};

use tokio::net::UnixSocket;
/// Returns an abstract name of this process alone.
fn abs(n: &str) -> std::ffi::OsString {
    format!("\0diff-a-{}-{n}", std::process::id()).into()
}

// Streams.
fn unix_connect_errors() {
    current_thread().block_on(async {
        println!("missing {}", outcome(&UnixStream::connect("missing").await));
        let l = UnixListener::bind("sock").unwrap();
        drop(l);
        println!("file stays {}", std::path::Path::new("sock").exists());
        println!("stale {}", outcome(&UnixStream::connect("sock").await));
        println!("bind again {}", outcome(&UnixListener::bind("sock")));
        std::fs::write("file", b"").unwrap();
        println!("regular file {}", outcome(&UnixStream::connect("file").await));
        println!("directory missing {}", outcome(&UnixListener::bind("no/sock")));
        println!("abstract missing {}", outcome(&UnixStream::connect(abs("none")).await));
    });
}

fn unix_path_too_long_or_with_nul() {
    current_thread().block_on(async {
        let long = "x".repeat(200);
        println!("{}", described(&UnixListener::bind(&long).map(|_| ())));
        println!("{}", described(&UnixStream::connect(&long).await.map(|_| ())));
        println!("{}", described(&UnixDatagram::bind(&long).map(|_| ())));
        println!("{}", described(&UnixListener::bind("a\0b").map(|_| ())));
        println!("107 {}", outcome(&UnixListener::bind("y".repeat(107))));
        println!("108 {}", outcome(&UnixListener::bind("y".repeat(108))));
        println!(
            "abstract 107 {}",
            outcome(&UnixListener::bind(format!("\0{}{}", std::process::id(), "z".repeat(99))))
        );
        println!("abstract 108 {}", outcome(&UnixListener::bind(format!("\0{}", "z".repeat(108)))));
    });
}

fn unix_stream_socket_and_datagram_socket_do_not_mix() {
    current_thread().block_on(async {
        let _d = UnixDatagram::bind("dgram").unwrap();
        let _l = UnixListener::bind("stream").unwrap();
        println!("{}", outcome(&UnixStream::connect("dgram").await));
        println!("{}", outcome(&UnixDatagram::unbound().unwrap().connect("stream")));
        println!("{}", shown(&UnixDatagram::unbound().unwrap().send_to(b"x", "stream").await));
    });
}

fn unix_addresses_of_a_path_socket() {
    multi_thread(2).block_on(async {
        let l = UnixListener::bind("sock").unwrap();
        let (c, a) = tokio::join!(UnixStream::connect("sock"), l.accept());
        let (c, (a, from)) = (c.unwrap(), a.unwrap());
        println!(
            "{:?} {:?}",
            l.local_addr().unwrap().as_pathname(),
            l.local_addr().unwrap().is_unnamed()
        );
        println!(
            "{:?} {:?}",
            c.peer_addr().unwrap().as_pathname(),
            c.local_addr().unwrap().is_unnamed()
        );
        println!(
            "{:?} {:?} {}",
            a.local_addr().unwrap().as_pathname(),
            a.peer_addr().unwrap().is_unnamed(),
            from.is_unnamed()
        );
        println!("{:?}", l.local_addr().unwrap().as_abstract_name());
        println!("{:?}", l.local_addr().unwrap());
    });
}

fn unix_abstract_sockets() {
    current_thread().block_on(async {
        let n = abs("s");
        let l = UnixListener::bind(&n).unwrap();
        use std::os::unix::ffi::OsStrExt;
        println!(
            "{} {:?}",
            l.local_addr().unwrap().as_abstract_name() == Some(&n.as_bytes()[1..]),
            l.local_addr().unwrap().as_pathname()
        );
        println!("{}", outcome(&UnixListener::bind(&n)));
        let (c, a) = tokio::join!(UnixStream::connect(&n), l.accept());
        let (mut c, mut a) = (c.unwrap(), a.unwrap().0);
        c.write_all(b"abs").await.unwrap();
        let mut x = [0; 3];
        println!("{} {}", shown(&a.read_exact(&mut x).await), lossy(&x));
        drop(l);
        println!("name is free again {}", outcome(&UnixListener::bind(&n)));
        println!("nothing in the directory {}", std::fs::read_dir(".").unwrap().count());
    });
}

fn unix_bind_addr_and_connect_addr() {
    current_thread().block_on(async {
        use std::os::linux::net::SocketAddrExt;
        let a: tokio::net::unix::SocketAddr =
            std::os::unix::net::SocketAddr::from_pathname("p").unwrap().into();
        let _l = UnixListener::bind_addr(&a).unwrap();
        println!("{}", outcome(&UnixStream::connect_addr(&a).await));
        println!("{}", outcome(&UnixListener::bind_addr(&a)));
        let b: tokio::net::unix::SocketAddr = std::os::unix::net::SocketAddr::from_abstract_name(
            format!("diff-a-x-{}", std::process::id()),
        )
        .unwrap()
        .into();
        println!("{}", outcome(&UnixStream::connect_addr(&b).await));
    });
}

fn unix_pair_starts_writable_and_not_readable() {
    current_thread().block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        println!("{} {}", shown(&a.try_write(b"x")), shown(&b.try_write(b"yy")));
        println!("{}", shown(&a.try_read(&mut [0; 4])));
        println!("{}", flags(a.ready(Interest::WRITABLE).await.unwrap()));
        a.readable().await.unwrap();
        println!("{}", shown(&a.try_read(&mut [0; 4])));
        println!(
            "{} {}",
            a.local_addr().unwrap().is_unnamed(),
            a.peer_addr().unwrap().is_unnamed()
        );
    });
}

fn unix_peer_cred_is_ours() {
    current_thread().block_on(async {
        let (a, _b) = UnixStream::pair().unwrap();
        let c = a.peer_cred().unwrap();
        // SAFETY: the call takes numbers and no memory.
        println!(
            "{} {} {}",
            c.uid() == unsafe { libc::getuid() },
            c.gid() == unsafe { libc::getgid() },
            c.pid() == Some(std::process::id() as i32)
        );
        let l = UnixListener::bind("sock").unwrap();
        let (c, s1) = tokio::join!(UnixStream::connect("sock"), l.accept());
        println!("{}", c.unwrap().peer_cred().unwrap() == s1.unwrap().0.peer_cred().unwrap());
    });
}

fn unix_peer_cred_after_the_peer_is_gone() {
    current_thread().block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        drop(b);
        println!("{}", a.peer_cred().unwrap().pid() == Some(std::process::id() as i32));
    });
}

fn unix_drop_of_peer_reads_eof_and_breaks_writes() {
    multi_thread(2).block_on(async {
        let (mut a, b) = UnixStream::pair().unwrap();
        drop(b);
        println!("{} {}", shown(&a.read(&mut [0; 4]).await), shown(&a.read(&mut [0; 4]).await));
        println!("{} {}", shown(&a.write(b"x").await), outcome(&a.shutdown().await));
        println!("{}", flags(a.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap()));
    });
}

fn unix_drop_of_peer_with_unread_data_resets() {
    current_thread().block_on(async {
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"unread").await.unwrap();
        drop(b);
        println!("{}", shown(&a.read(&mut [0; 4]).await));
        println!("{}", shown(&a.read(&mut [0; 4]).await));
        println!("{}", shown(&a.write(b"x").await));
    });
}

fn unix_shutdown_is_half_close() {
    current_thread().block_on(async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        a.write_all(b"q").await.unwrap();
        println!("{} {}", outcome(&a.shutdown().await), outcome(&a.shutdown().await));
        println!("{}", shown(&a.write(b"x").await));
        println!("{} {}", shown(&b.read(&mut [0; 4]).await), shown(&b.read(&mut [0; 4]).await));
        b.write_all(b"ans").await.unwrap();
        println!("{}", shown(&a.read(&mut [0; 4]).await));
    });
}

fn unix_shutdown_of_unconnected_stream_is_ok() {
    // ENOTCONN is success (tokio-rs/tokio#8526)
    current_thread().block_on(async {
        // SAFETY: the descriptor is open and has no other owner.
        let st = unsafe {
            std::os::unix::net::UnixStream::from_raw_fd(libc::socket(
                libc::AF_UNIX,
                libc::SOCK_STREAM | libc::SOCK_NONBLOCK,
                0,
            ))
        };
        let mut u = UnixStream::from_std(st).unwrap();
        println!("{}", outcome(&u.shutdown().await));
        println!("{}", outcome(&u.peer_addr()));
    });
}

fn unix_listener_drop_resets_unaccepted() {
    current_thread().block_on(async {
        let l = UnixListener::bind("sock").unwrap();
        let mut c = UnixStream::connect("sock").await.unwrap();
        c.write_all(b"early").await.unwrap();
        drop(l);
        println!("{}", shown(&c.read(&mut [0; 4]).await));
        println!("{}", shown(&c.write(b"x").await));
    });
}

fn unix_full_backlog_is_wouldblock() {
    current_thread().block_on(async {
        let k = UnixSocket::new_stream().unwrap();
        k.bind("sock").unwrap();
        let l = k.listen(0).unwrap();
        let a = UnixStream::connect("sock").await;
        println!("{}", outcome(&a));
        println!("{}", outcome(&UnixStream::connect("sock").await));
        println!("{}", outcome(&UnixSocket::new_stream().unwrap().connect("sock").await));
        l.accept().await.unwrap();
        println!("{}", outcome(&UnixStream::connect("sock").await));
    });
}

fn unix_accept_cancelled_and_poll_accept() {
    current_thread().block_on(async {
        let l = UnixListener::bind("sock").unwrap();
        for _ in 0..3 {
            let mut f = pin!(l.accept());
            println!("{}", polled_outcome(once(f.as_mut()).await));
        }
        let _c = UnixStream::connect("sock").await.unwrap();
        println!("{}", outcome(&poll_fn(|cx| l.poll_accept(cx)).await));
        println!("{}", stuck(l.accept()).await);
        println!("{:?}", l.take_error().unwrap().is_none());
    });
}

fn unix_owned_halves() {
    current_thread().block_on(async {
        let (a, mut b) = UnixStream::pair().unwrap();
        let (c, _d) = UnixStream::pair().unwrap();
        let (ra, wa) = a.into_split();
        let (_rc, wc) = c.into_split();
        let x = ra.reunite(wc).unwrap_err();
        println!("{}", quoted(&x));
        let mut ra = x.0;
        println!("{}", stuck(b.read(&mut [0; 1])).await);
        drop(wa);
        println!("{}", shown(&b.read(&mut [0; 1]).await));
        b.write_all(b"abc").await.unwrap();
        println!("{}", shown(&ra.read(&mut [0; 8]).await));
    });
}

fn unix_owned_write_half_forget() {
    current_thread().block_on(async {
        let (a, mut b) = UnixStream::pair().unwrap();
        let (rd, wr) = a.into_split();
        wr.forget();
        println!("{}", stuck(b.read(&mut [0; 1])).await);
        drop(rd);
        println!("{}", shown(&b.read(&mut [0; 1]).await));
    });
}

fn unix_from_std_blocking_panics_in_debug() {
    let rt = current_thread();
    let _g = rt.enter();
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    println!(
        "{}",
        panics(|| UnixStream::from_std(a))
            .contains("Registering a blocking socket with the tokio runtime is unsupported")
    );
    b.set_nonblocking(true).unwrap();
    println!("{}", outcome(&UnixStream::from_std(b)));
    let l = std::os::unix::net::UnixListener::bind("l").unwrap();
    println!(
        "{}",
        panics(|| UnixListener::from_std(l))
            .contains("Registering a blocking socket with the tokio runtime is unsupported")
    );
    let d = std::os::unix::net::UnixDatagram::unbound().unwrap();
    println!(
        "{}",
        panics(|| UnixDatagram::from_std(d))
            .contains("Registering a blocking socket with the tokio runtime is unsupported")
    );
}

fn unix_into_std_keeps_bytes() {
    current_thread().block_on(async {
        let (a, mut b) = UnixStream::pair().unwrap();
        b.write_all(b"kept").await.unwrap();
        let mut st = a.into_std().unwrap();
        let mut x = [0; 8];
        println!("{} {}", is_nonblocking(st.as_raw_fd()), shown(&st.read(&mut x)));
        println!("{}", shown(&st.read(&mut x)));
    });
}

fn unix_vectored_and_zero_length() {
    current_thread().block_on(async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        println!(
            "{} {}",
            a.is_write_vectored(),
            shown(&a.write_vectored(&[IoSlice::new(b"a"), IoSlice::new(b"bc")]).await)
        );
        println!("{}", shown(&a.write(&[]).await));
        println!("{}", shown(&b.read(&mut []).await));
        println!("{}", shown(&b.read(&mut [0; 9]).await));
        println!("stuck {}", stuck(b.read(&mut [0; 9])).await);
    });
}

fn unix_stream_fills_and_drains() {
    current_thread().block_on(async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let mut sent = 0;
        while let Ok(n) = timeout(millis(30), a.write(&[1; 5000])).await {
            sent += n.unwrap();
        }
        println!("{}", shown(&a.try_write(b"x")));
        drop(a);
        let mut v = vec![];
        b.read_to_end(&mut v).await.unwrap();
        println!("{}", v.len() == sent);
    });
}

fn unix_socket_kinds_are_checked() {
    current_thread().block_on(async {
        println!("{}", described(&UnixSocket::new_datagram().unwrap().listen(1).map(|_| ())));
        println!(
            "{}",
            described(&UnixSocket::new_datagram().unwrap().connect("x").await.map(|_| ()))
        );
        println!("{}", described(&UnixSocket::new_stream().unwrap().datagram().map(|_| ())));
        println!("{}", outcome(&UnixSocket::new_datagram().unwrap().datagram()));
        println!("{}", outcome(&UnixSocket::new_stream().unwrap().listen(1)));
        println!("{}", outcome(&UnixSocket::new_stream().unwrap().connect("missing").await));
        let k = UnixSocket::new_stream().unwrap();
        println!("{} {}", outcome(&k.bind("a")), outcome(&k.bind("b")));
    });
}

fn unix_fd_passing_with_async_io() {
    current_thread().block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let (p1, mut p2) = std::os::unix::net::UnixStream::pair().unwrap();
        let fd = p1.as_raw_fd();
        // SAFETY: all pointers of the `msghdr` are to locals that outlive the call, and the control
        // buffer has room for the one header and descriptor that are written into it.
        let sent = a
            .async_io(Interest::WRITABLE, || unsafe {
                let mut byte = [b'F'];
                let mut iov = libc::iovec { iov_base: byte.as_mut_ptr() as *mut _, iov_len: 1 };
                let mut cb = [0u8; 64];
                let mut m: libc::msghdr = std::mem::zeroed();
                m.msg_iov = &mut iov;
                m.msg_iovlen = 1;
                m.msg_control = cb.as_mut_ptr() as *mut _;
                m.msg_controllen = libc::CMSG_SPACE(4) as _;
                let c = libc::CMSG_FIRSTHDR(&m);
                (*c).cmsg_level = libc::SOL_SOCKET;
                (*c).cmsg_type = libc::SCM_RIGHTS;
                (*c).cmsg_len = libc::CMSG_LEN(4) as _;
                *(libc::CMSG_DATA(c) as *mut i32) = fd;
                let n = libc::sendmsg(a.as_raw_fd(), &m, 0);
                if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n) }
            })
            .await;
        println!("{}", shown(&sent));
        // SAFETY: all pointers of the `msghdr` are to locals that outlive the call, with their true
        // lengths; the peer sent one control message, so its header and descriptor are in the
        // buffer.
        let got = b
            .async_io(Interest::READABLE, || unsafe {
                let mut byte = [0u8];
                let mut iov = libc::iovec { iov_base: byte.as_mut_ptr() as *mut _, iov_len: 1 };
                let mut cb = [0u8; 64];
                let mut m: libc::msghdr = std::mem::zeroed();
                m.msg_iov = &mut iov;
                m.msg_iovlen = 1;
                m.msg_control = cb.as_mut_ptr() as *mut _;
                m.msg_controllen = 64 as _;
                let n = libc::recvmsg(b.as_raw_fd(), &mut m, 0);
                if n < 0 {
                    return Err(io::Error::last_os_error());
                }
                let c = libc::CMSG_FIRSTHDR(&m);
                Ok(*(libc::CMSG_DATA(c) as *const i32))
            })
            .await
            .unwrap();
        // SAFETY: the descriptor is open and has no other owner.
        let mut f = unsafe { std::os::unix::net::UnixStream::from_raw_fd(got) };
        f.write_all(b"passed").unwrap();
        let mut x = [0; 6];
        p2.read_exact(&mut x).unwrap();
        println!("{}", lossy(&x));
    });
}

fn unix_two_tasks_share_a_listener() {
    multi_thread(4).block_on(async {
        let l = Arc::new(UnixListener::bind("sock").unwrap());
        let ts: Vec<_> = (0..4)
            .map(|_| {
                let l = l.clone();
                tokio::spawn(async move {
                    let mut n = 0;
                    while let Ok((mut st, _)) = l.accept().await {
                        let mut x = [0; 1];
                        st.read_exact(&mut x).await.unwrap();
                        n += 1;
                        if x[0] == b'q' {
                            break;
                        }
                    }
                    n
                })
            })
            .collect();
        for _ in 0..20 {
            let mut c = UnixStream::connect("sock").await.unwrap();
            c.write_all(b"x").await.unwrap();
            let mut y = [0; 1];
            println_eof(c.read(&mut y).await);
        }
        for _ in 0..4 {
            let mut c = UnixStream::connect("sock").await.unwrap();
            c.write_all(b"q").await.unwrap();
            c.read(&mut [0; 1]).await.unwrap();
        }
        let mut n = 0;
        for t in ts {
            n += t.await.unwrap();
        }
        println!("{n}");
    });
}

fn println_eof(x: io::Result<usize>) {
    if x.as_ref().ok() != Some(&0) {
        println!("{}", shown(&x));
    }
}

// Datagrams.
fn unix_datagram_truncates_and_drops_the_rest() {
    current_thread().block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        a.send(b"0123456789").await.unwrap();
        a.send(b"next").await.unwrap();
        let mut x = [0; 4];
        println!("{} {}", shown(&b.recv(&mut x).await), lossy(&x));
        println!("{} {}", shown(&b.recv(&mut x).await), lossy(&x));
    });
}

fn unix_datagram_zero_length() {
    current_thread().block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        println!("{}", shown(&a.send(&[]).await));
        a.send(b"xx").await.unwrap();
        println!("{} {}", shown(&b.recv(&mut [0; 4]).await), shown(&b.recv(&mut []).await));
        println!("taken {}", stuck(b.recv(&mut [0; 4])).await);
    });
}

fn unix_datagram_pair_starts_writable() {
    current_thread().block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        println!("{} {}", shown(&a.try_send(b"abc")), shown(&b.try_recv(&mut [0; 8])));
        println!("{}", shown(&b.recv(&mut [0; 8]).await));
        println!(
            "{} {}",
            a.local_addr().unwrap().is_unnamed(),
            a.peer_addr().unwrap().is_unnamed()
        );
    });
}

fn unix_datagram_addresses() {
    multi_thread(1).block_on(async {
        let a = UnixDatagram::bind("a").unwrap();
        let b = UnixDatagram::bind("b").unwrap();
        let u = UnixDatagram::unbound().unwrap();
        println!("{}", shown(&a.send_to(b"1", "b").await));
        println!("{}", shown(&u.send_to(b"22", "b").await));
        let mut x = [0; 8];
        let (n, from) = b.recv_from(&mut x).await.unwrap();
        println!("{n} {:?} {}", from.as_pathname(), from.is_unnamed());
        let (n, from) = b.recv_from(&mut x).await.unwrap();
        println!("{n} {:?} {}", from.as_pathname(), from.is_unnamed());
        println!("{} {}", outcome(&u.peer_addr()), outcome(&a.peer_addr()));
        println!("{:?}", a.local_addr().unwrap());
    });
}

fn unix_datagram_errors() {
    current_thread().block_on(async {
        let u = UnixDatagram::unbound().unwrap();
        println!("no peer {}", shown(&u.send(b"x").await));
        println!("missing {}", shown(&u.send_to(b"x", "missing").await));
        println!("connect missing {}", outcome(&u.connect("missing")));
        let b = UnixDatagram::bind("b").unwrap();
        println!("bind twice {}", outcome(&UnixDatagram::bind("b")));
        u.connect("b").unwrap();
        drop(b);
        println!("peer gone {}", shown(&u.send(b"x").await));
        println!(
            "stale path {}",
            shown(&UnixDatagram::unbound().unwrap().send_to(b"x", "b").await)
        );
        let (p1, p2) = UnixDatagram::pair().unwrap();
        drop(p2);
        println!("pair gone {}", shown(&p1.send(b"x").await));
        println!("recv after pair gone is stuck {}", stuck(p1.recv(&mut [0; 4])).await);
    });
}

fn unix_datagram_oversize() {
    current_thread().block_on(async {
        let (a, _b) = UnixDatagram::pair().unwrap();
        socket2::SockRef::from(&a).set_send_buffer_size(8192).unwrap();
        println!("{}", shown(&a.send(&vec![0; 100_000]).await));
        println!("{}", shown(&a.send(&vec![0; 4_000]).await));
    });
}

fn unix_datagram_full_pair_waits_until_drained() {
    current_thread().block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let mut n = 0;
        while timeout(millis(30), a.send(b"x")).await.is_ok() {
            n += 1;
            if n > 5000 {
                break;
            }
        }
        println!("{} {}", n > 0 && n < 5000, shown(&a.try_send(b"x")));
        let mut k = 0;
        while timeout(millis(30), b.recv(&mut [0; 4])).await.is_ok() {
            k += 1;
        }
        println!("{}", k == n);
        println!("{}", shown(&a.send(b"x").await));
    });
}

fn unix_datagram_full_queue_of_a_bound_socket_waits_for_one_recv() {
    multi_thread(2).block_on(async {
        let b = UnixDatagram::bind("b").unwrap();
        let a = UnixDatagram::unbound().unwrap();
        a.connect("b").unwrap();
        let mut n = 0;
        while timeout(millis(30), a.send(b"x")).await.is_ok() {
            n += 1;
            if n > 5000 {
                break;
            }
        }
        println!("{} {}", n > 0 && n < 5000, shown(&a.try_send(b"x")));
        println!("{}", shown(&b.recv(&mut [0; 4]).await));
        println!("{}", shown(&a.send(b"x").await));
    });
}

fn unix_datagram_shutdown() {
    current_thread().block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        println!("{}", outcome(&a.shutdown(std::net::Shutdown::Write)));
        println!("{}", shown(&a.send(b"x").await));
        println!("{}", outcome(&b.shutdown(std::net::Shutdown::Read)));
        println!("{}", flags(b.ready(Interest::READABLE).await.unwrap()));
        println!("{}", shown(&b.try_recv(&mut [0; 4])));
        println!(
            "{}",
            outcome(&UnixDatagram::unbound().unwrap().shutdown(std::net::Shutdown::Both))
        );
    });
}

fn unix_datagram_recv_buf_and_poll_recv() {
    current_thread().block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        for _ in 0..4 {
            a.send(&[1; 100]).await.unwrap();
        }
        let mut v = Vec::new();
        println!("{} {}", shown(&b.recv_buf(&mut v).await), v.len());
        println!("{} {}", shown(&b.recv_buf_from(&mut v).await.map(|x| x.0)), v.len());
        let mut m = [0; 150];
        let mut rb = ReadBuf::new(&mut m);
        println!(
            "{} {}",
            outcome(&poll_fn(|cx| b.poll_recv(cx, &mut rb)).await),
            rb.filled().len()
        );
        println!(
            "{} {}",
            outcome(&poll_fn(|cx| b.poll_recv_from(cx, &mut rb)).await),
            rb.filled().len()
        );
        println!(
            "{}",
            polled_outcome(b.poll_recv(&mut Context::from_waker(Waker::noop()), &mut rb))
        );
    });
}

fn unix_datagram_cancelled_recv_loses_none() {
    current_thread().block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        for i in 0..20u8 {
            {
                let mut x = [0; 4];
                let mut f = pin!(b.recv(&mut x));
                if once(f.as_mut()).await.is_ready() {
                    println!("early");
                }
            }
            a.send(&[i]).await.unwrap();
            let mut x = [0; 4];
            b.recv(&mut x).await.unwrap();
            if x[0] != i {
                println!("lost");
            }
        }
        println!("done");
    });
}

fn unix_datagram_to_itself() {
    current_thread().block_on(async {
        let a = UnixDatagram::bind("me").unwrap();
        a.connect("me").unwrap();
        println!("{}", shown(&a.send(b"self").await));
        println!("{}", shown(&a.recv(&mut [0; 8]).await));
        println!("{:?}", a.peer_addr().unwrap().as_pathname());
    });
}

/// Binds a new datagram socket to a path that fills `sun_path`, so that no zero byte ends it.
fn bound_to_108_bytes(path: &[u8; 108]) -> std::os::unix::net::UnixDatagram {
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    // SAFETY: a `sockaddr_un` of zeros is valid.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    let length = std::mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is a local that outlives the call, and `length` is not more than its
    // size.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(bound, 0, "{}", io::Error::last_os_error());
    socket
}

fn unix_datagram_from_a_path_of_108_bytes() {
    let path = [b'p'; 108];
    let from_path = |a: &tokio::net::unix::SocketAddr| {
        use std::os::unix::ffi::OsStrExt;
        let same = a.as_pathname().map(|p| p.as_os_str().as_bytes() == path);
        format!("{same:?} {} {:?} {a:?}", a.is_unnamed(), a.as_abstract_name())
    };
    current_thread().block_on(async {
        let here = UnixDatagram::bind("here").unwrap();
        let peer = bound_to_108_bytes(&path);
        for i in 0..4 {
            peer.send_to(&[i], "here").unwrap();
        }
        let mut x = [9; 4];
        let (n, a) = here.recv_from(&mut x).await.unwrap();
        println!("{n} {} {}", x[0], from_path(&a));
        println!("back {}", outcome(&here.send_to(b"x", a.as_pathname().unwrap()).await));
        let (n, a) = here.try_recv_from(&mut x).unwrap();
        println!("{n} {} {}", x[0], from_path(&a));
        let mut v = vec![];
        let (n, a) = here.recv_buf_from(&mut v).await.unwrap();
        println!("{n} {v:?} {}", from_path(&a));
        let mut b = ReadBuf::new(&mut x);
        let a = poll_fn(|cx| here.poll_recv_from(cx, &mut b)).await.unwrap();
        println!("{:?} {}", b.filled(), from_path(&a));
        println!("nothing left {:?}", here.try_recv(&mut [0; 4]).map_err(|e| e.kind()));
    });
}

/// Checks a backlog of more than 1024, and less than `net.core.somaxconn` of a usual system.
fn unix_listener_lets_3000_connections_wait() {
    current_thread().block_on(async {
        let _l = UnixListener::bind("sock").unwrap();
        let a = std::os::unix::net::SocketAddr::from_pathname("by_addr").unwrap().into();
        let _m = UnixListener::bind_addr(&a).unwrap();
        for path in ["sock", "by_addr"] {
            let mut count = 0;
            let end = loop {
                // A connection stays queued though its other end is closed.
                match UnixStream::connect(path).await {
                    Ok(_) => count += 1,
                    Err(e) => break outcome(&Err::<(), _>(e)),
                }
                if count == 3000 {
                    break "enough".to_string();
                }
            };
            println!("{path} {count} {end}");
        }
    });
}

fn unix_addresses_with_zero_bytes() {
    let named = abs("zeros").into_string().unwrap();
    let long = format!("\0{}", "n".repeat(108));
    let paths = ["\0", &named, "a\0b", "a\0", "", &long, "dir/\0"];
    current_thread().block_on(async {
        for path in paths {
            let shape =
                path.escape_debug().to_string().replace(&*std::process::id().to_string(), "P");
            println!("{shape}");
            println!(" datagram bind {}", described(&UnixDatagram::bind(path).map(|_| ())));
            let d = UnixDatagram::unbound().unwrap();
            println!(" datagram connect {}", described(&d.connect(path)));
            println!(" send_to {}", described(&d.send_to(b"x", path).await));
            println!(" try_send_to {}", described(&d.try_send_to(b"x", path)));
            let sent = poll_fn(|cx| d.poll_send_to(cx, b"x", path)).await;
            println!(" poll_send_to {}", described(&sent));
            println!(" connect {}", described(&UnixStream::connect(path).await.map(|_| ())));
            let s = UnixSocket::new_stream().unwrap();
            println!(" socket connect {}", described(&s.connect(path).await.map(|_| ())));
            println!(" listener {}", described(&UnixListener::bind(path).map(|_| ())));
            // The path ends at its zero byte.
            let _ = std::fs::remove_file("a");
            let s = UnixSocket::new_stream().unwrap();
            println!(" socket bind {}", described(&s.bind(path)));
            let _ = std::fs::remove_file("a");
            let d = UnixSocket::new_datagram().unwrap();
            println!(" datagram socket bind {}", described(&d.bind(path)));
            let _ = std::fs::remove_file("a");
        }
    });
}

fn unix_a_name_of_a_zero_byte_alone_is_chosen_by_the_system() {
    use std::os::linux::net::SocketAddrExt;
    current_thread().block_on(async {
        let empty: tokio::net::unix::SocketAddr =
            std::os::unix::net::SocketAddr::from_abstract_name("").unwrap().into();
        for l in [UnixListener::bind("\0").unwrap(), UnixListener::bind_addr(&empty).unwrap()] {
            let a = l.local_addr().unwrap();
            // Five hexadecimal digits.
            println!("{:?} {:?}", a.as_abstract_name().map(|n| n.len()), a.as_pathname());
            println!("{}", outcome(&UnixStream::connect_addr(&a).await));
        }
        println!("{}", outcome(&UnixStream::connect_addr(&empty).await));
        let s = UnixSocket::new_stream().unwrap();
        println!("{}", outcome(&s.bind("a\0b")));
        let l = s.listen(1).unwrap();
        println!("{:?} {}", l.local_addr().unwrap(), std::path::Path::new("a").exists());
    });
}

fn unix_accept_from_a_path_and_a_name() {
    current_thread().block_on(async {
        let l = UnixListener::bind("sock").unwrap();
        let name = abs("peer");
        for peer in ["path".as_ref(), name.as_os_str()] {
            let s = UnixSocket::new_stream().unwrap();
            s.bind(peer).unwrap();
            let _c = s.connect("sock").await.unwrap();
            let (s, from) = l.accept().await.unwrap();
            println!("accept {:?} {}", from.as_pathname(), from.is_unnamed());
            println!("peer_addr {}", s.peer_addr().unwrap().is_unnamed());
        }
    });
}

fn unix_vectored_writes_of_nothing() {
    current_thread().block_on(async {
        let nothing = [IoSlice::new(&[]), IoSlice::new(&[])];
        let (mut a, mut b) = UnixStream::pair().unwrap();
        println!(
            "{} {}",
            shown(&a.write_vectored(&nothing).await),
            shown(&a.try_write_vectored(&[]))
        );
        a.shutdown().await.unwrap();
        println!("shut down {}", shown(&a.write_vectored(&nothing).await));
        println!("shut down {}", shown(&a.try_write_vectored(&nothing)));
        println!("shut down {}", shown(&a.write_vectored(&[IoSlice::new(b"x")]).await));
        println!("shut down {}", shown(&a.write(&[]).await));
        drop(a);
        println!("peer is gone {}", shown(&b.write_vectored(&nothing).await));
        println!("peer is gone {}", shown(&b.write(&[]).await));
    });
}

/// A stream whose socket preserves message boundaries: an empty write would arrive.
fn unix_vectored_writes_of_nothing_are_no_packets() {
    use socket2::{Domain, Socket, Type};
    current_thread().block_on(async {
        let (a, mut b) = Socket::pair(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        a.set_nonblocking(true).unwrap();
        b.set_nonblocking(true).unwrap();
        let mut a = UnixStream::from_std(std::os::fd::OwnedFd::from(a).into()).unwrap();
        println!("{}", shown(&a.write_vectored(&[IoSlice::new(&[])]).await));
        println!("{}", shown(&a.write_vectored(&[]).await));
        println!("{}", shown(&a.write_vectored(&[IoSlice::new(&[]), IoSlice::new(b"ab")]).await));
        println!("{}", shown(&a.write(&[]).await));
        println!("{}", shown(&a.write(b"c").await));
        for _ in 0..4 {
            println!("{}", shown(&b.read(&mut [0; 9])));
        }
    });
}

fn unix_a_name_that_begins_with_two_zero_bytes() {
    let name = format!("\0{}-end", abs("two").into_string().unwrap());
    current_thread().block_on(async {
        let l = UnixListener::bind(&name).unwrap();
        let bound = l.local_addr().unwrap();
        println!("{}", bound.as_abstract_name().unwrap().ends_with(b"-end"));
        println!("{}", outcome(&UnixStream::connect(&name).await));
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("unix_connect_errors", unix_connect_errors),
    ("unix_path_too_long_or_with_nul", unix_path_too_long_or_with_nul),
    (
        "unix_stream_socket_and_datagram_socket_do_not_mix",
        unix_stream_socket_and_datagram_socket_do_not_mix,
    ),
    ("unix_addresses_of_a_path_socket", unix_addresses_of_a_path_socket),
    ("unix_abstract_sockets", unix_abstract_sockets),
    ("unix_bind_addr_and_connect_addr", unix_bind_addr_and_connect_addr),
    ("unix_pair_starts_writable_and_not_readable", unix_pair_starts_writable_and_not_readable),
    ("unix_peer_cred_is_ours", unix_peer_cred_is_ours),
    ("unix_peer_cred_after_the_peer_is_gone", unix_peer_cred_after_the_peer_is_gone),
    (
        "unix_drop_of_peer_reads_eof_and_breaks_writes",
        unix_drop_of_peer_reads_eof_and_breaks_writes,
    ),
    ("unix_drop_of_peer_with_unread_data_resets", unix_drop_of_peer_with_unread_data_resets),
    ("unix_shutdown_is_half_close", unix_shutdown_is_half_close),
    ("unix_shutdown_of_unconnected_stream_is_ok", unix_shutdown_of_unconnected_stream_is_ok),
    ("unix_listener_drop_resets_unaccepted", unix_listener_drop_resets_unaccepted),
    ("unix_full_backlog_is_wouldblock", unix_full_backlog_is_wouldblock),
    ("unix_accept_cancelled_and_poll_accept", unix_accept_cancelled_and_poll_accept),
    ("unix_owned_halves", unix_owned_halves),
    ("unix_owned_write_half_forget", unix_owned_write_half_forget),
    ("unix_from_std_blocking_panics_in_debug", unix_from_std_blocking_panics_in_debug),
    ("unix_into_std_keeps_bytes", unix_into_std_keeps_bytes),
    ("unix_vectored_and_zero_length", unix_vectored_and_zero_length),
    ("unix_stream_fills_and_drains", unix_stream_fills_and_drains),
    ("unix_socket_kinds_are_checked", unix_socket_kinds_are_checked),
    ("unix_fd_passing_with_async_io", unix_fd_passing_with_async_io),
    ("unix_two_tasks_share_a_listener", unix_two_tasks_share_a_listener),
    ("unix_datagram_truncates_and_drops_the_rest", unix_datagram_truncates_and_drops_the_rest),
    ("unix_datagram_zero_length", unix_datagram_zero_length),
    ("unix_datagram_pair_starts_writable", unix_datagram_pair_starts_writable),
    ("unix_datagram_addresses", unix_datagram_addresses),
    ("unix_datagram_errors", unix_datagram_errors),
    ("unix_datagram_oversize", unix_datagram_oversize),
    ("unix_datagram_full_pair_waits_until_drained", unix_datagram_full_pair_waits_until_drained),
    (
        "unix_datagram_full_queue_of_a_bound_socket_waits_for_one_recv",
        unix_datagram_full_queue_of_a_bound_socket_waits_for_one_recv,
    ),
    ("unix_datagram_shutdown", unix_datagram_shutdown),
    ("unix_datagram_recv_buf_and_poll_recv", unix_datagram_recv_buf_and_poll_recv),
    ("unix_datagram_cancelled_recv_loses_none", unix_datagram_cancelled_recv_loses_none),
    ("unix_datagram_to_itself", unix_datagram_to_itself),
    ("unix_datagram_from_a_path_of_108_bytes", unix_datagram_from_a_path_of_108_bytes),
    ("unix_listener_lets_3000_connections_wait", unix_listener_lets_3000_connections_wait),
    ("unix_addresses_with_zero_bytes", unix_addresses_with_zero_bytes),
    (
        "unix_a_name_of_a_zero_byte_alone_is_chosen_by_the_system",
        unix_a_name_of_a_zero_byte_alone_is_chosen_by_the_system,
    ),
    ("unix_accept_from_a_path_and_a_name", unix_accept_from_a_path_and_a_name),
    ("unix_vectored_writes_of_nothing", unix_vectored_writes_of_nothing),
    (
        "unix_vectored_writes_of_nothing_are_no_packets",
        unix_vectored_writes_of_nothing_are_no_packets,
    ),
    ("unix_a_name_that_begins_with_two_zero_bytes", unix_a_name_that_begins_with_two_zero_bytes),
];
