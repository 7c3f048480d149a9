//! Pipes and FIFOs.

use crate::probe::{sockets::*, *};
use futures_util::future::FutureExt;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd};
use std::pin::pin;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::time::sleep;

use std::io::Write;

use tokio::net::unix::pipe;
fn mkfifo(p: &str) {
    let c = std::ffi::CString::new(p).unwrap();
    // SAFETY: what the pointers lead to is valid for the call.
    assert_eq!(unsafe { libc::mkfifo(c.as_ptr(), 0o600) }, 0);
}

fn std_pipe() -> (std::fs::File, std::fs::File) {
    let mut f = [0; 2];
    // SAFETY: what the pointers lead to is valid for the call.
    assert_eq!(unsafe { libc::pipe(f.as_mut_ptr()) }, 0);
    unsafe { (std::fs::File::from_raw_fd(f[0]), std::fs::File::from_raw_fd(f[1])) }
}

fn pipe_passes_bytes_and_eof() {
    multi_thread(2).block_on(async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        tx.write_all(b"through").await.unwrap();
        drop(tx);
        let mut v = vec![];
        println!("{} {}", shown(&rx.read_to_end(&mut v).await), lossy(&v));
        println!("{}", shown(&rx.read(&mut [0; 4]).await));
    });
}

fn pipe_write_without_reader_is_broken() {
    current_thread().block_on(async {
        let (mut tx, rx) = pipe::pipe().unwrap();
        drop(rx);
        println!("{}", shown(&tx.write(b"x").await));
        println!("{}", shown(&tx.try_write(b"x")));
        println!("{}", shown(&tx.write(&[]).await));
        println!("{}", flags(tx.ready(Interest::WRITABLE).await.unwrap()));
        println!("{}", flags(tx.ready(Interest::ERROR).await.unwrap()));
    });
}

fn pipe_try_read_before_the_driver_ran_wouldblock() {
    // tokio-rs/tokio#7625 and the notes of try_read
    current_thread().block_on(async {
        let (tx, mut rx) = pipe::pipe().unwrap();
        let mut f = std::fs::File::from(tx.into_blocking_fd().unwrap());
        f.write_all(b"xx").unwrap();
        println!("{}", shown(&rx.try_read(&mut [0; 4])));
        println!("{:?}", rx.read(&mut [0; 4]).now_or_never().is_none());
        println!("{}", shown(&rx.read(&mut [0; 4]).await));
    });
}

fn pipe_try_write_before_the_driver_ran_wouldblock() {
    current_thread().block_on(async {
        let (tx, rx) = pipe::pipe().unwrap();
        println!("{}", shown(&tx.try_write(b"x")));
        tx.writable().await.unwrap();
        println!("{}", shown(&tx.try_write(b"x")));
        println!("{}", shown(&tx.try_write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"c")])));
        rx.readable().await.unwrap();
        let mut v = Vec::new();
        println!("{} {}", shown(&rx.try_read_buf(&mut v)), lossy(&v));
        println!("{}", shown(&rx.try_read_buf(&mut v)));
    });
}

fn pipe_read_closed_after_sender_drop() {
    current_thread().block_on(async {
        let (mut tx, rx) = pipe::pipe().unwrap();
        tx.write_all(b"ab").await.unwrap();
        drop(tx);
        println!("{}", flags(rx.ready(Interest::READABLE).await.unwrap()));
        println!(
            "{} {} {}",
            shown(&rx.try_read(&mut [0; 1])),
            shown(&rx.try_read(&mut [0; 4])),
            shown(&rx.try_read(&mut [0; 4]))
        );
        println!("{}", outcome(&rx.readable().await));
    });
}

fn pipe_sender_shutdown_does_not_close() {
    current_thread().block_on(async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        println!("{}", outcome(&tx.shutdown().await));
        println!("{}", stuck(rx.read(&mut [0; 4])).await);
        println!("{}", shown(&tx.write(b"still").await));
        println!("{}", shown(&rx.read(&mut [0; 8]).await));
    });
}

fn pipe_fills_up_to_its_capacity() {
    current_thread().block_on(async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        // SAFETY: the call takes numbers and no memory.
        println!("{}", unsafe { libc::fcntl(tx.as_raw_fd(), libc::F_SETPIPE_SZ, 8192) });
        println!("{}", shown(&tx.write(&[1; 10_000]).await));
        println!("{}", shown(&tx.try_write(b"x")));
        println!("{}", stuck(tx.write(b"x")).await);
        println!("{}", shown(&rx.read(&mut [0; 4096]).await));
        println!("{}", shown(&tx.write(b"x").await));
    });
}

fn pipe_small_writes_are_atomic() {
    current_thread().block_on(async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        // SAFETY: the call takes numbers and no memory.
        unsafe { libc::fcntl(tx.as_raw_fd(), libc::F_SETPIPE_SZ, 8192) };
        println!("{}", shown(&tx.write(&[1; 8000]).await));
        println!("4096 does not fit: {}", stuck(tx.write(&[2; 4096])).await);
        println!("{}", shown(&rx.read(&mut [0; 8192]).await));
        println!("{}", shown(&tx.write(&[2; 4096]).await));
    });
}

fn pipe_blocked_write_all_goes_on_when_read() {
    multi_thread(2).block_on(async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        let t = tokio::spawn(async move {
            tx.write_all(&vec![3; 300_000]).await.unwrap();
        });
        sleep(millis(30)).await;
        println!("{}", t.is_finished());
        let mut v = vec![];
        println!("{}", shown(&rx.read_to_end(&mut v).await));
        t.await.unwrap();
    });
}

fn pipe_open_errors() {
    current_thread().block_on(async {
        std::fs::write("regular", b"x").unwrap();
        mkfifo("fifo");
        let o = pipe::OpenOptions::new();
        println!("{} {}", outcome(&o.open_receiver("missing")), outcome(&o.open_sender("missing")));
        println!(
            "{} {}",
            described(&o.open_receiver("regular").map(|_| ())),
            described(&o.open_sender("regular").map(|_| ()))
        );
        println!("{}", outcome(&o.open_receiver(".")));
        println!("{}", outcome(&o.open_sender("fifo")));
        println!("{}", outcome(&o.open_receiver("fifo")));
        let mut u = pipe::OpenOptions::new();
        u.unchecked(true);
        println!("{}", outcome(&u.open_receiver("regular")));
    });
}

fn pipe_fifo_sender_opens_once_a_reader_exists() {
    current_thread().block_on(async {
        mkfifo("fifo");
        let o = pipe::OpenOptions::new();
        let mut rx = o.open_receiver("fifo").unwrap();
        let mut tx = o.open_sender("fifo").unwrap();
        tx.write_all(b"fifo!").await.unwrap();
        drop(tx);
        let mut v = vec![];
        println!("{} {}", shown(&rx.read_to_end(&mut v).await), lossy(&v));
        // a second writer revives it
        let mut tx = o.open_sender("fifo").unwrap();
        tx.write_all(b"again").await.unwrap();
        let mut x = [0; 5];
        println!("{} {}", shown(&rx.read_exact(&mut x).await), lossy(&x));
    });
}

fn pipe_fifo_read_write_never_ends() {
    current_thread().block_on(async {
        mkfifo("fifo");
        let mut o = pipe::OpenOptions::new();
        o.read_write(true);
        let mut tx = o.open_sender("fifo").unwrap();
        println!("{}", shown(&tx.write(b"abc").await));
        let mut rx = o.open_receiver("fifo").unwrap();
        drop(tx);
        println!("{}", shown(&rx.read(&mut [0; 8]).await));
        println!("{}", stuck(rx.read(&mut [0; 8])).await);
    });
}

fn pipe_from_file_checks_kind_and_mode() {
    current_thread().block_on(async {
        let (rf, wf) = std_pipe();
        println!("{}", described(&pipe::Sender::from_file(rf.try_clone().unwrap()).map(|_| ())));
        println!("{}", described(&pipe::Receiver::from_file(wf.try_clone().unwrap()).map(|_| ())));
        println!(
            "{}",
            described(
                &pipe::Receiver::from_file(std::fs::File::open("/dev/null").unwrap()).map(|_| ())
            )
        );
        println!("before {}", is_nonblocking(rf.as_raw_fd()));
        let rx = pipe::Receiver::from_file(rf).unwrap();
        println!("after {}", is_nonblocking(rx.as_raw_fd()));
        let fd = rx.into_blocking_fd().unwrap();
        println!("blocking again {}", !is_nonblocking(fd.as_raw_fd()));
        let tx = pipe::Sender::from_owned_fd(wf.into()).unwrap();
        let fd = tx.into_nonblocking_fd().unwrap();
        println!("{}", is_nonblocking(fd.as_raw_fd()));
    });
}

fn pipe_from_file_unchecked_of_a_socket_works() {
    current_thread().block_on(async {
        let (a, mut b) = std::os::unix::net::UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        let mut rx = pipe::Receiver::from_owned_fd_unchecked(a.into()).unwrap();
        b.write_all(b"sock").unwrap();
        println!("{}", shown(&rx.read(&mut [0; 8]).await));
    });
}

fn pipe_cancelled_read_loses_nothing() {
    current_thread().block_on(async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        for i in 0..20u8 {
            {
                let mut x = [0; 4];
                let mut f = pin!(rx.read(&mut x));
                if once(f.as_mut()).await.is_ready() {
                    println!("early");
                }
            }
            tx.write_all(&[i]).await.unwrap();
            let mut x = [0; 4];
            if rx.read(&mut x).await.unwrap() != 1 || x[0] != i {
                println!("lost");
            }
        }
        println!("done");
    });
}

fn pipe_try_io() {
    current_thread().block_on(async {
        let (tx, rx) = pipe::pipe().unwrap();
        tx.writable().await.unwrap();
        let fd = tx.as_raw_fd();
        // SAFETY: what the pointers lead to is valid for the call.
        println!(
            "{}",
            shown(&tx.try_io(|| Ok(unsafe { libc::write(fd, b"abc".as_ptr() as *const _, 3) })))
        );
        rx.readable().await.unwrap();
        println!("{}", shown(&rx.try_io(|| Err::<(), _>(ErrorKind::WouldBlock.into()))));
        println!("{}", shown(&rx.try_read(&mut [0; 8])));
        println!("{}", stuck(rx.readable()).await);
        println!("{}", shown(&tx.try_write(b"d")));
        rx.readable().await.unwrap();
        println!("{}", shown(&rx.try_read(&mut [0; 8])));
    });
}

fn pipe_vectored_read() {
    current_thread().block_on(async {
        let (mut tx, rx) = pipe::pipe().unwrap();
        println!("{}", tx.is_write_vectored());
        println!(
            "{}",
            shown(&tx.write_vectored(&[IoSlice::new(b"hel"), IoSlice::new(b"lo")]).await)
        );
        rx.readable().await.unwrap();
        let (mut a, mut b) = ([0; 2], [0; 9]);
        println!(
            "{}",
            shown(&rx.try_read_vectored(&mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)]))
        );
        println!("{} {}", lossy(&a), lossy(&b[..3]));
    });
}

fn pipe_zero_length_read() {
    current_thread().block_on(async {
        let (mut tx, mut rx) = pipe::pipe().unwrap();
        println!("stuck {}", stuck(rx.read(&mut [])).await);
        tx.write_all(b"x").await.unwrap();
        println!("{} {}", shown(&rx.read(&mut []).await), shown(&rx.read(&mut [0; 3]).await));
    });
}

fn pipe_vectored_writes_of_nothing() {
    current_thread().block_on(async {
        let (mut tx, rx) = pipe::pipe().unwrap();
        println!("{}", shown(&tx.write_vectored(&[IoSlice::new(&[])]).await));
        println!("{}", shown(&tx.write(&[]).await));
        drop(rx);
        println!("{}", shown(&tx.write_vectored(&[IoSlice::new(&[])]).await));
        println!("{}", shown(&tx.try_write_vectored(&[])));
        println!("{}", shown(&tx.write(&[]).await));
    });
}

pub const CASES: &[(&str, fn())] = &[
    ("pipe_passes_bytes_and_eof", pipe_passes_bytes_and_eof),
    ("pipe_write_without_reader_is_broken", pipe_write_without_reader_is_broken),
    (
        "pipe_try_read_before_the_driver_ran_wouldblock",
        pipe_try_read_before_the_driver_ran_wouldblock,
    ),
    (
        "pipe_try_write_before_the_driver_ran_wouldblock",
        pipe_try_write_before_the_driver_ran_wouldblock,
    ),
    ("pipe_read_closed_after_sender_drop", pipe_read_closed_after_sender_drop),
    ("pipe_sender_shutdown_does_not_close", pipe_sender_shutdown_does_not_close),
    ("pipe_fills_up_to_its_capacity", pipe_fills_up_to_its_capacity),
    ("pipe_small_writes_are_atomic", pipe_small_writes_are_atomic),
    ("pipe_blocked_write_all_goes_on_when_read", pipe_blocked_write_all_goes_on_when_read),
    ("pipe_open_errors", pipe_open_errors),
    ("pipe_fifo_sender_opens_once_a_reader_exists", pipe_fifo_sender_opens_once_a_reader_exists),
    ("pipe_fifo_read_write_never_ends", pipe_fifo_read_write_never_ends),
    ("pipe_from_file_checks_kind_and_mode", pipe_from_file_checks_kind_and_mode),
    ("pipe_from_file_unchecked_of_a_socket_works", pipe_from_file_unchecked_of_a_socket_works),
    ("pipe_cancelled_read_loses_nothing", pipe_cancelled_read_loses_nothing),
    ("pipe_try_io", pipe_try_io),
    ("pipe_vectored_read", pipe_vectored_read),
    ("pipe_zero_length_read", pipe_zero_length_read),
    ("pipe_vectored_writes_of_nothing", pipe_vectored_writes_of_nothing),
];
