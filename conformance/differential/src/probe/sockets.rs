//! Helpers to observe sockets and byte streams.

use std::{
    collections::VecDeque,
    fmt::Debug,
    fs::OpenOptions,
    future::{Future, poll_fn},
    io,
    io::{ErrorKind, IoSlice},
    net::SocketAddr,
    os::fd::{OwnedFd, RawFd},
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, Ready},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use super::{Count, error, quoted};

pub fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Shows a value, or kind and number of an error.
pub fn shown<T: Debug>(result: &io::Result<T>) -> String {
    match result {
        Ok(value) => format!("Ok({value:?})"),
        Err(why) => format!("Err({})", error(why)),
    }
}

/// Shows success, or kind and number of an error.
pub fn outcome<T>(result: &io::Result<T>) -> String {
    match result {
        Ok(_) => "Ok".to_string(),
        Err(why) => format!("Err({})", error(why)),
    }
}

/// Shows a value, or kind, number and text of an error.
pub fn described<T: Debug>(result: &io::Result<T>) -> String {
    match result {
        Ok(value) => format!("Ok({value:?})"),
        Err(why) => format!("Err({}: {})", error(why), quoted(why)),
    }
}

/// Shows what a poll returned.
pub fn polled<T: Debug>(poll: Poll<io::Result<T>>) -> String {
    match poll {
        Poll::Pending => "Pending".into(),
        Poll::Ready(result) => format!("Ready({})", shown(&result)),
    }
}

/// Shows what a poll returned, without the value.
pub fn polled_outcome<T>(poll: Poll<io::Result<T>>) -> String {
    match poll {
        Poll::Pending => "Pending".into(),
        Poll::Ready(result) => format!("Ready({})", outcome(&result)),
    }
}

pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until the waker was called, for two seconds at most.
pub async fn woken(count: &Count) -> bool {
    for _ in 0..400 {
        if count.get() > 0 {
            return true;
        }
        sleep(millis(5)).await;
    }
    false
}

/// Polls once with the task's own waker.
pub async fn once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// Polls once with this waker.
pub fn poll_with<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Returns true if the future is still pending after 60 ms.
pub async fn stuck<F: Future>(future: F) -> bool {
    timeout(millis(60), future).await.is_err()
}

pub fn flags(ready: Ready) -> String {
    let flags = [
        (ready.is_readable(), "readable"),
        (ready.is_writable(), "writable"),
        (ready.is_read_closed(), "read_closed"),
        (ready.is_write_closed(), "write_closed"),
        (ready.is_priority(), "priority"),
        (ready.is_error(), "error"),
    ];
    let set: Vec<&str> = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    if set.is_empty() {
        return "empty".into();
    }
    set.join("|")
}

/// Returns the connected and the accepted side of a connection.
pub async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

/// Returns an address of 127.0.0.1 on which nothing listens.
pub fn closed_addr() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub fn sockopt(fd: RawFd, level: i32, name: i32) -> i32 {
    let mut value: libc::c_int = -1;
    let mut length = 4 as libc::socklen_t;
    // SAFETY: both pointers are valid for the call, and the length is that of the value.
    unsafe { libc::getsockopt(fd, level, name, &mut value as *mut _ as *mut _, &mut length) };
    value
}

pub fn is_nonblocking(fd: RawFd) -> bool {
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK != 0 }
}

pub fn is_cloexec(fd: RawFd) -> bool {
    // SAFETY: the call takes numbers and no memory.
    unsafe { libc::fcntl(fd, libc::F_GETFD) & libc::FD_CLOEXEC != 0 }
}

/// Lowers the limit of descriptors so that there is no further one.
pub fn no_more_fds() -> libc::rlimit {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `old` is valid for the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut old) };
    // SAFETY: the calls take no pointers, and no value of ours owns the copy that is closed.
    let free = unsafe {
        let free = libc::fcntl(0, libc::F_DUPFD, 0);
        libc::close(free);
        free
    };
    let new = libc::rlimit { rlim_cur: free as libc::rlim_t, rlim_max: old.rlim_max };
    restore_fds(new);
    old
}

pub fn restore_fds(limit: libc::rlimit) {
    // SAFETY: `limit` is valid for the call.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}

pub fn devnull() -> OwnedFd {
    OpenOptions::new().read(true).write(true).open("/dev/null").unwrap().into()
}

/// The behaviour of a [`Mock`] at one poll.
#[derive(Debug, Clone)]
pub enum Step {
    /// Returns these bytes to a read.
    Data(Vec<u8>),
    Fail(ErrorKind),
    /// Returns `Pending`, and wakes at once.
    Wait,
    /// Accepts this many bytes of a write.
    Accept(usize),
}

pub use Step::*;

pub fn data(bytes: &[u8]) -> Step {
    Data(bytes.to_vec())
}

/// A reader and writer with a script. A read takes a step of `rd`, a write one of `wr`; what is
/// written goes to `out`.
#[derive(Default)]
pub struct Mock {
    pub rd: VecDeque<Step>,
    pub wr: VecDeque<Step>,
    pub out: Vec<u8>,
    pub flushes: usize,
    pub shutdowns: usize,
    pub reads: usize,
    pub writes: usize,
    pub flush_pending: usize,
    pub vectored: bool,
    pub log: Vec<String>,
}

impl Mock {
    pub fn rd(steps: impl IntoIterator<Item = Step>) -> Mock {
        Mock { rd: steps.into_iter().collect(), ..Default::default() }
    }

    pub fn wr(steps: impl IntoIterator<Item = Step>) -> Mock {
        Mock { wr: steps.into_iter().collect(), ..Default::default() }
    }
}

impl AsyncRead for Mock {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.reads += 1;
        let room = buffer.remaining();
        self.log.push(format!("read({room})"));
        match self.rd.pop_front() {
            None => Poll::Ready(Ok(())),
            Some(Data(mut bytes)) => {
                if bytes.len() > room {
                    let rest = bytes.split_off(room);
                    self.rd.push_front(Data(rest));
                }
                buffer.put_slice(&bytes);
                Poll::Ready(Ok(()))
            }
            Some(Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Wait) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Accept(_)) => unreachable!(),
        }
    }
}

impl AsyncWrite for Mock {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes += 1;
        self.log.push(format!("write({})", bytes.len()));
        match self.wr.pop_front() {
            None => {
                self.out.extend_from_slice(bytes);
                Poll::Ready(Ok(bytes.len()))
            }
            Some(Accept(most)) => {
                let taken = most.min(bytes.len());
                self.out.extend_from_slice(&bytes[..taken]);
                Poll::Ready(Ok(taken))
            }
            Some(Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Wait) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Data(_)) => unreachable!(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.log.push("flush".into());
        if self.flush_pending > 0 {
            self.flush_pending -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.flushes += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.log.push("shutdown".into());
        self.shutdowns += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.vectored {
            let lengths: Vec<usize> = slices.iter().map(|slice| slice.len()).collect();
            self.log.push(format!("writev({lengths:?})"));
            slices.iter().for_each(|slice| self.out.extend_from_slice(slice));
            return Poll::Ready(Ok(lengths.iter().sum()));
        }
        let first = slices.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |it| &**it);
        self.poll_write(context, first)
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }
}
