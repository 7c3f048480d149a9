//! Sockets and look-ups with no runtime, with one that has ended, and with several.

use crate::probe::{sockets::*, *};
use futures_util::future::FutureExt;
use std::future::Future;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{
    TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use tokio::net::lookup_host;
fn no_io() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

// Without a runtime, or one without i/o.
fn without_a_runtime_bind_panics() {
    println!("{}", panics(|| TcpListener::bind("127.0.0.1:0").now_or_never()));
    println!("{}", panics(|| TcpStream::connect(closed_addr()).now_or_never()));
    println!("{}", panics(|| UdpSocket::bind("127.0.0.1:0").now_or_never()));
    println!("{}", panics(|| UnixListener::bind("s")));
    println!("{}", panics(|| UnixStream::pair()));
    println!("{}", panics(|| UnixDatagram::unbound()));
    println!("{}", panics(|| tokio::net::unix::pipe::pipe()));
}

fn without_enable_io_bind_panics() {
    let rt = no_io();
    println!("{}", panics(|| rt.block_on(TcpListener::bind("127.0.0.1:0"))));
    println!("{}", panics(|| rt.block_on(UdpSocket::bind("127.0.0.1:0"))));
    println!("{}", panics(|| rt.block_on(async { UnixStream::pair() })));
    println!("{}", panics(|| rt.block_on(async { tokio::net::unix::pipe::pipe() })));
}

fn without_enable_io_a_failed_bind_is_an_error_not_a_panic() {
    let rt = no_io();
    let l = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", outcome(&rt.block_on(TcpListener::bind(l.local_addr().unwrap()))));
    println!("{}", outcome(&rt.block_on(TcpListener::bind("nonsense"))));
}

fn without_a_runtime_from_std_panics() {
    let l = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    l.set_nonblocking(true).unwrap();
    println!("{}", panics(|| TcpListener::from_std(l)));
}

fn entering_a_handle_is_enough_to_register() {
    let rt = multi_thread(1);
    let h = rt.handle().clone();
    let g = h.enter();
    let (mut a, mut b) = UnixStream::pair().unwrap();
    drop(g);
    println!(
        "{}",
        rt.block_on(async move {
            a.write_all(b"x").await.unwrap();
            shown(&b.read(&mut [0; 2]).await)
        })
    );
}

// Runtimes that ended, other runtimes.
fn stream_used_after_its_runtime_was_dropped() {
    let rt = current_thread();
    let (mut a, b) = rt.block_on(tcp_pair());
    drop(rt);
    current_thread().block_on(async {
        println!("{}", described(&a.read(&mut [0; 4]).await));
        println!("{}", described(&a.write(b"x").await));
        println!("{}", described(&a.readable().await));
        println!("{}", described(&a.peek(&mut [0; 4]).await));
        println!("{}", outcome(&a.shutdown().await));
        println!("{} {}", outcome(&a.local_addr()), outcome(&a.nodelay()));
    });
    println!(
        "drop {}",
        panics(move || {
            drop(a);
            drop(b);
        })
    );
}

fn listener_used_after_its_runtime_was_dropped() {
    let rt = multi_thread(2);
    let l = rt.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let a = l.local_addr().unwrap();
    drop(rt);
    println!("still listening {}", outcome(&std::net::TcpStream::connect(a)));
    println!("{}", described(&current_thread().block_on(l.accept()).map(|_| ())));
    drop(l);
    println!("{}", outcome(&std::net::TcpStream::connect(a)));
}

fn into_std_after_its_runtime_was_dropped() {
    let rt = current_thread();
    let (a, _b) = rt.block_on(tcp_pair());
    drop(rt);
    let x = a.into_std();
    println!("{}", outcome(&x));
}

fn pending_read_ends_when_its_runtime_is_dropped() {
    let r1 = multi_thread(1);
    let (mut a, _b) = r1.block_on(tcp_pair());
    let r2 = multi_thread(1);
    let t = r2.spawn(async move { described(&a.read(&mut [0; 4]).await) });
    std::thread::sleep(millis(50));
    println!("{}", t.is_finished());
    drop(r1);
    println!("{}", r2.block_on(t).unwrap());
}

fn pending_accept_ends_when_its_runtime_is_dropped() {
    let r1 = multi_thread(1);
    let l = r1.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let r2 = current_thread();
    let t = std::thread::spawn(move || {
        r2.block_on(async move { described(&l.accept().await.map(|_| ())) })
    });
    std::thread::sleep(millis(50));
    r1.shutdown_background();
    println!("{}", t.join().unwrap());
}

fn bind_in_a_task_of_a_runtime_being_shut_down() {
    // a task dropped at shutdown registers in its destructor
    struct D(std::sync::mpsc::Sender<String>);
    impl Drop for D {
        fn drop(&mut self) {
            let _ = self.0.send(match UnixStream::pair() {
                Ok(_) => "Ok".into(),
                Err(x) => format!("{} {x}", error(&x)),
            });
        }
    }
    let rt = current_thread();
    let (tx, rx) = std::sync::mpsc::channel();
    rt.block_on(async {
        tokio::spawn(async move {
            let _d = D(tx);
            std::future::pending::<()>().await
        });
        tokio::task::yield_now().await;
    });
    quiet();
    drop(rt);
    println!("{:?}", rx.recv());
}

fn stream_of_a_driven_runtime_works_in_another() {
    let r1 = multi_thread(2);
    let (mut a, mut b) = r1.block_on(tcp_pair());
    let r2 = current_thread();
    println!(
        "{}",
        r2.block_on(async {
            b.write_all(b"cross").await.unwrap();
            let mut x = [0; 5];
            a.read_exact(&mut x).await.unwrap();
            lossy(&x)
        })
    );
    // with no runtime entered at all
    println!(
        "{}",
        futures_lite_block(async {
            b.write_all(b"bare!").await.unwrap();
            let mut x = [0; 5];
            a.read_exact(&mut x).await.unwrap();
            lossy(&x)
        })
    );
}

fn stream_of_a_runtime_that_does_not_run_waits() {
    let r1 = current_thread();
    let (mut a, mut b) = r1.block_on(tcp_pair());
    let r2 = current_thread();
    r2.block_on(async {
        println!("write {}", shown(&b.write(b"x").await));
        println!("read stuck {}", stuck(a.read(&mut [0; 4])).await);
    });
    println!("{}", r1.block_on(async { shown(&a.read(&mut [0; 4]).await) }));
}

/// Blocks on a future without using Tokio.
fn futures_lite_block<F: Future>(f: F) -> F::Output {
    struct T(std::thread::Thread);
    impl Wake for T {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let w: Waker = Arc::new(T(std::thread::current())).into();
    let mut f = pin!(f);
    loop {
        match f.as_mut().poll(&mut Context::from_waker(&w)) {
            Poll::Ready(v) => return v,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn stream_polled_from_a_plain_thread() {
    let rt = multi_thread(1);
    let (mut a, mut b) = rt.block_on(tcp_pair());
    let t = std::thread::spawn(move || {
        futures_lite_block(async move {
            let mut v = vec![];
            a.read_to_end(&mut v).await.unwrap();
            lossy(&v)
        })
    });
    rt.block_on(async move {
        b.write_all(b"plain ").await.unwrap();
        sleep(millis(20)).await;
        b.write_all(b"thread").await.unwrap();
    });
    println!("{}", t.join().unwrap());
}

fn connect_in_a_local_set_and_in_spawn_blocking() {
    let rt = multi_thread(2);
    let (_l, a) = rt.block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let a = l.local_addr().unwrap();
        (l, a)
    });
    let set = tokio::task::LocalSet::new();
    println!(
        "{}",
        outcome(&set.block_on(&rt, async move {
            tokio::task::spawn_local(TcpStream::connect(a)).await.unwrap()
        }))
    );
    let h = rt.handle().clone();
    println!(
        "{}",
        outcome(&rt.block_on(async move {
            tokio::task::spawn_blocking(move || h.block_on(TcpStream::connect(a))).await.unwrap()
        }))
    );
}

fn cooperative_reads_let_others_run() {
    // a task that always finds data must still yield
    current_thread().block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        let n = Arc::new(AtomicUsize::new(0));
        let m = n.clone();
        let t = tokio::spawn(async move {
            loop {
                m.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
        for _ in 0..2000 {
            a.send(b"x").await.unwrap();
            b.recv(&mut [0; 2]).await.unwrap();
        }
        println!("{}", n.load(Ordering::SeqCst) > 5);
        t.abort();
        println!("{}", t.await.unwrap_err().is_cancelled());
    });
}

// No descriptors left, and closed ones.
fn emfile_on_bind_and_connect() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let a = l.local_addr().unwrap();
        let old = no_more_fds();
        println!("{}", outcome(&TcpListener::bind("127.0.0.1:0").await));
        println!("{}", outcome(&TcpStream::connect(a).await));
        println!("{}", outcome(&UdpSocket::bind("127.0.0.1:0").await));
        println!("{}", outcome(&UnixStream::pair()));
        println!("{}", outcome(&UnixListener::bind("s")));
        println!("{}", outcome(&UnixDatagram::unbound()));
        println!("{}", outcome(&tokio::net::unix::pipe::pipe()));
        println!("{}", outcome(&TcpSocket::new_v4()));
        println!("{}", std::path::Path::new("s").exists());
        restore_fds(old);
        println!("{}", outcome(&TcpStream::connect(a).await));
    });
}

fn emfile_on_accept_keeps_the_connection() {
    current_thread().block_on(async {
        let l = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let c = TcpStream::connect(l.local_addr().unwrap()).await.unwrap();
        let old = no_more_fds();
        println!("{} {}", outcome(&l.accept().await), outcome(&l.accept().await));
        restore_fds(old);
        println!("{}", l.accept().await.unwrap().1 == c.local_addr().unwrap());
    });
}

fn emfile_on_unix_accept_keeps_the_connection() {
    multi_thread(1).block_on(async {
        let l = UnixListener::bind("s").unwrap();
        let mut c = UnixStream::connect("s").await.unwrap();
        let old = no_more_fds();
        println!("{} {}", outcome(&l.accept().await), outcome(&l.accept().await));
        restore_fds(old);
        let (mut a, _) = l.accept().await.unwrap();
        c.write_all(b"x").await.unwrap();
        println!("{}", shown(&a.read(&mut [0; 4]).await));
    });
}

fn emfile_on_building_a_runtime() {
    let old = no_more_fds();
    println!("{}", outcome(&Builder::new_current_thread().enable_io().build()));
    println!("{}", outcome(&Builder::new_multi_thread().worker_threads(1).enable_io().build()));
    println!("without io {}", outcome(&Builder::new_current_thread().enable_time().build()));
    restore_fds(old);
    println!("{}", outcome(&Builder::new_current_thread().enable_io().build()));
}

fn descriptors_are_given_back() {
    current_thread().block_on(async {
        let n = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = n();
        for _ in 0..50 {
            let (mut a, _b) = tcp_pair().await;
            a.write_all(b"x").await.unwrap();
            let (u, _v) = UnixStream::pair().unwrap();
            let _ = u.into_split();
        }
        println!("{}", n() == before);
    });
    let before = std::fs::read_dir("/proc/self/fd").unwrap().count();
    for _ in 0..5 {
        multi_thread(2).block_on(async {
            tcp_pair().await;
        });
    }
    println!("{}", std::fs::read_dir("/proc/self/fd").unwrap().count() == before);
}

fn closed_descriptor_read_and_write_are_ebadf() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.write_all(b"x").await.unwrap();
        a.readable().await.unwrap();
        // SAFETY: the call takes no pointers; `a` is forgotten below, so it does not close the
        // number again.
        unsafe { libc::close(a.as_raw_fd()) };
        println!("{}", shown(&a.read(&mut [0; 4]).await));
        println!("{}", shown(&a.write(b"y").await));
        println!("{} {}", shown(&a.try_read(&mut [0; 4])), outcome(&a.peer_addr()));
        println!("{}", outcome(&a.shutdown().await));
        println!("{}", outcome(&a.set_nodelay(true)));
        println!("peer {}", shown(&b.read(&mut [0; 4]).await));
        std::mem::forget(a);
    });
}

fn closed_descriptor_into_std_fails() {
    current_thread().block_on(async {
        let (a, _b) = UnixStream::pair().unwrap();
        let fd = a.as_raw_fd();
        // /dev/null takes its place: it is not in the poller
        let nul = devnull();
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::dup2(nul.as_raw_fd(), fd) };
        println!("{}", outcome(&a.into_std()));
    });
}

fn descriptor_replaced_by_dev_null_is_not_a_socket() {
    current_thread().block_on(async {
        let (mut a, mut b) = tcp_pair().await;
        b.write_all(b"x").await.unwrap();
        a.readable().await.unwrap();
        let nul = devnull();
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::dup2(nul.as_raw_fd(), a.as_raw_fd()) };
        println!("{}", shown(&a.read(&mut [0; 4]).await));
        println!("{}", shown(&a.write(b"y").await));
        println!("{}", outcome(&a.local_addr()));
        println!("{}", outcome(&a.shutdown().await));
        println!("drop {}", panics(move || drop(a)));
    });
}

fn descriptor_duplicated_keeps_the_connection_open() {
    current_thread().block_on(async {
        let (a, mut b) = tcp_pair().await;
        let dup = std::os::fd::AsFd::as_fd(&a).try_clone_to_owned().unwrap();
        drop(a);
        println!("stuck {}", stuck(b.read(&mut [0; 4])).await);
        drop(dup);
        println!("{}", shown(&b.read(&mut [0; 4]).await));
    });
}

fn descriptor_number_reused_at_once_gets_its_own_events() {
    current_thread().block_on(async {
        for i in 0..20u8 {
            let (a, b) = UnixStream::pair().unwrap();
            let _fd = a.as_raw_fd();
            {
                let (_n, w) = counter();
                let mut f = Box::pin(a.readable());
                let _ = poll_with(f.as_mut(), &w);
            }
            drop(a);
            drop(b);
            let (mut c, mut d) = UnixStream::pair().unwrap();
            d.write_all(&[i]).await.unwrap();
            let mut x = [0; 2];
            if c.read(&mut x).await.unwrap() != 1 || x[0] != i {
                println!("wrong");
            }
            println_if(stuck_short(c.read(&mut x)).await);
        }
        println!("done");
    });
}

async fn stuck_short<F: Future>(f: F) -> bool {
    timeout(millis(5), f).await.is_err()
}

fn println_if(ok: bool) {
    if !ok {
        println!("not stuck");
    }
}

// `lookup_host`.
fn lookup_of_addresses() {
    current_thread().block_on(async {
        println!("{:?}", lookup_host("127.0.0.1:80").await.unwrap().collect::<Vec<_>>());
        println!("{:?}", lookup_host("[::1]:8080").await.unwrap().collect::<Vec<_>>());
        println!("{:?}", lookup_host(("127.0.0.1", 5)).await.unwrap().collect::<Vec<_>>());
        println!("{:?}", lookup_host((String::from("::1"), 6)).await.unwrap().collect::<Vec<_>>());
        println!("{:?}", lookup_host(("::ffff:1.2.3.4", 7)).await.unwrap().collect::<Vec<_>>());
        let v: Vec<SocketAddr> = vec!["1.2.3.4:5".parse().unwrap(), "6.7.8.9:10".parse().unwrap()];
        println!("{:?}", lookup_host(&v[..]).await.unwrap().collect::<Vec<_>>());
        println!("{:?}", lookup_host(String::from("0.0.0.0:0")).await.unwrap().collect::<Vec<_>>());
    });
}

fn lookup_of_nonsense() {
    multi_thread(1).block_on(async {
        for h in [
            "",
            ":",
            "127.0.0.1",
            "[::1]",
            "::1:80x",
            "localhost",
            "localhost:",
            "localhost:65536",
            "a\0b:80",
        ] {
            println!("{h:?} {}", described(&lookup_host(h).await.map(|_| ())));
        }
    });
}

fn lookup_of_localhost() {
    multi_thread(2).block_on(async {
        let v: Vec<_> = lookup_host("localhost:1234").await.unwrap().collect();
        println!(
            "{} {}",
            v.contains(&"127.0.0.1:1234".parse().unwrap()),
            v.iter().all(|a| a.ip().is_loopback() && a.port() == 1234)
        );
        let v: Vec<_> = lookup_host(("localhost", 77)).await.unwrap().collect();
        println!("{}", v.iter().all(|a| a.port() == 77));
    });
}

fn lookup_of_an_address_is_ready_at_once_without_a_runtime() {
    println!("{:?}", lookup_host("127.0.0.1:80").now_or_never().map(|x| x.unwrap().count()));
    println!("{:?}", lookup_host(("10.0.0.1", 80)).now_or_never().map(|x| x.unwrap().count()));
}

fn lookup_of_a_name_without_a_runtime_panics() {
    println!("{}", panics(|| lookup_host("localhost:80").now_or_never()));
}

fn lookup_of_a_name_that_was_polled_once() {
    current_thread().block_on(async {
        let mut f = pin!(lookup_host("localhost:80"));
        let found = match once(f.as_mut()).await {
            Poll::Ready(found) => found,
            Poll::Pending => f.await,
        };
        println!("{}", found.is_ok());
    });
}

fn lookup_cancelled_is_harmless() {
    let rt = current_thread();
    rt.block_on(async {
        for _ in 0..5 {
            let mut f = Box::pin(lookup_host("localhost:80"));
            let _ = once(f.as_mut()).await;
        }
        println!("{}", lookup_host("localhost:80").await.is_ok());
    });
}

fn connect_by_name_works() {
    multi_thread(1).block_on(async {
        let l = TcpListener::bind(("localhost", 0)).await.unwrap();
        let p = l.local_addr().unwrap().port();
        println!("{}", outcome(&TcpStream::connect(("localhost", p)).await));
        println!("{}", outcome(&TcpStream::connect(format!("localhost:{p}")).await));
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("without_a_runtime_bind_panics", without_a_runtime_bind_panics),
    ("without_enable_io_bind_panics", without_enable_io_bind_panics),
    (
        "without_enable_io_a_failed_bind_is_an_error_not_a_panic",
        without_enable_io_a_failed_bind_is_an_error_not_a_panic,
    ),
    ("without_a_runtime_from_std_panics", without_a_runtime_from_std_panics),
    ("entering_a_handle_is_enough_to_register", entering_a_handle_is_enough_to_register),
    ("stream_used_after_its_runtime_was_dropped", stream_used_after_its_runtime_was_dropped),
    ("listener_used_after_its_runtime_was_dropped", listener_used_after_its_runtime_was_dropped),
    ("into_std_after_its_runtime_was_dropped", into_std_after_its_runtime_was_dropped),
    (
        "pending_read_ends_when_its_runtime_is_dropped",
        pending_read_ends_when_its_runtime_is_dropped,
    ),
    (
        "pending_accept_ends_when_its_runtime_is_dropped",
        pending_accept_ends_when_its_runtime_is_dropped,
    ),
    ("bind_in_a_task_of_a_runtime_being_shut_down", bind_in_a_task_of_a_runtime_being_shut_down),
    ("stream_of_a_driven_runtime_works_in_another", stream_of_a_driven_runtime_works_in_another),
    ("stream_of_a_runtime_that_does_not_run_waits", stream_of_a_runtime_that_does_not_run_waits),
    ("stream_polled_from_a_plain_thread", stream_polled_from_a_plain_thread),
    ("connect_in_a_local_set_and_in_spawn_blocking", connect_in_a_local_set_and_in_spawn_blocking),
    ("cooperative_reads_let_others_run", cooperative_reads_let_others_run),
    ("emfile_on_bind_and_connect", emfile_on_bind_and_connect),
    ("emfile_on_accept_keeps_the_connection", emfile_on_accept_keeps_the_connection),
    ("emfile_on_unix_accept_keeps_the_connection", emfile_on_unix_accept_keeps_the_connection),
    ("emfile_on_building_a_runtime", emfile_on_building_a_runtime),
    ("descriptors_are_given_back", descriptors_are_given_back),
    ("closed_descriptor_read_and_write_are_ebadf", closed_descriptor_read_and_write_are_ebadf),
    ("closed_descriptor_into_std_fails", closed_descriptor_into_std_fails),
    (
        "descriptor_replaced_by_dev_null_is_not_a_socket",
        descriptor_replaced_by_dev_null_is_not_a_socket,
    ),
    (
        "descriptor_duplicated_keeps_the_connection_open",
        descriptor_duplicated_keeps_the_connection_open,
    ),
    (
        "descriptor_number_reused_at_once_gets_its_own_events",
        descriptor_number_reused_at_once_gets_its_own_events,
    ),
    ("lookup_of_addresses", lookup_of_addresses),
    ("lookup_of_nonsense", lookup_of_nonsense),
    ("lookup_of_localhost", lookup_of_localhost),
    (
        "lookup_of_an_address_is_ready_at_once_without_a_runtime",
        lookup_of_an_address_is_ready_at_once_without_a_runtime,
    ),
    ("lookup_of_a_name_without_a_runtime_panics", lookup_of_a_name_without_a_runtime_panics),
    ("lookup_of_a_name_that_was_polled_once", lookup_of_a_name_that_was_polled_once),
    ("lookup_cancelled_is_harmless", lookup_cancelled_is_harmless),
    ("connect_by_name_works", connect_by_name_works),
];
