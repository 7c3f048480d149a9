//! UDP sockets.

use crate::probe::{sockets::*, *};
use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::future::poll_fn;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use tokio::io::{Interest, ReadBuf};
use tokio::net::UdpSocket;
use tokio::time::sleep;

async fn udp() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

/// Returns two sockets connected to each other.
async fn udp_pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (udp().await, udp().await);
    a.connect(b.local_addr().unwrap()).await.unwrap();
    b.connect(a.local_addr().unwrap()).await.unwrap();
    (a, b)
}

fn h_closed() -> SocketAddr {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Returns a socket connected to a closed port, whose datagram was refused and the error reported.
async fn refused() -> UdpSocket {
    let u = udp().await;
    u.connect(h_closed()).await.unwrap();
    u.send(b"x").await.unwrap();
    let f = u.ready(Interest::ERROR).await.unwrap();
    assert!(f.is_error());
    u
}

fn udp_recv_from_reports_the_sender() {
    multi_thread(2).block_on(async {
        let (a, b) = (udp().await, udp().await);
        println!("{}", shown(&a.send_to(b"hello", b.local_addr().unwrap()).await));
        let mut x = [0; 32];
        let (n, from) = b.recv_from(&mut x).await.unwrap();
        println!("{n} {} {}", lossy(&x[..n]), from == a.local_addr().unwrap());
    });
}

fn udp_short_buffer_truncates_and_drops_the_rest() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        a.send(b"0123456789").await.unwrap();
        a.send(b"next").await.unwrap();
        let mut x = [0; 4];
        println!("{} {}", shown(&b.recv(&mut x).await), lossy(&x));
        println!("{} {}", shown(&b.recv(&mut x).await), lossy(&x));
    });
}

fn udp_zero_length_datagram() {
    multi_thread(1).block_on(async {
        let (a, b) = udp_pair().await;
        println!("{}", shown(&a.send(&[]).await));
        a.send(b"z").await.unwrap();
        let mut x = [0; 4];
        println!("{} {}", shown(&b.recv(&mut x).await), shown(&b.recv(&mut x).await));
    });
}

fn udp_zero_length_buffer_takes_a_whole_datagram() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        a.send(b"first").await.unwrap();
        a.send(b"second").await.unwrap();
        println!("{}", shown(&b.recv(&mut []).await));
        let mut x = [0; 16];
        let n = b.recv(&mut x).await.unwrap();
        println!("{}", lossy(&x[..n]));
    });
}

fn udp_zero_length_buffer_waits_when_nothing_is_there() {
    current_thread().block_on(async {
        let (_a, b) = udp_pair().await;
        println!("{}", stuck(b.recv(&mut [])).await);
        println!("{}", stuck(b.peek(&mut [])).await);
    });
}

fn udp_oversize_datagram_is_refused() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        println!("{}", shown(&a.send(&vec![1; 65_508]).await));
        println!("{}", shown(&a.send_to(&vec![1; 70_000], b.local_addr().unwrap()).await));
        println!("{}", shown(&a.send(&vec![1; 65_507]).await));
        println!("{}", shown(&b.recv(&mut vec![0; 70_000]).await));
    });
}

fn udp_send_without_peer() {
    current_thread().block_on(async {
        let a = udp().await;
        println!("{}", shown(&a.send(b"x").await));
        println!("{}", outcome(&a.peer_addr()));
    });
}

fn udp_send_to_port_zero_and_other_family() {
    current_thread().block_on(async {
        let a = udp().await;
        println!("{}", shown(&a.send_to(b"x", "127.0.0.1:0").await));
        println!("{}", shown(&a.send_to(b"x", "[::1]:9").await));
        println!("{}", outcome(&a.connect("[::1]:9").await));
    });
}

fn udp_no_addresses() {
    current_thread().block_on(async {
        let none: &[SocketAddr] = &[];
        println!("{}", described(&UdpSocket::bind(none).await.map(|_| ())));
        let a = udp().await;
        println!("{}", described(&a.connect(none).await));
        println!("{}", described(&a.send_to(b"x", none).await));
    });
}

fn udp_send_to_uses_only_the_first_address() {
    current_thread().block_on(async {
        let (a, b, c) = (udp().await, udp().await, udp().await);
        let v = [b.local_addr().unwrap(), c.local_addr().unwrap()];
        println!("{}", shown(&a.send_to(b"x", &v[..]).await));
        println!("{}", shown(&b.recv(&mut [0; 4]).await));
        println!("{}", stuck(c.recv(&mut [0; 4])).await);
    });
}

fn udp_bind_twice_and_foreign() {
    current_thread().block_on(async {
        let a = udp().await;
        println!("{}", outcome(&UdpSocket::bind(a.local_addr().unwrap()).await));
        println!("{}", outcome(&UdpSocket::bind("192.0.2.1:0").await));
        let x = a.local_addr().unwrap();
        drop(a);
        println!("{}", outcome(&UdpSocket::bind(x).await));
    });
}

fn udp_connected_socket_ignores_strangers() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        let c = udp().await;
        println!("{}", shown(&c.send_to(b"stranger", b.local_addr().unwrap()).await));
        a.send(b"friend").await.unwrap();
        let mut x = [0; 16];
        let n = b.recv(&mut x).await.unwrap();
        println!("{}", lossy(&x[..n]));
    });
}

fn udp_connect_again_changes_the_peer() {
    current_thread().block_on(async {
        let (a, b, c) = (udp().await, udp().await, udp().await);
        a.connect(b.local_addr().unwrap()).await.unwrap();
        a.connect(c.local_addr().unwrap()).await.unwrap();
        println!("{}", a.peer_addr().unwrap() == c.local_addr().unwrap());
        a.send(b"x").await.unwrap();
        println!("{}", shown(&c.recv(&mut [0; 4]).await));
        println!("send_to elsewhere {}", shown(&a.send_to(b"yy", b.local_addr().unwrap()).await));
        println!("{}", shown(&b.recv(&mut [0; 4]).await));
    });
}

fn udp_order_is_kept_on_loopback() {
    multi_thread(2).block_on(async {
        let (a, b) = udp_pair().await;
        for i in 0..50u8 {
            a.send(&[i]).await.unwrap();
        }
        let mut v = vec![];
        for _ in 0..50 {
            let mut x = [0; 2];
            b.recv(&mut x).await.unwrap();
            v.push(x[0]);
        }
        println!("{}", v == (0..50).collect::<Vec<u8>>());
    });
}

// ICMP errors.
fn udp_refused_datagram_is_reported_by_recv() {
    current_thread().block_on(async {
        let u = refused().await;
        println!("{}", shown(&u.recv(&mut [0; 4]).await));
        println!("then stuck {}", stuck(u.recv(&mut [0; 4])).await);
    });
}

fn udp_pending_recv_is_woken_by_a_refused_datagram() {
    multi_thread(2).block_on(async {
        let u = Arc::new(udp().await);
        u.connect(h_closed()).await.unwrap();
        let v = u.clone();
        let t = tokio::spawn(async move { shown(&v.recv(&mut [0; 4]).await) });
        sleep(millis(30)).await;
        println!("finished {}", t.is_finished());
        u.send(b"x").await.unwrap();
        println!("{}", t.await.unwrap());
    });
}

fn udp_refused_datagram_is_reported_by_recv_from_and_recv_buf() {
    current_thread().block_on(async {
        println!("{}", outcome(&refused().await.recv_from(&mut [0; 4]).await));
        println!("{}", shown(&refused().await.recv_buf(&mut Vec::new()).await));
        println!("{}", outcome(&refused().await.recv_buf_from(&mut Vec::new()).await));
    });
}

fn udp_refused_datagram_is_reported_by_peek() {
    current_thread().block_on(async {
        let u = refused().await;
        println!("{}", shown(&u.peek(&mut [0; 4]).await));
        println!("{}", outcome(&refused().await.peek_from(&mut [0; 4]).await));
        println!("{}", outcome(&refused().await.peek_sender().await));
    });
}

fn udp_refused_datagram_is_reported_by_send_once() {
    current_thread().block_on(async {
        let u = refused().await;
        println!("{}", shown(&u.send(b"y").await));
    });
}

fn udp_refused_datagram_take_error_consumes_it() {
    current_thread().block_on(async {
        let u = refused().await;
        println!("{:?}", u.take_error().unwrap().map(|x| error(&x)));
        println!("{:?}", u.take_error().unwrap().map(|x| error(&x)));
        println!("stuck {}", stuck(u.recv(&mut [0; 4])).await);
    });
}

fn udp_refused_datagram_readiness_flags() {
    current_thread().block_on(async {
        let u = refused().await;
        println!(
            "{}",
            flags(
                u.ready(Interest::READABLE | Interest::WRITABLE | Interest::ERROR).await.unwrap()
            )
        );
    });
}

fn udp_refused_datagram_try_recv_wouldblock() {
    // tokio-rs/tokio#8082: the `try_` functions check READABLE only
    current_thread().block_on(async {
        let u = refused().await;
        println!("{}", shown(&u.try_recv(&mut [0; 4])));
        println!("{}", outcome(&u.try_recv_from(&mut [0; 4])));
        println!("{:?}", u.take_error().unwrap().map(|x| error(&x)));
    });
}

fn udp_refused_datagram_on_an_unconnected_socket_is_silent() {
    current_thread().block_on(async {
        let u = udp().await;
        println!("{}", shown(&u.send_to(b"x", h_closed()).await));
        println!("{}", stuck(u.recv_from(&mut [0; 4])).await);
        println!(
            "{:?} {}",
            u.take_error().unwrap().is_none(),
            shown(&u.send_to(b"x", h_closed()).await)
        );
    });
}

// Peeking.
fn udp_peek_does_not_consume() {
    multi_thread(1).block_on(async {
        let (a, b) = udp_pair().await;
        a.send(b"peekaboo").await.unwrap();
        let mut x = [0; 16];
        println!("{}", shown(&b.peek(&mut x).await));
        println!("{}", shown(&b.peek(&mut x[..3]).await));
        println!("{}", b.peek_from(&mut x).await.unwrap() == (8, a.local_addr().unwrap()));
        println!("{}", b.peek_sender().await.unwrap() == a.local_addr().unwrap());
        println!("{} {}", shown(&b.try_peek(&mut x)), shown(&b.try_peek_from(&mut x).map(|v| v.0)));
        println!("{}", b.try_peek_sender().unwrap() == a.local_addr().unwrap());
        println!("{}", shown(&b.recv(&mut x).await));
        println!("{} {}", shown(&b.try_peek(&mut x)), outcome(&b.try_peek_sender()));
    });
}

fn udp_poll_peek_and_poll_recv_append() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        a.send(b"abc").await.unwrap();
        let mut m = [MaybeUninit::<u8>::uninit(); 8];
        let mut rb = ReadBuf::uninit(&mut m);
        rb.put_slice(b"1");
        println!("{} {}", shown(&poll_fn(|cx| b.poll_peek(cx, &mut rb)).await), lossy(rb.filled()));
        println!("{} {}", shown(&poll_fn(|cx| b.poll_recv(cx, &mut rb)).await), lossy(rb.filled()));
        println!("{} {}", rb.remaining(), rb.initialized().len());
        a.send(b"defg").await.unwrap();
        println!(
            "{} {}",
            outcome(&poll_fn(|cx| b.poll_recv_from(cx, &mut rb)).await),
            lossy(rb.filled())
        );
        println!("{}", rb.remaining());
    });
}

// Buffers.
fn udp_recv_buf_appends_and_truncates_at_spare_capacity() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        for _ in 0..5 {
            a.send(&[5; 100]).await.unwrap();
        }
        let mut v = Vec::new();
        println!("{} {} {}", shown(&b.recv_buf(&mut v).await), v.len(), v.capacity());
        let mut v = Vec::with_capacity(200);
        v.extend_from_slice(b"head");
        println!("{} {} {}", shown(&b.recv_buf(&mut v).await), v.len(), v.capacity());
        println!("{} {}", shown(&b.recv_buf(&mut v).await), v.len());
        let mut bm = BytesMut::with_capacity(10);
        println!("{} {}", shown(&b.recv_buf_from(&mut bm).await.map(|x| x.0)), bm.len());
        let mut arr = [0; 7];
        println!("{}", shown(&b.recv_buf(&mut &mut arr[..]).await));
    });
}

fn udp_try_recv_buf_variants() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        let mut v: Vec<u8> = Vec::with_capacity(32);
        println!("{} {}", shown(&b.try_recv_buf(&mut v)), v.len());
        a.send(b"one").await.unwrap();
        b.readable().await.unwrap();
        println!("{} {}", shown(&b.try_recv_buf(&mut v)), lossy(&v));
        a.send(b"two").await.unwrap();
        b.readable().await.unwrap();
        // readiness of the first datagram may be all that readable() saw
        b.peek(&mut [0; 4]).await.unwrap();
        println!("{} {}", shown(&b.try_recv_buf_from(&mut v).map(|x| x.0)), lossy(&v));
        println!("{}", shown(&b.try_recv_buf(&mut v)));
    });
}

// Sharing and cancelling.
fn udp_two_receivers_get_one_datagram_each() {
    multi_thread(2).block_on(async {
        let (a, b) = udp_pair().await;
        let (a, b) = (Arc::new(a), Arc::new(b));
        let (b1, b2) = (b.clone(), b.clone());
        let t1 = tokio::spawn(async move {
            let mut x = [0; 4];
            b1.recv(&mut x).await.unwrap();
            x[0]
        });
        let t2 = tokio::spawn(async move {
            let mut x = [0; 4];
            b2.recv(&mut x).await.unwrap();
            x[0]
        });
        sleep(millis(20)).await;
        a.send(&[1]).await.unwrap();
        a.send(&[2]).await.unwrap();
        let mut v = vec![t1.await.unwrap(), t2.await.unwrap()];
        v.sort();
        println!("{v:?}");
    });
}

fn udp_cancelled_recv_loses_no_datagram() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        let mut got = vec![];
        for i in 0..40u8 {
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
            got.push(x[0]);
        }
        println!("{}", got == (0..40).collect::<Vec<u8>>());
    });
}

fn udp_two_pending_recvs_are_both_woken_and_one_gets_it() {
    multi_thread(2).block_on(async {
        let (a, b) = udp_pair().await;
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        let (mut x1, mut x2) = ([0; 4], [0; 4]);
        let mut f1 = Box::pin(b.recv(&mut x1));
        let mut f2 = Box::pin(b.recv(&mut x2));
        println!("{} {}", polled(poll_with(f1.as_mut(), &w1)), polled(poll_with(f2.as_mut(), &w2)));
        a.send(b"abc").await.unwrap();
        println!("{} {}", woken(&n1).await, woken(&n2).await);
        println!("{}", polled(poll_with(f2.as_mut(), &w2)));
        println!("{}", polled(poll_with(f1.as_mut(), &w1)));
    });
}

fn udp_poll_recv_ready_keeps_only_the_last_waker() {
    multi_thread(1).block_on(async {
        let (a, b) = udp_pair().await;
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        println!("{}", polled_outcome(b.poll_recv_ready(&mut Context::from_waker(&w1))));
        println!("{}", polled_outcome(b.poll_recv_ready(&mut Context::from_waker(&w2))));
        a.send(b"abc").await.unwrap();
        println!("{} {}", woken(&n2).await, n1.get());
        println!("{}", shown(&b.try_recv(&mut [0; 8])));
    });
}

fn udp_try_io_and_async_io() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        let mut ran = 0;
        println!(
            "{}",
            shown(&b.try_io(Interest::READABLE, || {
                ran += 1;
                Ok(())
            }))
        );
        println!("{ran}");
        a.send(b"abc").await.unwrap();
        println!(
            "{}",
            shown(
                &b.async_io(Interest::READABLE, || {
                    let mut x = [MaybeUninit::uninit(); 8];
                    socket2::SockRef::from(&b).recv(&mut x)
                })
                .await
            )
        );
        println!("{}", shown(&b.try_recv(&mut [0; 8])));
    });
}

fn udp_writable_and_send_ready() {
    current_thread().block_on(async {
        let (a, b) = udp_pair().await;
        println!("{}", outcome(&a.writable().await));
        println!("{}", flags(a.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap()));
        println!("{}", shown(&a.try_send(b"1")));
        println!("{}", shown(&a.try_send_to(b"2", b.local_addr().unwrap())));
        println!("{}", polled(a.poll_send(&mut Context::from_waker(Waker::noop()), b"333")));
        println!(
            "{}",
            polled(a.poll_send_to(
                &mut Context::from_waker(Waker::noop()),
                b"4444",
                b.local_addr().unwrap()
            ))
        );
        for _ in 0..4 {
            println!("{}", shown(&b.recv(&mut [0; 8]).await));
        }
    });
}

// Options.
fn udp_broadcast_needs_the_option() {
    current_thread().block_on(async {
        let a = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        println!("{}", shown(&a.broadcast()));
        println!("{}", shown(&a.send_to(b"x", "127.255.255.255:9").await));
        a.set_broadcast(true).unwrap();
        println!("{}", shown(&a.broadcast()));
        println!("{}", shown(&a.send_to(b"x", "127.255.255.255:9").await));
    });
}

fn udp_ttl_and_multicast_options() {
    current_thread().block_on(async {
        let a = udp().await;
        for v in [1u32, 255, 0, 256] {
            println!("ttl {v} {} {}", outcome(&a.set_ttl(v)), shown(&a.ttl()));
        }
        println!("{} {}", shown(&a.multicast_loop_v4()), shown(&a.multicast_ttl_v4()));
        for v in [0u32, 255, 256, u32::MAX] {
            println!(
                "mttl {v} {} {}",
                outcome(&a.set_multicast_ttl_v4(v)),
                shown(&a.multicast_ttl_v4())
            );
        }
        println!("{} {}", outcome(&a.set_multicast_loop_v4(false)), shown(&a.multicast_loop_v4()));
        for v in [0x10u32, 0xff, 0x1ff] {
            println!("tos {v} {} {}", outcome(&a.set_tos_v4(v)), shown(&a.tos_v4()));
        }
        println!("{}", shown(&a.device()));
    });
}

fn udp_multicast_membership_errors() {
    current_thread().block_on(async {
        let a = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let lo = "127.0.0.1".parse().unwrap();
        println!("{}", shown(&a.join_multicast_v4("10.0.0.1".parse().unwrap(), lo)));
        println!("{}", shown(&a.leave_multicast_v4("239.1.2.3".parse().unwrap(), lo)));
        println!("{}", shown(&a.join_multicast_v4("239.1.2.3".parse().unwrap(), lo)));
        println!("{}", shown(&a.join_multicast_v4("239.1.2.3".parse().unwrap(), lo)));
        println!("{}", shown(&a.leave_multicast_v4("239.1.2.3".parse().unwrap(), lo)));
    });
}

fn udp_from_std_and_into_std() {
    let rt = current_thread();
    let st = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    {
        let _g = rt.enter();
        let st = st.try_clone().unwrap();
        println!(
            "{}",
            panics(|| UdpSocket::from_std(st))
                .contains("Registering a blocking socket with the tokio runtime is unsupported")
        );
    }
    st.set_nonblocking(true).unwrap();
    rt.block_on(async {
        let u = UdpSocket::from_std(st).unwrap();
        println!("{}", shown(&u.send_to(b"me", u.local_addr().unwrap()).await));
        println!("{}", shown(&u.peek(&mut [0; 4]).await));
        let st = u.into_std().unwrap();
        println!("{} {}", is_nonblocking(st.as_raw_fd()), shown(&st.recv(&mut [0; 4])));
        println!("{}", shown(&st.recv(&mut [0; 4])));
    });
}

fn udp_socket_flags() {
    current_thread().block_on(async {
        let a = udp().await;
        println!(
            "{} {} {}",
            is_nonblocking(a.as_raw_fd()),
            is_cloexec(a.as_raw_fd()),
            sockopt(a.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR)
        );
    });
}

fn udp_framed_lines_over_datagrams() {
    use tokio_util::codec::LinesCodec;
    use tokio_util::udp::UdpFramed;
    current_thread().block_on(async {
        let (a, b) = (udp().await, udp().await);
        let to = b.local_addr().unwrap();
        a.send_to(b"one\ntwo\nthr", to).await.unwrap();
        a.send_to(b"ee\n", to).await.unwrap();
        let mut f = UdpFramed::new(b, LinesCodec::new());
        for _ in 0..4 {
            println!("{:?}", f.next().await.unwrap().map(|x| x.0).map_err(|x| x.to_string()));
        }
    });
}

fn udp_use_after_its_runtime_was_dropped() {
    let rt = current_thread();
    let (a, b) = rt.block_on(udp_pair());
    let _ = rt.block_on(a.send(b"x"));
    drop(rt);
    let other = current_thread();
    other.block_on(async {
        println!("{}", described(&a.send(b"x").await));
        println!("{}", described(&b.recv(&mut [0; 4]).await));
        println!("{}", described(&b.readable().await));
        println!("{}", outcome(&a.local_addr()));
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("udp_recv_from_reports_the_sender", udp_recv_from_reports_the_sender),
    (
        "udp_short_buffer_truncates_and_drops_the_rest",
        udp_short_buffer_truncates_and_drops_the_rest,
    ),
    ("udp_zero_length_datagram", udp_zero_length_datagram),
    (
        "udp_zero_length_buffer_takes_a_whole_datagram",
        udp_zero_length_buffer_takes_a_whole_datagram,
    ),
    (
        "udp_zero_length_buffer_waits_when_nothing_is_there",
        udp_zero_length_buffer_waits_when_nothing_is_there,
    ),
    ("udp_oversize_datagram_is_refused", udp_oversize_datagram_is_refused),
    ("udp_send_without_peer", udp_send_without_peer),
    ("udp_send_to_port_zero_and_other_family", udp_send_to_port_zero_and_other_family),
    ("udp_no_addresses", udp_no_addresses),
    ("udp_send_to_uses_only_the_first_address", udp_send_to_uses_only_the_first_address),
    ("udp_bind_twice_and_foreign", udp_bind_twice_and_foreign),
    ("udp_connected_socket_ignores_strangers", udp_connected_socket_ignores_strangers),
    ("udp_connect_again_changes_the_peer", udp_connect_again_changes_the_peer),
    ("udp_order_is_kept_on_loopback", udp_order_is_kept_on_loopback),
    ("udp_refused_datagram_is_reported_by_recv", udp_refused_datagram_is_reported_by_recv),
    (
        "udp_pending_recv_is_woken_by_a_refused_datagram",
        udp_pending_recv_is_woken_by_a_refused_datagram,
    ),
    (
        "udp_refused_datagram_is_reported_by_recv_from_and_recv_buf",
        udp_refused_datagram_is_reported_by_recv_from_and_recv_buf,
    ),
    ("udp_refused_datagram_is_reported_by_peek", udp_refused_datagram_is_reported_by_peek),
    (
        "udp_refused_datagram_is_reported_by_send_once",
        udp_refused_datagram_is_reported_by_send_once,
    ),
    ("udp_refused_datagram_take_error_consumes_it", udp_refused_datagram_take_error_consumes_it),
    ("udp_refused_datagram_readiness_flags", udp_refused_datagram_readiness_flags),
    ("udp_refused_datagram_try_recv_wouldblock", udp_refused_datagram_try_recv_wouldblock),
    (
        "udp_refused_datagram_on_an_unconnected_socket_is_silent",
        udp_refused_datagram_on_an_unconnected_socket_is_silent,
    ),
    ("udp_peek_does_not_consume", udp_peek_does_not_consume),
    ("udp_poll_peek_and_poll_recv_append", udp_poll_peek_and_poll_recv_append),
    (
        "udp_recv_buf_appends_and_truncates_at_spare_capacity",
        udp_recv_buf_appends_and_truncates_at_spare_capacity,
    ),
    ("udp_try_recv_buf_variants", udp_try_recv_buf_variants),
    ("udp_two_receivers_get_one_datagram_each", udp_two_receivers_get_one_datagram_each),
    ("udp_cancelled_recv_loses_no_datagram", udp_cancelled_recv_loses_no_datagram),
    (
        "udp_two_pending_recvs_are_both_woken_and_one_gets_it",
        udp_two_pending_recvs_are_both_woken_and_one_gets_it,
    ),
    (
        "udp_poll_recv_ready_keeps_only_the_last_waker",
        udp_poll_recv_ready_keeps_only_the_last_waker,
    ),
    ("udp_try_io_and_async_io", udp_try_io_and_async_io),
    ("udp_writable_and_send_ready", udp_writable_and_send_ready),
    ("udp_broadcast_needs_the_option", udp_broadcast_needs_the_option),
    ("udp_ttl_and_multicast_options", udp_ttl_and_multicast_options),
    ("udp_multicast_membership_errors", udp_multicast_membership_errors),
    ("udp_from_std_and_into_std", udp_from_std_and_into_std),
    ("udp_socket_flags", udp_socket_flags),
    ("udp_framed_lines_over_datagrams", udp_framed_lines_over_datagrams),
    ("udp_use_after_its_runtime_was_dropped", udp_use_after_its_runtime_was_dropped),
];
