//! `AsyncFd`.

use crate::probe::{sockets::*, *};
use futures_util::future::{FutureExt, poll_fn};
use std::fmt::Debug;
use std::io::{self};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::pin::pin;
use std::task::{Context, Poll};
use tokio::io::{Interest, Ready};
use tokio::runtime::Builder;
use tokio::time::sleep;

use std::io::{Read, Write};

use tokio::io::unix::AsyncFd;
/// A descriptor that closes nothing.
#[derive(Debug, PartialEq)]
struct Fd(RawFd);
impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}
use std::os::unix::net::UnixStream as Std;
fn pair() -> (Std, Std) {
    let (a, b) = Std::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}

// SAFETY: the descriptor is open and has no other owner.
fn eventfd(n: u32, f: i32) -> OwnedFd {
    unsafe { OwnedFd::from_raw_fd(libc::eventfd(n, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC | f)) }
}

fn rd64(fd: &impl AsRawFd) -> io::Result<u64> {
    let mut v = 0u64;
    let n = unsafe { libc::read(fd.as_raw_fd(), &mut v as *mut _ as *mut _, 8) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(v) }
}

// SAFETY: what the pointers lead to is valid for the call.
fn wr64(fd: &impl AsRawFd, v: u64) -> io::Result<isize> {
    let n = unsafe { libc::write(fd.as_raw_fd(), &v as *const _ as *const _, 8) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n) }
}

fn asyncfd_regular_file_is_not_permitted() {
    current_thread().block_on(async {
        let f = std::fs::File::create("f").unwrap();
        println!("{}", outcome(&AsyncFd::new(f)));
        println!("{}", outcome(&AsyncFd::new(std::fs::File::open(".").unwrap())));
        println!("{}", outcome(&AsyncFd::with_interest(devnull(), Interest::READABLE)));
    });
}

fn asyncfd_bad_descriptors() {
    current_thread().block_on(async {
        println!("{}", outcome(&AsyncFd::new(Fd(-1))));
        println!("{}", outcome(&AsyncFd::new(Fd(9999))));
        let f = eventfd(0, 0);
        let n = f.as_raw_fd();
        drop(f);
        println!("{}", outcome(&AsyncFd::new(Fd(n))));
    });
}

fn asyncfd_try_new_gives_the_inner_back() {
    current_thread().block_on(async {
        let x = AsyncFd::try_new(Fd(-1)).unwrap_err();
        println!("{x}");
        println!("{:?}", std::error::Error::source(&x).is_some());
        let (fd, cause) = x.into_parts();
        println!("{fd:?} {}", error(&cause));
        let x: io::Error =
            AsyncFd::try_with_interest(Fd(-1), Interest::WRITABLE).unwrap_err().into();
        println!("{}", error(&x));
        // SAFETY: -1 is no descriptor, so the registration fails and there is none that must stay
        // open.
        println!("{}", unsafe { AsyncFd::register(Fd(-1)) }.is_err());
    });
}

fn asyncfd_same_descriptor_twice() {
    current_thread().block_on(async {
        let (a, _b) = pair();
        let x = AsyncFd::new(Fd(a.as_raw_fd())).unwrap();
        println!("{}", outcome(&AsyncFd::new(Fd(a.as_raw_fd()))));
        drop(x);
        println!("after drop {}", outcome(&AsyncFd::new(Fd(a.as_raw_fd()))));
        // a duplicate is another descriptor
        let d = a.try_clone().unwrap();
        let _x = AsyncFd::new(Fd(a.as_raw_fd())).unwrap();
        println!("dup {}", outcome(&AsyncFd::new(d)));
    });
}

fn asyncfd_without_runtime_or_io() {
    let (a, b) = pair();
    println!("{}", panics(|| AsyncFd::new(Fd(a.as_raw_fd()))));
    let rt = Builder::new_current_thread().build().unwrap();
    println!("{}", panics(|| rt.block_on(async { AsyncFd::new(Fd(a.as_raw_fd())) })));
    drop(b);
}

fn asyncfd_readable_until_cleared() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        println!("stuck {}", stuck(a.readable()).await);
        b.write_all(b"x").unwrap();
        let mut g = a.readable().await.unwrap();
        println!("{}", flags(g.ready()));
        g.retain_ready();
        println!("{}", flags(g.ready()));
        println!("again {}", a.readable().now_or_never().is_some());
        g.clear_ready();
        println!("{}", flags(g.ready()));
        println!("cleared {}", a.readable().now_or_never().is_some());
        println!("stuck {}", stuck(a.readable()).await);
        b.write_all(b"y").unwrap();
        println!("{}", flags(a.readable().await.unwrap().ready()));
    });
}

fn asyncfd_dropping_a_guard_retains() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        b.write_all(b"x").unwrap();
        drop(a.readable().await.unwrap());
        println!("{}", a.readable().now_or_never().is_some());
    });
}

fn asyncfd_clear_ready_does_not_clear_an_event_that_came_since() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        b.write_all(b"x").unwrap();
        let mut g = a.readable().await.unwrap();
        b.write_all(b"y").unwrap();
        // let the driver see it
        for _ in 0..3 {
            sleep(millis(5)).await;
        }
        g.clear_ready();
        println!("{}", a.readable().now_or_never().is_some());
    });
}

fn asyncfd_clear_ready_matching_clears_one_direction() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        b.write_all(b"x").unwrap();
        a.readable().await.unwrap().retain_ready();
        let mut g = a.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap();
        println!("{}", flags(g.ready()));
        g.clear_ready_matching(Ready::READABLE);
        println!("{}", flags(g.ready()));
        println!(
            "{} {}",
            a.readable().now_or_never().is_some(),
            a.writable().now_or_never().is_some()
        );
        g.clear_ready_matching(Ready::WRITABLE);
        println!("{}", flags(g.ready()));
        println!(
            "{} {}",
            a.readable().now_or_never().is_some(),
            a.writable().now_or_never().is_some()
        );
    });
}

fn asyncfd_clear_of_writable_leaves_readable() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        b.write_all(b"x").unwrap();
        a.readable().await.unwrap().retain_ready();
        a.writable().await.unwrap().clear_ready();
        println!(
            "{} {}",
            a.readable().now_or_never().is_some(),
            a.writable().now_or_never().is_some()
        );
    });
}

fn asyncfd_guard_try_io() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        b.write_all(b"abc").unwrap();
        let mut g = a.readable().await.unwrap();
        let mut x = [0; 8];
        println!("{:?}", g.try_io(|i| i.get_ref().read(&mut x)).map(|v| shown(&v)).is_ok());
        println!("still {}", flags(g.ready()));
        let y = g.try_io(|i| i.get_ref().read(&mut x));
        println!("{:?}", y.is_err());
        println!("{:?}", y.unwrap_err());
        println!("now {}", flags(g.ready()));
        println!(
            "other errors pass {:?}",
            g.try_io(|_| Err::<(), _>(io::Error::other("mine")))
                .unwrap()
                .map_err(|x| x.to_string())
        );
        println!("{}", a.readable().now_or_never().is_some());
    });
}

fn asyncfd_try_io_without_guard() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let mut a = AsyncFd::new(a).unwrap();
        let mut ran = 0;
        println!(
            "{}",
            shown(&a.try_io(Interest::READABLE, |_| {
                ran += 1;
                Ok(())
            }))
        );
        println!("{ran}");
        b.write_all(b"abc").unwrap();
        a.readable().await.unwrap().retain_ready();
        let mut x = [0; 8];
        println!("{}", shown(&a.try_io(Interest::READABLE, |i| (&*i).read(&mut x))));
        println!("{}", shown(&a.try_io_mut(Interest::READABLE, |i| i.read(&mut x))));
        println!(
            "{}",
            shown(&a.try_io_mut(Interest::READABLE, |i| {
                ran += 1;
                i.read(&mut x)
            }))
        );
        println!("{ran}");
    });
}

fn asyncfd_async_io() {
    multi_thread(2).block_on(async {
        let (a, mut b) = pair();
        let mut a = AsyncFd::new(a).unwrap();
        println!("{}", shown(&a.async_io(Interest::WRITABLE, |mut i| i.write(b"hello")).await));
        let mut x = [0; 8];
        println!("{}", shown(&b.read(&mut x)));
        let t = std::thread::spawn(move || {
            std::thread::sleep(millis(30));
            b.write_all(b"late").unwrap();
            b
        });
        println!(
            "{} {}",
            shown(&a.async_io_mut(Interest::READABLE, |i| i.read(&mut x)).await),
            lossy(&x[..4])
        );
        println!(
            "{}",
            described(
                &a.async_io(Interest::WRITABLE, |_| Err::<(), _>(io::Error::other("no"))).await
            )
        );
        drop(t.join());
    });
}

fn asyncfd_interest_limits_what_is_reported() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::with_interest(a, Interest::READABLE).unwrap();
        println!("writable stuck {}", stuck(a.writable()).await);
        b.write_all(b"x").unwrap();
        println!(
            "{}",
            flags(a.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap().ready())
        );
        let (c, mut d) = pair();
        let c = AsyncFd::with_interest(c, Interest::WRITABLE).unwrap();
        d.write_all(b"x").unwrap();
        println!("{}", flags(c.writable().await.unwrap().ready()));
        println!("readable stuck {}", stuck(c.readable()).await);
    });
}

fn asyncfd_priority_for_out_of_band_data() {
    multi_thread(1).block_on(async {
        let l = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let c = std::net::TcpStream::connect(l.local_addr().unwrap()).unwrap();
        let (sv, _) = l.accept().unwrap();
        sv.set_nonblocking(true).unwrap();
        let a = AsyncFd::with_interest(sv, Interest::PRIORITY).unwrap();
        println!("{}", stuck(a.ready(Interest::PRIORITY)).await);
        println!("{}", shown(&socket2::SockRef::from(&c).send_out_of_band(b"!")));
        println!("{}", flags(a.ready(Interest::PRIORITY).await.unwrap().ready()));
        let mut x = [MaybeUninit::uninit(); 4];
        println!("{}", shown(&socket2::SockRef::from(a.get_ref()).recv_out_of_band(&mut x)));
    });
}

fn asyncfd_error_interest_on_a_pipe_without_reader() {
    current_thread().block_on(async {
        let mut f = [0; 2];
        // SAFETY: what the pointers lead to is valid for the call.
        unsafe { libc::pipe2(f.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) };
        let (rx, tx) = unsafe { (OwnedFd::from_raw_fd(f[0]), OwnedFd::from_raw_fd(f[1])) };
        let a = AsyncFd::with_interest(tx, Interest::WRITABLE).unwrap();
        println!("{}", flags(a.writable().await.unwrap().ready()));
        println!("error stuck {}", stuck(a.ready(Interest::ERROR)).await);
        drop(rx);
        println!("{}", flags(a.ready(Interest::ERROR).await.unwrap().ready()));
        println!("{}", flags(a.ready(Interest::WRITABLE).await.unwrap().ready()));
    });
}

fn asyncfd_hang_up_stays_after_clear() {
    current_thread().block_on(async {
        let (a, b) = pair();
        let a = AsyncFd::new(a).unwrap();
        drop(b);
        let mut g = a.readable().await.unwrap();
        println!("{}", flags(g.ready()));
        g.clear_ready();
        println!("{}", flags(g.ready()));
        // a closed side can not be cleared
        println!("{}", flags(a.readable().await.unwrap().ready()));
    });
}

fn asyncfd_eventfd() {
    multi_thread(2).block_on(async {
        let a = AsyncFd::new(eventfd(0, 0)).unwrap();
        println!("{}", stuck(a.readable()).await);
        println!("{} {}", shown(&wr64(&a, 3)), shown(&wr64(&a, 4)));
        println!("{}", shown(&a.async_io(Interest::READABLE, |i| rd64(i)).await));
        println!("{}", stuck(a.async_io(Interest::READABLE, |i| rd64(i))).await);
        let a = AsyncFd::new(eventfd(2, libc::EFD_SEMAPHORE)).unwrap();
        for _ in 0..2 {
            println!("{}", shown(&a.async_io(Interest::READABLE, |i| rd64(i)).await));
        }
        println!("{}", stuck(a.async_io(Interest::READABLE, |i| rd64(i))).await);
    });
}

fn asyncfd_timerfd_counts_expirations() {
    current_thread().block_on(async {
        // SAFETY: the descriptor is open and has no other owner.
        let fd = unsafe {
            OwnedFd::from_raw_fd(libc::timerfd_create(
                libc::CLOCK_MONOTONIC,
                libc::TFD_NONBLOCK | libc::TFD_CLOEXEC,
            ))
        };
        let a = AsyncFd::with_interest(fd, Interest::READABLE).unwrap();
        println!("{}", stuck(a.readable()).await);
        let t = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 },
        };
        // SAFETY: what the pointers lead to is valid for the call.
        unsafe { libc::timerfd_settime(a.as_raw_fd(), 0, &t, std::ptr::null_mut()) };
        println!("{}", shown(&a.async_io(Interest::READABLE, |i| rd64(i)).await));
        println!("{}", stuck(a.readable()).await);
    });
}

fn asyncfd_into_inner_and_get() {
    current_thread().block_on(async {
        let (a, _b) = pair();
        let n = a.as_raw_fd();
        let mut x = AsyncFd::new(a).unwrap();
        println!("{} {}", x.get_ref().as_raw_fd() == n, x.get_mut().as_raw_fd() == n);
        println!("{}", x.as_raw_fd() == n);
        let mut a = x.into_inner();
        // deregistered and still open
        println!("{}", shown(&a.write(b"x")));
        println!("{}", outcome(&AsyncFd::new(a)));
    });
}

fn asyncfd_drop_does_not_close_a_borrowed_number() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        drop(AsyncFd::new(Fd(a.as_raw_fd())).unwrap());
        println!("{}", shown(&(&a).write(b"open")));
        println!("{}", shown(&b.read(&mut [0; 8])));
        let x = AsyncFd::new(a).unwrap();
        drop(x);
        println!("{}", shown(&b.read(&mut [0; 8])));
    });
}

fn asyncfd_drop_deregisters_before_closing() {
    // the inner value is still open when the poller forgets it
    current_thread().block_on(async {
        for _ in 0..20 {
            let (a, mut b) = pair();
            let x = AsyncFd::new(a).unwrap();
            {
                let mut f = pin!(x.readable());
                let _ = once(f.as_mut()).await;
            }
            drop(x);
            let _ = b.write_all(b"x");
        }
        println!("{}", stuck(std::future::pending::<()>()).await);
    });
}

fn asyncfd_after_its_runtime_was_dropped() {
    let rt = current_thread();
    let (a, mut b) = pair();
    let a = rt.block_on(async { AsyncFd::new(a).unwrap() });
    drop(rt);
    b.write_all(b"x").unwrap();
    current_thread().block_on(async {
        println!("{}", described(&a.readable().await.map(|_| ())));
        println!("{}", described(&a.writable().await.map(|_| ())));
        println!("{}", shown(&a.try_io(Interest::READABLE, |_| Ok(1))));
        println!(
            "{}",
            described(&poll_fn(|cx| a.poll_read_ready(cx).map(|x| x.map(|_| ()))).await)
        );
    });
    println!("{}", shown(&a.into_inner().read(&mut [0; 4])));
}

fn asyncfd_pending_wait_ends_when_its_runtime_is_dropped() {
    let rt = multi_thread(1);
    let (a, _b) = pair();
    let a = rt.block_on(async { AsyncFd::new(a).unwrap() });
    let (n, w) = counter();
    let mut f = Box::pin(a.readable());
    println!("{}", poll_with(f.as_mut(), &w).is_pending());
    drop(rt);
    println!(
        "{} {}",
        n.get() > 0,
        match poll_with(f.as_mut(), &w) {
            Poll::Ready(x) => described(&x.map(|_| ())),
            _ => "Pending".into(),
        }
    );
}

fn asyncfd_all_waiting_futures_are_woken() {
    multi_thread(2).block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        let ws: Vec<_> = (0..40).map(|_| counter()).collect();
        let mut fs: Vec<_> = (0..40).map(|_| Box::pin(a.readable())).collect();
        println!(
            "{}",
            fs.iter_mut().zip(&ws).all(|(f, w)| poll_with(f.as_mut(), &w.1).is_pending())
        );
        b.write_all(b"x").unwrap();
        let mut k = 0;
        for w in &ws {
            if woken(&w.0).await {
                k += 1;
            }
        }
        println!("{k}");
        println!("{}", fs.iter_mut().zip(&ws).all(|(f, w)| poll_with(f.as_mut(), &w.1).is_ready()));
    });
}

fn asyncfd_readers_and_writers_wait_apart() {
    multi_thread(1).block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        // fill it
        a.writable().await.unwrap().retain_ready();
        let mut n = 0;
        while let Ok(k) = a.get_ref().write(&[0; 4096]) {
            n += k;
        }
        a.writable().await.unwrap().clear_ready();
        let (nr, wr) = counter();
        let (nw, ww) = counter();
        let mut fr = Box::pin(a.readable());
        let mut fw = Box::pin(a.writable());
        println!(
            "{} {}",
            poll_with(fr.as_mut(), &wr).is_pending(),
            poll_with(fw.as_mut(), &ww).is_pending()
        );
        let mut left = n;
        let mut x = [0; 65536];
        while left > 0 {
            left -= b.read(&mut x).unwrap();
        }
        println!("writer {} reader {}", woken(&nw).await, nr.get());
        b.write_all(b"x").unwrap();
        println!("reader {}", woken(&nr).await);
    });
}

fn asyncfd_poll_read_ready_keeps_only_the_last_waker() {
    multi_thread(2).block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        println!("{}", a.poll_read_ready(&mut Context::from_waker(&w1)).is_pending());
        println!("{}", a.poll_read_ready(&mut Context::from_waker(&w2)).is_pending());
        b.write_all(b"x").unwrap();
        println!("{} {}", woken(&n2).await, n1.get());
    });
}

fn asyncfd_poll_and_future_are_both_woken() {
    multi_thread(2).block_on(async {
        let (a, mut b) = pair();
        let a = AsyncFd::new(a).unwrap();
        let (n1, w1) = counter();
        let (n2, w2) = counter();
        println!("{}", a.poll_read_ready(&mut Context::from_waker(&w1)).is_pending());
        let mut f = Box::pin(a.readable());
        println!("{}", poll_with(f.as_mut(), &w2).is_pending());
        b.write_all(b"x").unwrap();
        println!("{} {}", woken(&n1).await, woken(&n2).await);
    });
}

fn asyncfd_mut_guards() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let mut a = AsyncFd::new(a).unwrap();
        b.write_all(b"abc").unwrap();
        let mut g = a.readable_mut().await.unwrap();
        let mut x = [0; 8];
        println!("{}", shown(&g.get_inner_mut().read(&mut x)));
        println!("{}", g.try_io(|i| i.get_mut().read(&mut x)).is_err());
        println!("{}", flags(g.ready()));
        drop(g);
        println!(
            "{}",
            flags(a.ready_mut(Interest::READABLE | Interest::WRITABLE).await.unwrap().ready())
        );
        println!("{}", a.writable_mut().await.unwrap().get_ref().as_raw_fd() >= 0);
    });
}

fn asyncfd_closed_behind_its_back() {
    current_thread().block_on(async {
        let (a, _b) = pair();
        let n = a.into_raw_fd();
        let x = AsyncFd::new(Fd(n)).unwrap();
        // SAFETY: the call takes no pointers, and `Fd` does not close its descriptor, so it is
        // closed once.
        unsafe { libc::close(n) };
        println!("drop {}", panics(move || drop(x)));
        let (c, mut d) = pair();
        let y = AsyncFd::new(c).unwrap();
        d.write_all(b"x").unwrap();
        println!("{}", outcome(&y.readable().await));
    });
}

fn asyncfd_emfile_does_not_matter() {
    current_thread().block_on(async {
        let (a, mut b) = pair();
        let old = no_more_fds();
        let a = AsyncFd::new(a).unwrap();
        b.write_all(b"x").unwrap();
        println!("{}", outcome(&a.readable().await));
        restore_fds(old);
    });
}

fn asyncfd_debug_names() {
    current_thread().block_on(async {
        let (a, _b) = pair();
        let a = AsyncFd::new(Fd(a.as_raw_fd())).unwrap();
        let t = format!("{a:?}");
        println!("{}", t.starts_with("AsyncFd { inner: "));
        println!(
            "{:?} {:?}",
            Interest::READABLE | Interest::WRITABLE,
            Ready::READABLE | Ready::READ_CLOSED
        );
        println!("{:?} {:?}", Ready::EMPTY, Interest::PRIORITY);
        println!("{:?}", Ready::ALL.is_empty());
    });
}

fn interest_and_ready_arithmetic() {
    println!(
        "{} {} {}",
        Interest::READABLE.is_readable(),
        Interest::READABLE.is_writable(),
        (Interest::READABLE | Interest::ERROR).is_error()
    );
    println!("{:?}", (Interest::READABLE | Interest::WRITABLE).remove(Interest::READABLE));
    println!("{:?}", Interest::READABLE.remove(Interest::READABLE));
    println!("{:?}", Interest::READABLE.add(Interest::PRIORITY));
    println!(
        "{} {}",
        flags(Ready::READABLE | Ready::WRITABLE),
        flags((Ready::READABLE | Ready::WRITABLE) - Ready::READABLE)
    );
    println!("{} {}", flags(Ready::READ_CLOSED), flags(Ready::ALL & Ready::WRITABLE));
    println!("{}", Ready::ALL == Ready::ALL);
}

/// Checks files of `/proc` that report changes by `EPOLLPRI`, and one that does not.
fn asyncfd_files_of_proc() {
    current_thread().block_on(async {
        for path in ["/proc/self/mounts", "/proc/sys/kernel/hostname", "/proc/self/status"] {
            let file = std::fs::File::open(path).unwrap();
            let fd = AsyncFd::with_interest(file, Interest::PRIORITY).map(|_| ());
            println!("{path} {}", outcome(&fd));
        }
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("asyncfd_regular_file_is_not_permitted", asyncfd_regular_file_is_not_permitted),
    ("asyncfd_bad_descriptors", asyncfd_bad_descriptors),
    ("asyncfd_try_new_gives_the_inner_back", asyncfd_try_new_gives_the_inner_back),
    ("asyncfd_same_descriptor_twice", asyncfd_same_descriptor_twice),
    ("asyncfd_without_runtime_or_io", asyncfd_without_runtime_or_io),
    ("asyncfd_readable_until_cleared", asyncfd_readable_until_cleared),
    ("asyncfd_dropping_a_guard_retains", asyncfd_dropping_a_guard_retains),
    (
        "asyncfd_clear_ready_does_not_clear_an_event_that_came_since",
        asyncfd_clear_ready_does_not_clear_an_event_that_came_since,
    ),
    (
        "asyncfd_clear_ready_matching_clears_one_direction",
        asyncfd_clear_ready_matching_clears_one_direction,
    ),
    ("asyncfd_clear_of_writable_leaves_readable", asyncfd_clear_of_writable_leaves_readable),
    ("asyncfd_guard_try_io", asyncfd_guard_try_io),
    ("asyncfd_try_io_without_guard", asyncfd_try_io_without_guard),
    ("asyncfd_async_io", asyncfd_async_io),
    ("asyncfd_interest_limits_what_is_reported", asyncfd_interest_limits_what_is_reported),
    ("asyncfd_priority_for_out_of_band_data", asyncfd_priority_for_out_of_band_data),
    (
        "asyncfd_error_interest_on_a_pipe_without_reader",
        asyncfd_error_interest_on_a_pipe_without_reader,
    ),
    ("asyncfd_hang_up_stays_after_clear", asyncfd_hang_up_stays_after_clear),
    ("asyncfd_eventfd", asyncfd_eventfd),
    ("asyncfd_timerfd_counts_expirations", asyncfd_timerfd_counts_expirations),
    ("asyncfd_into_inner_and_get", asyncfd_into_inner_and_get),
    (
        "asyncfd_drop_does_not_close_a_borrowed_number",
        asyncfd_drop_does_not_close_a_borrowed_number,
    ),
    ("asyncfd_drop_deregisters_before_closing", asyncfd_drop_deregisters_before_closing),
    ("asyncfd_after_its_runtime_was_dropped", asyncfd_after_its_runtime_was_dropped),
    (
        "asyncfd_pending_wait_ends_when_its_runtime_is_dropped",
        asyncfd_pending_wait_ends_when_its_runtime_is_dropped,
    ),
    ("asyncfd_all_waiting_futures_are_woken", asyncfd_all_waiting_futures_are_woken),
    ("asyncfd_readers_and_writers_wait_apart", asyncfd_readers_and_writers_wait_apart),
    (
        "asyncfd_poll_read_ready_keeps_only_the_last_waker",
        asyncfd_poll_read_ready_keeps_only_the_last_waker,
    ),
    ("asyncfd_poll_and_future_are_both_woken", asyncfd_poll_and_future_are_both_woken),
    ("asyncfd_mut_guards", asyncfd_mut_guards),
    ("asyncfd_closed_behind_its_back", asyncfd_closed_behind_its_back),
    ("asyncfd_emfile_does_not_matter", asyncfd_emfile_does_not_matter),
    ("asyncfd_debug_names", asyncfd_debug_names),
    ("interest_and_ready_arithmetic", interest_and_ready_arithmetic),
    ("asyncfd_files_of_proc", asyncfd_files_of_proc),
];
