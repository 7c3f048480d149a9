//! TCP: listeners, streams, readiness and halves.

use crate::probe::{sockets::*, *};
use bytes::{BufMut, BytesMut};
use futures_util::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use std::io::{Read, Write};

// Binding and connecting.
fn tcp_connect_to_closed_port_is_refused() {
    current_thread().block_on(async {
        println!("{}", outcome(&TcpStream::connect(closed_addr()).await));
        println!("{}", outcome(&TcpSocket::new_v4().unwrap().connect(closed_addr()).await));
    });
    multi_thread(2).block_on(async {
        println!("{}", outcome(&TcpStream::connect(closed_addr()).await));
    });
}

fn tcp_connect_to_port_zero_is_refused() {
    multi_thread(1).block_on(async {
        println!("{}", outcome(&TcpStream::connect("127.0.0.1:0").await));
    });
}

fn tcp_connect_to_broadcast_is_unreachable() {
    current_thread().block_on(async {
        println!("{}", outcome(&TcpStream::connect("255.255.255.255:9").await));
    });
}

fn tcp_bind_twice_is_addr_in_use() {
    multi_thread(2).block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", outcome(&TcpListener::bind(l.local_addr().unwrap()).await));
        let a = l.local_addr().unwrap();
        drop(l);
        println!("after drop {}", outcome(&TcpListener::bind(a).await));
    });
}

fn tcp_bind_foreign_address_is_not_available() {
    current_thread().block_on(async {
        println!("{}", outcome(&TcpListener::bind("192.0.2.1:0").await));
    });
}

fn tcp_bind_bad_strings() {
    current_thread().block_on(async {
        for a in ["", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1"] {
            println!("{a:?} {}", described(&TcpListener::bind(a).await.map(|_| ())));
        }
    });
}

fn tcp_bind_no_address_at_all() {
    current_thread().block_on(async {
        let none: &[SocketAddr] = &[];
        println!("{}", described(&TcpListener::bind(none).await.map(|_| ())));
        println!("{}", described(&TcpStream::connect(none).await.map(|_| ())));
    });
}

fn tcp_bind_takes_the_first_address_that_works() {
    current_thread().block_on(async {
        let v: Vec<SocketAddr> =
            vec!["192.0.2.1:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
        let l = TcpListener::bind(&v[..]).await.unwrap();
        println!("{} {}", l.local_addr().unwrap().ip(), l.local_addr().unwrap().port() != 0);
    });
}

fn tcp_bind_returns_the_last_error() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let v = [l.local_addr().unwrap(), "192.0.2.1:0".parse().unwrap()];
        println!("{}", outcome(&TcpListener::bind(&v[..]).await));
        let v = [v[1], v[0]];
        println!("{}", outcome(&TcpListener::bind(&v[..]).await));
    });
}

fn tcp_connect_tries_addresses_in_order() {
    multi_thread(2).block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let a = l.local_addr().unwrap();
        let c = TcpStream::connect(&[closed_addr(), a][..]).await.unwrap();
        println!("{}", c.peer_addr().unwrap() == a);
        println!(
            "{}",
            outcome(
                &TcpStream::connect(&["255.255.255.255:1".parse().unwrap(), closed_addr()][..])
                    .await
            )
        );
        println!(
            "{}",
            outcome(
                &TcpStream::connect(&[closed_addr(), "255.255.255.255:1".parse().unwrap()][..])
                    .await
            )
        );
    });
}

fn tcp_connect_addresses_agree() {
    multi_thread(4).block_on(async {
        let (a, b) = tcp_pair().await;
        println!(
            "{} {}",
            a.local_addr().unwrap() == b.peer_addr().unwrap(),
            b.local_addr().unwrap() == a.peer_addr().unwrap()
        );
        println!("{} {}", is_nonblocking(a.as_raw_fd()), is_nonblocking(b.as_raw_fd()));
        println!("{} {}", is_cloexec(a.as_raw_fd()), is_cloexec(b.as_raw_fd()));
        println!("{:?} {:?}", a.take_error().unwrap().is_none(), b.take_error().unwrap().is_none());
    });
}

fn tcp_listener_has_reuseaddr_nonblocking_cloexec() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fd = l.as_raw_fd();
        println!(
            "reuseaddr {} reuseport {}",
            sockopt(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR),
            sockopt(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT)
        );
        println!("nonblocking {} cloexec {}", is_nonblocking(fd), is_cloexec(fd));
    });
}

fn tcp_connect_with_full_backlog_waits() {
    current_thread().block_on(async {
        let sk = TcpSocket::new_v4().unwrap();
        sk.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let l = sk.listen(0).unwrap();
        let a = l.local_addr().unwrap();
        let c1 = TcpStream::connect(a).await;
        println!("first {}", outcome(&c1));
        println!(
            "second {:?}",
            timeout(millis(150), TcpStream::connect(a))
                .await
                .map(|_| ())
                .map_err(|x| x.to_string())
        );
        let (_s1, from) = l.accept().await.unwrap();
        println!("accepted the first {}", from == c1.unwrap().local_addr().unwrap());
        println!("third {}", outcome(&TcpStream::connect(a).await));
    });
}

fn tcp_connect_cancelled_is_accepted_with_eof() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let a = l.local_addr().unwrap();
        {
            let mut f = pin!(TcpStream::connect(a));
            println!("first poll {}", polled_outcome(once(f.as_mut()).await));
        }
        let (mut s, _) = l.accept().await.unwrap();
        println!("read {}", shown(&s.read(&mut [0; 8]).await));
    });
}

fn tcp_ipv4_socket_to_ipv6_address() {
    current_thread().block_on(async {
        println!(
            "{}",
            outcome(&TcpSocket::new_v4().unwrap().connect("[::1]:9".parse().unwrap()).await)
        );
        println!("{}", outcome(&TcpSocket::new_v4().unwrap().bind("[::1]:0".parse().unwrap())));
    });
}

// Tcpsocket.
fn tcp_socket_unbound_local_addr() {
    println!("{}", shown(&TcpSocket::new_v4().unwrap().local_addr()));
}

fn tcp_socket_needs_no_runtime_until_listen() {
    let k = TcpSocket::new_v4().unwrap();
    println!("{}", outcome(&k.bind("127.0.0.1:0".parse().unwrap())));
    println!("{}", panics(|| k.listen(1)));
}

fn tcp_socket_bind_twice_is_invalid() {
    let k = TcpSocket::new_v4().unwrap();
    println!("{}", outcome(&k.bind("127.0.0.1:0".parse().unwrap())));
    println!("{}", outcome(&k.bind("127.0.0.1:0".parse().unwrap())));
}

fn tcp_socket_listen_without_bind() {
    current_thread().block_on(async {
        let l = TcpSocket::new_v4().unwrap().listen(1).unwrap();
        let a = l.local_addr().unwrap();
        println!("{} {}", a.ip(), a.port() != 0);
    });
}

fn tcp_socket_listen_with_huge_backlog() {
    current_thread().block_on(async {
        let k = TcpSocket::new_v4().unwrap();
        k.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let l = k.listen(u32::MAX).unwrap();
        println!("{}", outcome(&TcpStream::connect(l.local_addr().unwrap()).await));
    });
}

fn tcp_socket_defaults() {
    let k = TcpSocket::new_v4().unwrap();
    println!(
        "keepalive {} reuseaddr {} reuseport {} nodelay {}",
        shown(&k.keepalive()),
        shown(&k.reuseaddr()),
        shown(&k.reuseport()),
        shown(&k.nodelay())
    );
    println!(
        "linger {} tos {} device {} error {:?}",
        shown(&k.linger()),
        shown(&k.tos_v4()),
        shown(&k.device()),
        k.take_error().unwrap().is_none()
    );
    println!("nonblocking {} cloexec {}", is_nonblocking(k.as_raw_fd()), is_cloexec(k.as_raw_fd()));
}

fn tcp_socket_options_set_and_get() {
    let k = TcpSocket::new_v4().unwrap();
    k.set_keepalive(true).unwrap();
    k.set_reuseaddr(true).unwrap();
    k.set_reuseport(true).unwrap();
    k.set_nodelay(true).unwrap();
    println!(
        "{} {} {} {}",
        shown(&k.keepalive()),
        shown(&k.reuseaddr()),
        shown(&k.reuseport()),
        shown(&k.nodelay())
    );
    k.set_keepalive(false).unwrap();
    k.set_reuseaddr(false).unwrap();
    k.set_reuseport(false).unwrap();
    k.set_nodelay(false).unwrap();
    println!(
        "{} {} {} {}",
        shown(&k.keepalive()),
        shown(&k.reuseaddr()),
        shown(&k.reuseport()),
        shown(&k.nodelay())
    );
}

fn tcp_socket_buffer_sizes_are_doubled_and_clamped() {
    let k = TcpSocket::new_v4().unwrap();
    for n in [0u32, 1, 10_000, 65_536] {
        println!("{n} {} {}", outcome(&k.set_send_buffer_size(n)), shown(&k.send_buffer_size()));
        println!("{n} {} {}", outcome(&k.set_recv_buffer_size(n)), shown(&k.recv_buffer_size()));
    }
}

fn tcp_socket_linger_values() {
    let k = TcpSocket::new_v4().unwrap();
    for v in [
        Some(Duration::ZERO),
        Some(millis(900)),
        Some(millis(1500)),
        Some(Duration::from_secs(7)),
        None,
    ] {
        println!("{v:?} {} {}", outcome(&k.set_linger(v)), shown(&k.linger()));
    }
    println!("{} {}", outcome(&k.set_zero_linger()), shown(&k.linger()));
}

fn tcp_socket_tos_values() {
    let k = TcpSocket::new_v4().unwrap();
    for v in [0u32, 0x10, 0xb8, 0xff, 0x100, 0x1b8, u32::MAX] {
        println!("{v:#x} {} {}", outcome(&k.set_tos_v4(v)), shown(&k.tos_v4()));
    }
}

fn tcp_socket_from_std_connected_stream() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let a = l.local_addr().unwrap();
        let st = std::net::TcpStream::connect(a).unwrap();
        let k = TcpSocket::from_std_stream(st);
        println!("{}", outcome(&k.connect(a).await));
    });
}

fn tcp_socket_bound_connect_uses_that_port() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let k = TcpSocket::new_v4().unwrap();
        k.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let mine = k.local_addr().unwrap();
        let c = k.connect(l.local_addr().unwrap()).await.unwrap();
        let (_, from) = l.accept().await.unwrap();
        println!("{} {}", c.local_addr().unwrap() == mine, from == mine);
    });
}

fn tcp_socket_reuseport_lets_two_listen() {
    current_thread().block_on(async {
        let k = TcpSocket::new_v4().unwrap();
        k.set_reuseport(true).unwrap();
        k.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let l = k.listen(8).unwrap();
        let k2 = TcpSocket::new_v4().unwrap();
        println!("without {}", outcome(&k2.bind(l.local_addr().unwrap())));
        let k2 = TcpSocket::new_v4().unwrap();
        k2.set_reuseport(true).unwrap();
        println!("with {}", outcome(&k2.bind(l.local_addr().unwrap())));
        println!("listen {}", outcome(&k2.listen(8)));
    });
}

// Options of streams and listeners.
fn tcp_stream_ttl_odd_values() {
    current_thread().block_on(async {
        let (a, _b) = tcp_pair().await;
        let first = a.ttl().unwrap();
        for v in [1u32, 64, 255, 0, 256, 100_000] {
            println!("{v} {} {}", outcome(&a.set_ttl(v)), shown(&a.ttl()));
        }
        println!("max {} {}", outcome(&a.set_ttl(u32::MAX)), a.ttl().unwrap() == first);
    });
}

fn tcp_listener_ttl_is_inherited_by_accepted() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{} {}", outcome(&l.set_ttl(33)), shown(&l.ttl()));
        println!("{} {}", outcome(&l.set_ttl(0)), shown(&l.ttl()));
        let (_c, s) = tokio::join!(TcpStream::connect(l.local_addr().unwrap()), l.accept());
        println!("{}", shown(&s.unwrap().0.ttl()));
    });
}

fn tcp_stream_nodelay_and_linger() {
    multi_thread(1).block_on(async {
        let (a, b) = tcp_pair().await;
        println!(
            "{} {} {} {}",
            shown(&a.nodelay()),
            shown(&b.nodelay()),
            shown(&a.linger()),
            shown(&b.linger())
        );
        a.set_nodelay(true).unwrap();
        a.set_linger(Some(Duration::from_secs(3))).unwrap();
        println!(
            "{} {} {} {}",
            shown(&a.nodelay()),
            shown(&b.nodelay()),
            shown(&a.linger()),
            shown(&b.linger())
        );
        a.set_nodelay(false).unwrap();
        a.set_linger(None).unwrap();
        println!("{} {}", shown(&a.nodelay()), shown(&a.linger()));
    });
}

// Accepting.
fn tcp_accept_cancelled_loses_no_connection() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for _ in 0..5 {
            let mut f = pin!(l.accept());
            println!("{}", polled_outcome(once(f.as_mut()).await));
        }
        let c = TcpStream::connect(l.local_addr().unwrap()).await.unwrap();
        println!(
            "{}",
            timeout(millis(2000), l.accept()).await.unwrap().unwrap().1 == c.local_addr().unwrap()
        );
    });
}

fn tcp_accept_cancelled_after_wake_loses_no_connection() {
    multi_thread(2).block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (n, w) = counter();
        let mut f = Box::pin(l.accept());
        println!("{}", polled_outcome(poll_with(f.as_mut(), &w)));
        let c = TcpStream::connect(l.local_addr().unwrap()).await.unwrap();
        println!("woken {}", woken(&n).await);
        drop(f);
        println!(
            "{}",
            timeout(millis(2000), l.accept()).await.unwrap().unwrap().1 == c.local_addr().unwrap()
        );
    });
}

fn tcp_two_pending_accepts_share_two_connections() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let a = l.local_addr().unwrap();
        let (x, y, c, d) =
            tokio::join!(l.accept(), l.accept(), TcpStream::connect(a), TcpStream::connect(a));
        let mut got = vec![x.unwrap().1, y.unwrap().1];
        got.sort();
        let mut want = vec![c.unwrap().local_addr().unwrap(), d.unwrap().local_addr().unwrap()];
        want.sort();
        println!("{}", got == want);
    });
}

fn tcp_all_pending_accepts_are_woken_by_one_connection() {
    multi_thread(1).block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        let mut f1 = Box::pin(l.accept());
        let mut f2 = Box::pin(l.accept());
        println!(
            "{} {}",
            polled_outcome(poll_with(f1.as_mut(), &w1)),
            polled_outcome(poll_with(f2.as_mut(), &w2))
        );
        let _c = TcpStream::connect(l.local_addr().unwrap()).await.unwrap();
        println!("{} {}", woken(&n1).await, woken(&n2).await);
        println!("{}", polled_outcome(poll_with(f1.as_mut(), &w1)));
        println!("{}", polled_outcome(poll_with(f2.as_mut(), &w2)));
    });
}

fn tcp_poll_accept_keeps_only_the_last_waker() {
    multi_thread(2).block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        println!("{}", polled_outcome(l.poll_accept(&mut Context::from_waker(&w1))));
        println!("{}", polled_outcome(l.poll_accept(&mut Context::from_waker(&w2))));
        let _c = TcpStream::connect(l.local_addr().unwrap()).await.unwrap();
        println!("last {}", woken(&n2).await);
        println!("first {}", n1.get());
        println!("{}", polled_outcome(l.poll_accept(&mut Context::from_waker(&w1))));
    });
}

fn tcp_listener_drop_resets_unaccepted_connections() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let a = l.local_addr().unwrap();
        let mut c = TcpStream::connect(a).await.unwrap();
        drop(l);
        println!("{}", shown(&c.read(&mut [0; 4]).await));
        println!("{}", outcome(&TcpStream::connect(a).await));
    });
}

fn tcp_data_sent_before_accept_is_read_after() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut c = TcpStream::connect(l.local_addr().unwrap()).await.unwrap();
        c.write_all(b"early").await.unwrap();
        drop(c);
        let (mut s1, _) = l.accept().await.unwrap();
        let mut v = vec![];
        println!("{} {}", shown(&s1.read_to_end(&mut v).await), lossy(&v));
    });
}

fn tcp_accepted_stream_starts_readable_and_writable() {
    current_thread().block_on(async {
        let (_a, b) = tcp_pair().await;
        println!("{}", flags(b.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap()));
        println!("{}", shown(&b.try_read(&mut [0; 4])));
        println!("{}", flags(b.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap()));
    });
}

fn tcp_connected_stream_starts_writable_only() {
    current_thread().block_on(async {
        let (a, _b) = tcp_pair().await;
        println!("{}", flags(a.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap()));
        println!("{}", shown(&a.try_read(&mut [0; 4])));
        println!("{}", shown(&a.try_write(b"abc")));
    });
}

// Reading and writing.
fn tcp_peek_does_not_consume() {
    multi_thread(2).block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        a.write_all(b"hello").await.unwrap();
        let mut buf = [0; 16];
        // all five bytes come in one segment
        println!("{} {}", shown(&b.peek(&mut buf).await), lossy(&buf[..5]));
        println!("{}", shown(&b.peek(&mut buf[..2]).await));
        println!("{}", shown(&b.peek(&mut []).await));
        println!("{} {}", shown(&b.read(&mut buf).await), lossy(&buf[..5]));
        println!("pending {}", stuck(b.peek(&mut buf)).await);
        drop(a);
        println!("eof {} {}", shown(&b.peek(&mut buf).await), shown(&b.peek(&mut buf).await));
    });
}

fn tcp_poll_peek_appends_to_the_read_buf() {
    current_thread().block_on(async {
        let (mut a, b) = tcp_pair().await;
        a.write_all(b"xyz").await.unwrap();
        let mut m = [0u8; 8];
        let mut rb = ReadBuf::new(&mut m);
        rb.put_slice(b"12");
        println!("{}", shown(&poll_fn(|cx| b.poll_peek(cx, &mut rb)).await));
        println!("{} {}", lossy(rb.filled()), rb.remaining());
    });
}

fn tcp_zero_length_read() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        println!("nothing there, accepted side stuck {}", stuck(b.read(&mut [])).await);
        println!("nothing there, connected side stuck {}", stuck(a.read(&mut [])).await);
        b.write_all(b"q").await.unwrap();
        a.readable().await.unwrap();
        println!("data there {}", shown(&a.read(&mut []).await));
        println!("{}", shown(&a.read(&mut [0; 3]).await));
        drop(b);
        println!("eof {}", shown(&a.read(&mut []).await));
    });
}

fn tcp_zero_length_write() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        println!("{} {}", shown(&a.write(&[]).await), shown(&a.write_vectored(&[]).await));
        println!("{}", shown(&a.write_vectored(&[IoSlice::new(&[]), IoSlice::new(&[])]).await));
        println!("{}", outcome(&a.write_all(&[]).await));
        println!("nothing came {}", stuck(b.read(&mut [0; 4])).await);
        println!("{}", shown(&a.try_write(&[])));
    });
}

fn tcp_vectored_write_and_read() {
    multi_thread(1).block_on(async {
        let (mut a, b) = tcp_pair().await;
        println!("{} {}", a.is_write_vectored(), b.is_write_vectored());
        println!(
            "{}",
            shown(
                &a.write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")])
                    .await
            )
        );
        let (mut x, mut y, mut z) = ([0; 1], [0; 0], [0; 10]);
        let n = loop {
            b.readable().await.unwrap();
            match b.try_read_vectored(&mut [
                IoSliceMut::new(&mut x),
                IoSliceMut::new(&mut y),
                IoSliceMut::new(&mut z),
            ]) {
                Ok(n) => break n,
                Err(x) if x.kind() == ErrorKind::WouldBlock => continue,
                Err(x) => panic!("{x}"),
            }
        };
        println!("{n} {} {}", lossy(&x), lossy(&z[..4]));
    });
}

fn tcp_vectored_write_takes_at_most_1024_slices() {
    current_thread().block_on(async {
        let (mut a, _b) = tcp_pair().await;
        let v: Vec<IoSlice> = (0..2000).map(|_| IoSlice::new(b"z")).collect();
        println!("{}", shown(&a.write_vectored(&v).await));
    });
}

fn tcp_try_read_buf_reserves_in_a_vec() {
    current_thread().block_on(async {
        let (mut a, b) = tcp_pair().await;
        a.write_all(&[7; 100]).await.unwrap();
        let mut v: Vec<u8> = Vec::new();
        // The accepted side starts out readable but the bytes may not yet be there.
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and `peek` writes only initialised
        // bytes.
        let n = b
            .async_io(Interest::READABLE, || {
                let mut x = [0u8; 100];
                socket2::SockRef::from(&b).peek(unsafe {
                    &mut *(&mut x as *mut [u8; 100] as *mut [MaybeUninit<u8>; 100])
                })
            })
            .await;
        println!("{}", shown(&n));
        println!("{} {} {}", shown(&b.try_read_buf(&mut v)), v.len(), v.capacity());
        let mut small = [0u8; 5];
        println!("{}", shown(&b.try_read_buf(&mut &mut small[..])));
        println!("{}", shown(&b.try_read_buf(&mut &mut small[..0])));
        let mut bm = BytesMut::with_capacity(200);
        println!("{} {} {}", shown(&b.try_read_buf(&mut bm)), bm.len(), bm.capacity());
        println!("{} {}", shown(&b.try_read_buf(&mut bm)), bm.len());
    });
}

fn tcp_read_buf_into_bytes_mut_at_capacity() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        a.write_all(b"0123456789").await.unwrap();
        drop(a);
        let mut bm = BytesMut::with_capacity(4);
        let mut n = vec![];
        loop {
            let k = b.read_buf(&mut bm).await.unwrap();
            if k == 0 {
                break;
            }
            n.push(k);
        }
        println!("{n:?} {} {}", lossy(&bm), bm.capacity());
    });
}

fn tcp_read_buf_limited_returns_zero_when_full() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        a.write_all(b"0123456789").await.unwrap();
        let mut l = Vec::new().limit(3);
        println!("{} {}", shown(&b.read_buf(&mut l).await), shown(&b.read_buf(&mut l).await));
        println!("{}", lossy(l.get_ref()));
    });
}

fn tcp_try_read_wouldblock_has_no_os_error() {
    current_thread().block_on(async {
        let (a, b) = tcp_pair().await;
        println!("{} {}", shown(&b.try_read(&mut [0; 1])), shown(&a.try_read(&mut [0; 1])));
        println!("{}", shown(&b.try_read_vectored(&mut [])));
    });
}

fn tcp_try_io_does_not_run_when_not_ready() {
    current_thread().block_on(async {
        let (a, _b) = tcp_pair().await;
        let mut ran = 0;
        println!(
            "{}",
            shown(&a.try_io(Interest::READABLE, || {
                ran += 1;
                Ok(1)
            }))
        );
        println!(
            "{}",
            shown(&a.try_io(Interest::WRITABLE, || {
                ran += 1;
                Ok(2)
            }))
        );
        println!("ran {ran}");
    });
}

fn tcp_try_io_wouldblock_clears_readiness_until_new_data() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.write_all(b"one").await.unwrap();
        a.readable().await.unwrap();
        println!(
            "{}",
            shown(&a.try_io(Interest::READABLE, || Err::<(), _>(ErrorKind::WouldBlock.into())))
        );
        println!("data is there, yet readable() is stuck {}", stuck(a.readable()).await);
        println!("{}", shown(&a.try_read(&mut [0; 8])));
        b.write_all(b"two").await.unwrap();
        let mut buf = [0; 6];
        println!("{} {}", shown(&a.read_exact(&mut buf).await), lossy(&buf));
    });
}

fn tcp_try_io_other_errors_keep_readiness() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        b.write_all(b"one").await.unwrap();
        a.readable().await.unwrap();
        println!(
            "{}",
            described(&a.try_io(Interest::READABLE, || Err::<(), _>(io::Error::other("mine"))))
        );
        println!("{}", shown(&a.try_read(&mut [0; 8])));
    });
}

fn tcp_async_io_retries_on_wouldblock() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        b.write_all(b"1").await.unwrap();
        a.readable().await.unwrap();
        let mut calls = 0;
        let mut f = pin!(a.async_io(Interest::READABLE, || {
            calls += 1;
            if calls < 2 { Err(ErrorKind::WouldBlock.into()) } else { Ok(calls) }
        }));
        println!("{}", polled(once(f.as_mut()).await));
        println!("stuck {}", stuck(f.as_mut()).await);
        b.write_all(b"2").await.unwrap();
        println!("{}", shown(&f.await));
        println!(
            "{}",
            described(
                &a.async_io(Interest::READABLE, || Err::<(), _>(io::Error::other("stop"))).await
            )
        );
    });
}

fn tcp_readable_stays_ready_until_drained() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.write_all(b"abc").await.unwrap();
        for _ in 0..3 {
            println!("{}", outcome(&a.readable().await));
        }
        println!("{}", shown(&a.read(&mut [0; 3]).await));
        // A full buffer does not show that the socket is drained.
        println!("now {}", shown(&a.try_read(&mut [0; 3])));
        println!("stuck {}", stuck(a.readable()).await);
    });
}

fn tcp_short_read_clears_readiness() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.write_all(b"abc").await.unwrap();
        println!("{}", shown(&a.read(&mut [0; 30]).await));
        let mut ran = false;
        println!(
            "{}",
            shown(&a.try_io(Interest::READABLE, || {
                ran = true;
                Ok(())
            }))
        );
        println!("{ran}");
    });
}

fn tcp_two_readable_futures_are_both_woken() {
    multi_thread(2).block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        let mut f1 = Box::pin(a.readable());
        let mut f2 = Box::pin(a.readable());
        println!(
            "{} {}",
            polled_outcome(poll_with(f1.as_mut(), &w1)),
            polled_outcome(poll_with(f2.as_mut(), &w2))
        );
        b.write_all(b"x").await.unwrap();
        println!("{} {}", woken(&n1).await, woken(&n2).await);
        println!(
            "{} {}",
            polled_outcome(poll_with(f1.as_mut(), &w1)),
            polled_outcome(poll_with(f2.as_mut(), &w2))
        );
    });
}

fn tcp_poll_read_ready_keeps_only_the_last_waker() {
    multi_thread(1).block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        println!(
            "{} {}",
            polled_outcome(a.poll_read_ready(&mut Context::from_waker(&w1))),
            polled_outcome(a.poll_read_ready(&mut Context::from_waker(&w2)))
        );
        println!("{}", polled_outcome(a.poll_write_ready(&mut Context::from_waker(&w1))));
        b.write_all(b"x").await.unwrap();
        println!("{} {}", woken(&n2).await, n1.get());
        println!("{}", polled_outcome(a.poll_read_ready(&mut Context::from_waker(&w1))));
    });
}

fn tcp_dropped_readable_future_is_not_woken() {
    multi_thread(2).block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        let mut f1 = Box::pin(a.readable());
        let mut f2 = Box::pin(a.readable());
        let _ = (poll_with(f1.as_mut(), &w1), poll_with(f2.as_mut(), &w2));
        drop(f1);
        b.write_all(b"x").await.unwrap();
        println!("{} {}", woken(&n2).await, n1.get());
    });
}

fn tcp_cancelled_read_loses_no_byte() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        let mut got = vec![];
        for i in 0..50u8 {
            {
                let mut x = [0; 16];
                let mut f = pin!(a.read(&mut x));
                if let Poll::Ready(n) = once(f.as_mut()).await {
                    println!("early {}", shown(&n));
                }
            }
            b.write_all(&[i, i, i]).await.unwrap();
            let mut x = [0; 3];
            a.read_exact(&mut x).await.unwrap();
            got.extend_from_slice(&x);
        }
        println!("{} {}", got.len(), got.iter().enumerate().all(|(i, &x)| x as usize == i / 3));
    });
}

fn tcp_select_loop_with_cancelled_reads_loses_no_byte() {
    multi_thread(2).block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        let t = tokio::spawn(async move {
            for i in 0..2000u32 { b.write_all(&i.to_be_bytes()).await.unwrap(); if i % 50 == 0 { tokio::task::yield_now().await; } }
        });
        let mut v = vec![];
        let mut buf = [0; 7];
        loop {
            tokio::select! {
                n = a.read(&mut buf) => { let n = n.unwrap(); if n == 0 { break; } v.extend_from_slice(&buf[..n]); }
                _ = tokio::task::yield_now() => {}
            }
        }
        t.await.unwrap();
        println!("{} {}", v.len(), v.chunks(4).enumerate().all(|(i, c)| c == (i as u32).to_be_bytes()));
    });
}

fn tcp_cancelled_read_exact_keeps_what_was_read_in_the_buffer() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.write_all(b"abc").await.unwrap();
        let mut buf = *b"......";
        println!("{}", timeout(millis(100), a.read_exact(&mut buf)).await.is_err());
        println!("{}", lossy(&buf));
        b.write_all(b"def").await.unwrap();
        drop(b);
        let mut v = vec![];
        println!("{} {}", shown(&a.read_to_end(&mut v).await), lossy(&v));
    });
}

fn tcp_cancelled_write_reports_every_byte_sent() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        let chunk = vec![9u8; 100_000];
        let mut sent = 0usize;
        loop {
            match timeout(millis(50), a.write(&chunk)).await {
                Ok(n) => sent += n.unwrap(),
                Err(_) => break,
            }
        }
        println!("would block {}", shown(&a.try_write(&chunk)));
        drop(a);
        let mut v = vec![];
        b.read_to_end(&mut v).await.unwrap();
        println!("{}", v.len() == sent);
    });
}

fn tcp_blocked_writer_is_woken_when_the_peer_reads() {
    multi_thread(2).block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        let total = 8 << 20;
        let w = tokio::spawn(async move {
            let x = vec![1u8; total];
            a.write_all(&x).await.unwrap();
            a.shutdown().await.unwrap();
            a
        });
        sleep(millis(50)).await;
        println!("finished {}", w.is_finished());
        let mut v = Vec::new();
        println!("{}", shown(&b.read_to_end(&mut v).await));
        w.await.unwrap();
    });
}

fn tcp_out_of_band_byte_is_not_in_the_stream() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        a.write_all(b"ab").await.unwrap();
        println!("{}", shown(&socket2::SockRef::from(&a).send_out_of_band(b"!")));
        a.write_all(b"cd").await.unwrap();
        let mut x = [0; 4];
        println!("{} {}", shown(&b.read_exact(&mut x).await), lossy(&x));
    });
}

fn tcp_out_of_band_inline() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        socket2::SockRef::from(&b).set_out_of_band_inline(true).unwrap();
        a.write_all(b"ab").await.unwrap();
        println!("{}", shown(&socket2::SockRef::from(&a).send_out_of_band(b"!")));
        a.write_all(b"cd").await.unwrap();
        let mut x = [0; 5];
        println!("{} {}", shown(&b.read_exact(&mut x).await), lossy(&x));
    });
}

// Closing.
fn tcp_half_close_still_reads() {
    multi_thread(2).block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        a.write_all(b"ask").await.unwrap();
        println!("{} {}", outcome(&a.shutdown().await), outcome(&a.shutdown().await));
        let mut v = vec![];
        println!("{} {}", shown(&b.read_to_end(&mut v).await), lossy(&v));
        b.write_all(b"answer").await.unwrap();
        drop(b);
        let mut v = vec![];
        println!("{} {}", shown(&a.read_to_end(&mut v).await), lossy(&v));
        println!("{}", shown(&a.read_to_end(&mut v).await));
    });
}

fn tcp_write_after_shutdown_is_broken_pipe() {
    current_thread().block_on(async {
        let (mut a, _b) = tcp_pair().await;
        a.shutdown().await.unwrap();
        println!("{} {}", shown(&a.write(b"x").await), outcome(&a.write_all(b"x").await));
        println!("{} {}", shown(&a.try_write(b"x")), shown(&a.write(&[]).await));
        println!("{}", outcome(&a.flush().await));
    });
}

fn tcp_eof_is_read_again_and_again() {
    current_thread().block_on(async {
        let (mut a, b) = tcp_pair().await;
        drop(b);
        for _ in 0..3 {
            println!("{}", shown(&a.read(&mut [0; 4]).await));
        }
        println!("{}", flags(a.ready(Interest::READABLE).await.unwrap()));
        println!("{}", shown(&a.try_read(&mut [0; 4])));
        println!("{}", shown(&a.read_exact(&mut [0; 4]).await));
    });
}

fn tcp_ready_after_peer_shutdown_is_read_closed() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        b.shutdown().await.unwrap();
        println!("{}", flags(a.ready(Interest::READABLE).await.unwrap()));
        println!("{}", flags(a.ready(Interest::WRITABLE).await.unwrap()));
        println!("{}", flags(a.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap()));
    });
}

fn tcp_ready_after_both_shut_down_is_write_closed_too() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.shutdown().await.unwrap();
        println!("{}", shown(&a.read(&mut [0; 4]).await));
        a.shutdown().await.unwrap();
        println!("{}", shown(&b.read(&mut [0; 4]).await));
        // wait until the hang-up was reported
        for _ in 0..200 {
            if a.ready(Interest::WRITABLE).await.unwrap().is_write_closed() {
                break;
            }
            sleep(millis(5)).await;
        }
        println!("{}", flags(a.ready(Interest::WRITABLE).await.unwrap()));
        println!("{}", flags(a.ready(Interest::READABLE).await.unwrap()));
    });
}

fn tcp_reset_by_zero_linger() {
    current_thread().block_on(async {
        let (mut a, b) = tcp_pair().await;
        b.set_zero_linger().unwrap();
        drop(b);
        println!("{}", shown(&a.read(&mut [0; 4]).await));
        println!("again {}", shown(&a.read(&mut [0; 4]).await));
        println!("{}", shown(&a.write(b"x").await));
        println!("{}", outcome(&a.shutdown().await));
        println!("{}", outcome(&a.peer_addr()));
    });
}

fn tcp_reset_readiness_flags() {
    current_thread().block_on(async {
        let (a, b) = tcp_pair().await;
        b.set_zero_linger().unwrap();
        drop(b);
        println!("{}", flags(a.ready(Interest::READABLE).await.unwrap()));
        println!("{}", flags(a.ready(Interest::WRITABLE).await.unwrap()));
        println!("{}", flags(a.ready(Interest::ERROR).await.unwrap()));
    });
}

fn tcp_reset_take_error_consumes_it() {
    current_thread().block_on(async {
        let (mut a, b) = tcp_pair().await;
        b.set_zero_linger().unwrap();
        drop(b);
        a.readable().await.unwrap();
        println!("{:?}", a.take_error().unwrap().map(|x| error(&x)));
        println!("{:?}", a.take_error().unwrap().map(|x| error(&x)));
        println!("{}", shown(&a.read(&mut [0; 4]).await));
    });
}

fn tcp_reset_drops_data_not_yet_read_by_linger() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.write_all(b"abc").await.unwrap();
        a.readable().await.unwrap();
        b.set_zero_linger().unwrap();
        drop(b);
        for _ in 0..400 {
            if a.ready(Interest::READABLE).await.unwrap().is_read_closed() {
                break;
            }
            sleep(millis(5)).await;
        }
        println!("{}", shown(&a.read(&mut [0; 8]).await));
        println!("{}", shown(&a.read(&mut [0; 8]).await));
    });
}

fn tcp_close_with_unread_data_resets_the_peer() {
    current_thread().block_on(async {
        let (mut a, b) = tcp_pair().await;
        a.write_all(b"unread").await.unwrap();
        b.peek(&mut [0; 1]).await.unwrap();
        drop(b);
        println!("{}", shown(&a.read(&mut [0; 4]).await));
    });
}

fn tcp_close_after_reading_all_is_clean() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        a.write_all(b"unread").await.unwrap();
        b.read_exact(&mut [0; 6]).await.unwrap();
        drop(b);
        println!("{}", shown(&a.read(&mut [0; 4]).await));
        println!("first write {}", shown(&a.write(b"x").await));
        // The response to it is a reset.
        for _ in 0..400 {
            if a.ready(Interest::WRITABLE).await.unwrap().is_write_closed() {
                break;
            }
            sleep(millis(5)).await;
        }
        println!("second write {}", shown(&a.write(b"x").await));
    });
}

fn tcp_pending_read_ends_on_reset_in_another_task() {
    multi_thread(4).block_on(async {
        let (mut a, b) = tcp_pair().await;
        let t = tokio::spawn(async move { shown(&a.read(&mut [0; 4]).await) });
        sleep(millis(30)).await;
        b.set_zero_linger().unwrap();
        drop(b);
        println!("{}", t.await.unwrap());
    });
}

fn tcp_aborted_task_closes_its_stream() {
    multi_thread(2).block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        let t = tokio::spawn(async move {
            let mut x = [0; 4];
            b.read(&mut x).await
        });
        sleep(millis(20)).await;
        t.abort();
        let x = t.await;
        println!("{}", x.unwrap_err().is_cancelled());
        println!("{}", shown(&a.read(&mut [0; 4]).await));
    });
}

// Halves.
fn tcp_dropping_the_owned_write_half_shuts_down() {
    multi_thread(2).block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (mut rd, wr) = a.into_split();
        drop(wr);
        println!("{}", shown(&b.read(&mut [0; 4]).await));
        b.write_all(b"more").await.unwrap();
        let mut x = [0; 4];
        println!("{} {}", shown(&rd.read_exact(&mut x).await), lossy(&x));
    });
}

fn tcp_forget_of_the_owned_write_half_does_not_shut_down() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (rd, wr) = a.into_split();
        wr.forget();
        println!("stuck {}", stuck(b.read(&mut [0; 4])).await);
        drop(rd);
        println!("{}", shown(&b.read(&mut [0; 4]).await));
    });
}

fn tcp_dropping_the_owned_read_half_changes_nothing() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (rd, mut wr) = a.into_split();
        drop(rd);
        println!("{}", outcome(&b.write_all(b"into the void").await));
        wr.write_all(b"hi").await.unwrap();
        let mut x = [0; 2];
        println!("{} {}", shown(&b.read_exact(&mut x).await), lossy(&x));
    });
}

fn tcp_dropping_borrowed_halves_does_not_shut_down() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        {
            let (_rd, _wr) = a.split();
        }
        println!("stuck {}", stuck(b.read(&mut [0; 4])).await);
        {
            let (_rd, mut wr) = a.split();
            wr.shutdown().await.unwrap();
        }
        println!("{}", shown(&b.read(&mut [0; 4]).await));
    });
}

fn tcp_reunite_halves_of_one_stream() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (rd, wr) = a.into_split();
        let mut a = rd.reunite(wr).unwrap();
        a.write_all(b"whole").await.unwrap();
        let mut x = [0; 5];
        println!("{} {}", shown(&b.read_exact(&mut x).await), lossy(&x));
        println!("stuck {}", stuck(b.read(&mut x)).await);
    });
}

fn tcp_reunite_mismatch_gives_both_back() {
    current_thread().block_on(async {
        let (a, _b) = tcp_pair().await;
        let (c, _d) = tcp_pair().await;
        let (ra, wa) = a.into_split();
        let (rc, wc) = c.into_split();
        let x = ra.reunite(wc).unwrap_err();
        println!("{}", quoted(&x));
        let tokio::net::tcp::ReuniteError(ra, wc) = x;
        println!("{}", outcome(&ra.reunite(wa).map_err(|_| io::Error::other("no"))));
        println!("{}", wc.reunite(rc).is_ok());
    });
}

fn tcp_owned_halves_know_their_addresses_and_readiness() {
    current_thread().block_on(async {
        let (a, b) = tcp_pair().await;
        let (bl, al) = (b.local_addr().unwrap(), a.local_addr().unwrap());
        let (mut rd, wr) = a.into_split();
        println!("{} {}", rd.peer_addr().unwrap() == bl, wr.local_addr().unwrap() == al);
        println!("{}", flags(wr.ready(Interest::WRITABLE).await.unwrap()));
        println!("{} {}", shown(&wr.try_write(b"x")), shown(&rd.try_read(&mut [0; 2])));
        println!("{}", shown(&b.try_write(b"yz")));
        println!("{}", shown(&rd.peek(&mut [0; 4]).await));
        println!("{}", shown(&rd.read(&mut [0; 4]).await));
        println!("{}", rd.as_ref().ttl().is_ok());
    });
}

fn tcp_write_half_shutdown_then_write() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        let (rd, mut wr) = a.into_split();
        wr.write_all(b"abc").await.unwrap();
        wr.shutdown().await.unwrap();
        println!("{}", shown(&wr.write(b"d").await));
        let mut v = vec![];
        println!("{} {}", shown(&b.read_to_end(&mut v).await), lossy(&v));
        println!("{}", wr.reunite(rd).is_ok());
    });
}

fn tcp_halves_in_two_tasks_echo() {
    multi_thread(4).block_on(async {
        let (a, b) = tcp_pair().await;
        let (mut br, mut bw) = b.into_split();
        let echo = tokio::spawn(async move { tokio::io::copy(&mut br, &mut bw).await.unwrap() });
        let (mut ar, mut aw) = a.into_split();
        let w = tokio::spawn(async move {
            for i in 0..200u8 {
                aw.write_all(&[i; 500]).await.unwrap();
            }
        });
        let mut v = vec![];
        ar.read_to_end(&mut v).await.unwrap();
        w.await.unwrap();
        println!(
            "{} {} {}",
            v.len(),
            v.chunks(500).enumerate().all(|(i, c)| c.iter().all(|&x| x == i as u8)),
            echo.await.unwrap()
        );
    });
}

// Std conversions.
fn tcp_from_std_blocking_panics_in_debug() {
    quiet();
    let rt = current_thread();
    let _g = rt.enter();
    let l = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let c = std::net::TcpStream::connect(l.local_addr().unwrap()).unwrap();
    println!(
        "{}",
        panics(|| TcpStream::from_std(c))
            .contains("Registering a blocking socket with the tokio runtime is unsupported")
    );
    println!(
        "{}",
        panics(|| TcpListener::from_std(l))
            .contains("Registering a blocking socket with the tokio runtime is unsupported")
    );
}

fn tcp_from_std_nonblocking_works() {
    let rt = multi_thread(1);
    let l = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    l.set_nonblocking(true).unwrap();
    let mut c = std::net::TcpStream::connect(l.local_addr().unwrap()).unwrap();
    c.write_all(b"std").unwrap();
    let l = {
        let _g = rt.enter();
        TcpListener::from_std(l).unwrap()
    };
    rt.block_on(async {
        let (mut s1, _) = l.accept().await.unwrap();
        let mut x = [0; 3];
        println!("{} {}", shown(&s1.read_exact(&mut x).await), lossy(&x));
        let l2: std::net::TcpListener = l.into_std().unwrap();
        println!("{}", is_nonblocking(l2.as_raw_fd()));
        println!("{}", outcome(&TcpListener::try_from(l2)));
    });
}

fn tcp_into_std_is_nonblocking_and_keeps_unread_bytes() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        let mut st = a.into_std().unwrap();
        println!("{} {}", is_nonblocking(st.as_raw_fd()), shown(&st.read(&mut [0; 4])));
        b.write_all(b"kept").await.unwrap();
        let mut a = TcpStream::from_std(st).unwrap();
        let mut x = [0; 2];
        a.read_exact(&mut x).await.unwrap();
        let mut st = a.into_std().unwrap();
        st.set_nonblocking(false).unwrap();
        let mut y = [0; 2];
        st.read_exact(&mut y).unwrap();
        println!("{} {}", lossy(&x), lossy(&y));
    });
}

fn tcp_into_std_and_back_in_another_runtime() {
    let r1 = current_thread();
    let (a, mut b) = r1.block_on(tcp_pair());
    let st = a.into_std().unwrap();
    let r2 = multi_thread(2);
    r2.block_on(async {
        let mut a = TcpStream::from_std(st).unwrap();
        a.write_all(b"moved").await.unwrap();
    });
    let mut x = [0; 5];
    println!("{}", r1.block_on(async { shown(&b.read_exact(&mut x).await) }));
    println!("{}", lossy(&x));
}

fn tcp_ready_is_not_read_closed_while_open() {
    // tokio-rs/tokio#5098
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.write_all(b"x").await.unwrap();
        let f = a.ready(Interest::READABLE).await.unwrap();
        println!("{} {}", f.is_readable(), f.is_read_closed());
        a.read(&mut [0; 4]).await.unwrap();
        drop(b);
        println!("{}", a.ready(Interest::READABLE).await.unwrap().is_read_closed());
    });
}

/// Linux reports the length of a listener's queue in the field where a connection has its selective
/// acknowledgements.
fn tcp_listener_backlog() {
    let backlog = |fd: std::os::fd::RawFd| {
        // SAFETY: a `tcp_info` of zeros is valid.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = std::mem::size_of_val(&info) as libc::socklen_t;
        let info_at = (&raw mut info).cast();
        // SAFETY: both pointers are valid for the call, and the length is that of the value.
        let done = unsafe {
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info_at, &mut length)
        };
        assert_eq!(done, 0);
        info.tcpi_sacked
    };
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", backlog(l.as_raw_fd()));
        let s = TcpSocket::new_v4().unwrap();
        s.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        println!("{}", backlog(s.listen(77).unwrap().as_raw_fd()));
    });
}

fn tcp_vectored_writes_of_nothing() {
    current_thread().block_on(async {
        let nothing = [IoSlice::new(&[]), IoSlice::new(&[])];
        let (mut a, b) = tcp_pair().await;
        println!(
            "{} {}",
            shown(&a.write_vectored(&nothing).await),
            shown(&a.try_write_vectored(&[]))
        );
        a.shutdown().await.unwrap();
        println!("shut down {}", shown(&a.write_vectored(&nothing).await));
        println!("shut down {}", shown(&a.try_write_vectored(&nothing)));
        println!("shut down {}", shown(&a.write_vectored(&[IoSlice::new(b"x")]).await));
        drop((a, b));
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("tcp_connect_to_closed_port_is_refused", tcp_connect_to_closed_port_is_refused),
    ("tcp_connect_to_port_zero_is_refused", tcp_connect_to_port_zero_is_refused),
    ("tcp_connect_to_broadcast_is_unreachable", tcp_connect_to_broadcast_is_unreachable),
    ("tcp_bind_twice_is_addr_in_use", tcp_bind_twice_is_addr_in_use),
    ("tcp_bind_foreign_address_is_not_available", tcp_bind_foreign_address_is_not_available),
    ("tcp_bind_bad_strings", tcp_bind_bad_strings),
    ("tcp_bind_no_address_at_all", tcp_bind_no_address_at_all),
    ("tcp_bind_takes_the_first_address_that_works", tcp_bind_takes_the_first_address_that_works),
    ("tcp_bind_returns_the_last_error", tcp_bind_returns_the_last_error),
    ("tcp_connect_tries_addresses_in_order", tcp_connect_tries_addresses_in_order),
    ("tcp_connect_addresses_agree", tcp_connect_addresses_agree),
    (
        "tcp_listener_has_reuseaddr_nonblocking_cloexec",
        tcp_listener_has_reuseaddr_nonblocking_cloexec,
    ),
    ("tcp_connect_with_full_backlog_waits", tcp_connect_with_full_backlog_waits),
    ("tcp_connect_cancelled_is_accepted_with_eof", tcp_connect_cancelled_is_accepted_with_eof),
    ("tcp_ipv4_socket_to_ipv6_address", tcp_ipv4_socket_to_ipv6_address),
    ("tcp_socket_unbound_local_addr", tcp_socket_unbound_local_addr),
    ("tcp_socket_needs_no_runtime_until_listen", tcp_socket_needs_no_runtime_until_listen),
    ("tcp_socket_bind_twice_is_invalid", tcp_socket_bind_twice_is_invalid),
    ("tcp_socket_listen_without_bind", tcp_socket_listen_without_bind),
    ("tcp_socket_listen_with_huge_backlog", tcp_socket_listen_with_huge_backlog),
    ("tcp_socket_defaults", tcp_socket_defaults),
    ("tcp_socket_options_set_and_get", tcp_socket_options_set_and_get),
    (
        "tcp_socket_buffer_sizes_are_doubled_and_clamped",
        tcp_socket_buffer_sizes_are_doubled_and_clamped,
    ),
    ("tcp_socket_linger_values", tcp_socket_linger_values),
    ("tcp_socket_tos_values", tcp_socket_tos_values),
    ("tcp_socket_from_std_connected_stream", tcp_socket_from_std_connected_stream),
    ("tcp_socket_bound_connect_uses_that_port", tcp_socket_bound_connect_uses_that_port),
    ("tcp_socket_reuseport_lets_two_listen", tcp_socket_reuseport_lets_two_listen),
    ("tcp_stream_ttl_odd_values", tcp_stream_ttl_odd_values),
    ("tcp_listener_ttl_is_inherited_by_accepted", tcp_listener_ttl_is_inherited_by_accepted),
    ("tcp_stream_nodelay_and_linger", tcp_stream_nodelay_and_linger),
    ("tcp_accept_cancelled_loses_no_connection", tcp_accept_cancelled_loses_no_connection),
    (
        "tcp_accept_cancelled_after_wake_loses_no_connection",
        tcp_accept_cancelled_after_wake_loses_no_connection,
    ),
    (
        "tcp_two_pending_accepts_share_two_connections",
        tcp_two_pending_accepts_share_two_connections,
    ),
    (
        "tcp_all_pending_accepts_are_woken_by_one_connection",
        tcp_all_pending_accepts_are_woken_by_one_connection,
    ),
    ("tcp_poll_accept_keeps_only_the_last_waker", tcp_poll_accept_keeps_only_the_last_waker),
    (
        "tcp_listener_drop_resets_unaccepted_connections",
        tcp_listener_drop_resets_unaccepted_connections,
    ),
    ("tcp_data_sent_before_accept_is_read_after", tcp_data_sent_before_accept_is_read_after),
    (
        "tcp_accepted_stream_starts_readable_and_writable",
        tcp_accepted_stream_starts_readable_and_writable,
    ),
    ("tcp_connected_stream_starts_writable_only", tcp_connected_stream_starts_writable_only),
    ("tcp_peek_does_not_consume", tcp_peek_does_not_consume),
    ("tcp_poll_peek_appends_to_the_read_buf", tcp_poll_peek_appends_to_the_read_buf),
    ("tcp_zero_length_read", tcp_zero_length_read),
    ("tcp_zero_length_write", tcp_zero_length_write),
    ("tcp_vectored_write_and_read", tcp_vectored_write_and_read),
    ("tcp_vectored_write_takes_at_most_1024_slices", tcp_vectored_write_takes_at_most_1024_slices),
    ("tcp_try_read_buf_reserves_in_a_vec", tcp_try_read_buf_reserves_in_a_vec),
    ("tcp_read_buf_into_bytes_mut_at_capacity", tcp_read_buf_into_bytes_mut_at_capacity),
    ("tcp_read_buf_limited_returns_zero_when_full", tcp_read_buf_limited_returns_zero_when_full),
    ("tcp_try_read_wouldblock_has_no_os_error", tcp_try_read_wouldblock_has_no_os_error),
    ("tcp_try_io_does_not_run_when_not_ready", tcp_try_io_does_not_run_when_not_ready),
    (
        "tcp_try_io_wouldblock_clears_readiness_until_new_data",
        tcp_try_io_wouldblock_clears_readiness_until_new_data,
    ),
    ("tcp_try_io_other_errors_keep_readiness", tcp_try_io_other_errors_keep_readiness),
    ("tcp_async_io_retries_on_wouldblock", tcp_async_io_retries_on_wouldblock),
    ("tcp_readable_stays_ready_until_drained", tcp_readable_stays_ready_until_drained),
    ("tcp_short_read_clears_readiness", tcp_short_read_clears_readiness),
    ("tcp_two_readable_futures_are_both_woken", tcp_two_readable_futures_are_both_woken),
    (
        "tcp_poll_read_ready_keeps_only_the_last_waker",
        tcp_poll_read_ready_keeps_only_the_last_waker,
    ),
    ("tcp_dropped_readable_future_is_not_woken", tcp_dropped_readable_future_is_not_woken),
    ("tcp_cancelled_read_loses_no_byte", tcp_cancelled_read_loses_no_byte),
    (
        "tcp_select_loop_with_cancelled_reads_loses_no_byte",
        tcp_select_loop_with_cancelled_reads_loses_no_byte,
    ),
    (
        "tcp_cancelled_read_exact_keeps_what_was_read_in_the_buffer",
        tcp_cancelled_read_exact_keeps_what_was_read_in_the_buffer,
    ),
    ("tcp_cancelled_write_reports_every_byte_sent", tcp_cancelled_write_reports_every_byte_sent),
    (
        "tcp_blocked_writer_is_woken_when_the_peer_reads",
        tcp_blocked_writer_is_woken_when_the_peer_reads,
    ),
    ("tcp_out_of_band_byte_is_not_in_the_stream", tcp_out_of_band_byte_is_not_in_the_stream),
    ("tcp_out_of_band_inline", tcp_out_of_band_inline),
    ("tcp_half_close_still_reads", tcp_half_close_still_reads),
    ("tcp_write_after_shutdown_is_broken_pipe", tcp_write_after_shutdown_is_broken_pipe),
    ("tcp_eof_is_read_again_and_again", tcp_eof_is_read_again_and_again),
    ("tcp_ready_after_peer_shutdown_is_read_closed", tcp_ready_after_peer_shutdown_is_read_closed),
    (
        "tcp_ready_after_both_shut_down_is_write_closed_too",
        tcp_ready_after_both_shut_down_is_write_closed_too,
    ),
    ("tcp_reset_by_zero_linger", tcp_reset_by_zero_linger),
    ("tcp_reset_readiness_flags", tcp_reset_readiness_flags),
    ("tcp_reset_take_error_consumes_it", tcp_reset_take_error_consumes_it),
    ("tcp_reset_drops_data_not_yet_read_by_linger", tcp_reset_drops_data_not_yet_read_by_linger),
    ("tcp_close_with_unread_data_resets_the_peer", tcp_close_with_unread_data_resets_the_peer),
    ("tcp_close_after_reading_all_is_clean", tcp_close_after_reading_all_is_clean),
    (
        "tcp_pending_read_ends_on_reset_in_another_task",
        tcp_pending_read_ends_on_reset_in_another_task,
    ),
    ("tcp_aborted_task_closes_its_stream", tcp_aborted_task_closes_its_stream),
    ("tcp_dropping_the_owned_write_half_shuts_down", tcp_dropping_the_owned_write_half_shuts_down),
    (
        "tcp_forget_of_the_owned_write_half_does_not_shut_down",
        tcp_forget_of_the_owned_write_half_does_not_shut_down,
    ),
    (
        "tcp_dropping_the_owned_read_half_changes_nothing",
        tcp_dropping_the_owned_read_half_changes_nothing,
    ),
    (
        "tcp_dropping_borrowed_halves_does_not_shut_down",
        tcp_dropping_borrowed_halves_does_not_shut_down,
    ),
    ("tcp_reunite_halves_of_one_stream", tcp_reunite_halves_of_one_stream),
    ("tcp_reunite_mismatch_gives_both_back", tcp_reunite_mismatch_gives_both_back),
    (
        "tcp_owned_halves_know_their_addresses_and_readiness",
        tcp_owned_halves_know_their_addresses_and_readiness,
    ),
    ("tcp_write_half_shutdown_then_write", tcp_write_half_shutdown_then_write),
    ("tcp_halves_in_two_tasks_echo", tcp_halves_in_two_tasks_echo),
    ("tcp_from_std_blocking_panics_in_debug", tcp_from_std_blocking_panics_in_debug),
    ("tcp_from_std_nonblocking_works", tcp_from_std_nonblocking_works),
    (
        "tcp_into_std_is_nonblocking_and_keeps_unread_bytes",
        tcp_into_std_is_nonblocking_and_keeps_unread_bytes,
    ),
    ("tcp_into_std_and_back_in_another_runtime", tcp_into_std_and_back_in_another_runtime),
    ("tcp_ready_is_not_read_closed_while_open", tcp_ready_is_not_read_closed_while_open),
    ("tcp_listener_backlog", tcp_listener_backlog),
    ("tcp_vectored_writes_of_nothing", tcp_vectored_writes_of_nothing),
];
