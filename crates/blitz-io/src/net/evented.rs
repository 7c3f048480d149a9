//! Socket and its registration with the driver.
//!
//! [`Evented`] owns both. The socket is deregistered before its descriptor is closed or given
//! away, so that no event of it is ever attributed to the next owner of the same descriptor
//! number.
//!
//! # No call that only returns `WouldBlock`
//! Readiness is remembered between polls. It is cleared when the kernel returns `WouldBlock`, and
//! also when a stream read or wrote less than was requested: then nothing is left, and whatever
//! comes next raises a new edge. That saves the call after each request that would only return
//! `WouldBlock`. Clearing names the event that was seen before the call, so an edge that comes
//! during the call stays.
//!
//! A short transfer does not clear the readiness at the end of a stream (a read of zero bytes),
//! which stays readable, nor after a read of a Unix socket: such a read ends after bytes that
//! came with descriptors or from another sender, even if there are more bytes behind them. Nor
//! does it for pipes, because any descriptor may have been passed as one.

#![forbid(unsafe_code)]

#[cfg(unix)]
use std::os::fd::AsFd as AsHandle;
#[cfg(windows)]
use std::os::windows::io::AsSocket as AsHandle;
use std::{
    fmt, io,
    io::{IoSlice, IoSliceMut},
    ops::Deref,
    panic::{RefUnwindSafe, UnwindSafe},
    task::{Context, Poll},
};

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use super::{
    nonblocking,
    raw::Destination,
    transfer::{Bytes, first_iovecs, retry_interrupted},
};
use crate::{
    engine::{
        driver::{Direction, Fd, Registration},
        work::task::budget,
    },
    io::{Interest, ReadBuf, Ready},
    runtime::context,
};

/// Object that the driver can watch.
pub(crate) trait Source: AsHandle {
    #[inline]
    fn fd(&self) -> Fd<'_> {
        #[cfg(unix)]
        return self.as_fd();
        #[cfg(windows)]
        return self.as_socket();
    }
}

impl<T: AsHandle> Source for T {}

/// A socket (or pipe) that is registered with the driver of a runtime.
pub(crate) struct Evented<T: Source> {
    /// `None` only while `into_inner` and `drop` run.
    io: Option<T>,
    registration: Registration,
}

/// Events for which a socket is watched. Urgent bytes are among them so that a read which ends in
/// front of one is not taken for the last.
#[cfg(any(target_os = "linux", target_os = "android"))]
const ALL_INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE).add(Interest::PRIORITY);
/// Events for which a socket is watched.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const ALL_INTERESTS: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Panic text for a missing socket, which cannot happen: the socket is there from `new` to
/// `drop`.
const NO_SOCKET: &str = "a socket leaves only with its owner";

impl<T: Source> Evented<T> {
    /// Registers `io` for reading and writing with the current runtime.
    ///
    /// `io` must be in non-blocking mode.
    #[track_caller]
    pub(crate) fn new(io: T) -> io::Result<Self> {
        Self::with_interest(io, ALL_INTERESTS)
    }

    /// Registers a connected socket, and assumes that it is in the states `ready` until a call
    /// finds otherwise. So its first operation need not wait for the driver's first event.
    #[track_caller]
    pub(crate) fn new_ready(io: T, ready: Ready) -> io::Result<Self> {
        let open = Self::new(io)?;
        open.registration.assume_ready(ready);
        Ok(open)
    }

    /// Registers `io` for `interest` with the current runtime.
    #[track_caller]
    pub(crate) fn with_interest(io: T, interest: Interest) -> io::Result<Self> {
        let registration = context::io_driver().register(io.fd(), interest)?;
        Ok(Self { io: Some(io), registration })
    }

    /// Deregisters the socket from the driver and returns it.
    pub(crate) fn into_inner(mut self) -> io::Result<T> {
        let io = self.io.take().expect(NO_SOCKET);
        self.deregister(&io)?;
        Ok(io)
    }

    /// Returns the driver that watches the socket.
    #[cfg(target_os = "linux")]
    #[inline]
    pub(crate) fn driver(&self) -> &std::sync::Arc<crate::engine::driver::Driver> {
        self.registration.driver()
    }

    fn deregister(&self, io: &T) -> io::Result<()> {
        self.registration.deregister(io.fd())
    }

    /// Waits for one of the states of `interest`.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        Ok(self.registration.readiness(interest).await?.ready())
    }

    #[inline]
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<()>> {
        self.registration.poll_ready(cx, direction).map_ok(|_| ())
    }

    /// Calls `f` when the driver reports that it may succeed, until it does.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut f: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.registration.poll_io(cx, direction, || f(self))
    }

    /// Calls `f` as [`poll_io`](Self::poll_io) does, for any number of tasks at once.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.async_op(interest, || f(self)).await
    }

    /// Calls a user's operation as [`async_io`](Self::async_io) does for our own. Nothing is
    /// known about what `f` does.
    pub(crate) async fn user_async_io<R>(
        &self,
        interest: Interest,
        f: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.async_io(interest, f).await
    }

    /// Calls a user's operation as [`try_io`](Self::try_io) does for our own.
    #[inline]
    pub(crate) fn user_try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_io(interest, f)
    }

    /// Calls `f` if the driver reports that it may succeed.
    #[inline]
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration.try_op(interest, || f(self))
    }
}

/// Panics in debug builds if a socket of the standard library is in blocking mode: such a socket
/// works until the first call that has to wait, and then blocks its worker.
#[cfg(unix)]
#[track_caller]
pub(crate) fn check_mode(io: &impl Source) -> io::Result<()> {
    if cfg!(debug_assertions) && !SockRef::from(io).nonblocking()? {
        // The first sentence is Tokio's, so that a search for that text finds it here too.
        panic!(
            "Registering a blocking socket with the tokio runtime is unsupported: call \
             `set_nonblocking(true)` on it first"
        );
    }
    Ok(())
}

/// Does nothing, because Windows does not report the mode of a socket.
#[cfg(windows)]
pub(crate) fn check_mode(_io: &impl Source) -> io::Result<()> {
    Ok(())
}

/// Accepts a connection, and returns its socket in non-blocking mode.
pub(crate) fn accept(listener: &impl Source) -> io::Result<(Socket, SockAddr)> {
    let listener = SockRef::from(listener);
    retry_interrupted(|| nonblocking::accept(&listener))
}

/// Opens a socket in non-blocking mode, which a child process does not inherit.
pub(crate) fn open(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    nonblocking::open(domain, kind, protocol)
}

/// Opens two Unix sockets in non-blocking mode, connected to each other.
#[cfg(unix)]
pub(crate) fn open_pair(kind: Type) -> io::Result<(Socket, Socket)> {
    let (one, other) = Socket::pair(Domain::UNIX, kind, None)?;
    one.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    Ok((one, other))
}

/// Starts to connect a socket. If that does not complete immediately, the socket becomes writable
/// when it has.
pub(crate) fn start_connecting(socket: &Socket, address: &SockAddr) -> io::Result<()> {
    match socket.connect(address) {
        // An interrupted attempt continues in the kernel all the same.
        #[cfg(unix)]
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {
            Ok(())
        }
        #[cfg(windows)]
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        done => done,
    }
}

impl<T: Bytes> Evented<T> {
    /// Reads into the free part of `buf`. A `buf` without a free part completes immediately.
    #[inline]
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wanted = buf.remaining();
        if wanted == 0 {
            // There is nothing to wait for, but the budget makes a task that loops here yield at
            // times.
            return budget::poll_proceed(cx).map(|unit| {
                unit.spend();
                Ok(())
            });
        }
        self.poll_transfer(cx, Direction::Read, wanted, |io| buf.fill_from(|room| io.read(room)))
            .map_ok(|_| ())
    }

    #[inline]
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_transfer(cx, Direction::Write, bytes.len(), |io| io.write(bytes))
    }

    #[inline]
    pub(crate) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let pieces = first_iovecs(pieces);
        let wanted = pieces.iter().map(|piece| piece.len()).sum();
        self.poll_transfer(cx, Direction::Write, wanted, |io| io.write_vectored(pieces))
    }

    /// Polls a read or write of up to `wanted` bytes. The module's documentation explains when a
    /// short transfer clears the readiness.
    #[inline]
    fn poll_transfer(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        wanted: usize,
        mut transfer: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let short_is_all = match direction {
            Direction::Read => T::SHORT_READ_IS_ALL,
            Direction::Write => T::SHORT_WRITE_IS_ALL,
        };
        let moved = if short_is_all {
            self.registration.poll_move(cx, direction, wanted, || transfer(self))
        } else {
            self.registration.poll_io(cx, direction, || transfer(self))
        };
        if let Poll::Ready(Ok(moved)) = moved {
            budget::charge(moved);
        }
        moved
    }

    #[inline]
    pub(crate) fn try_read(&self, into: &mut (impl Destination + ?Sized)) -> io::Result<usize> {
        self.try_io(Interest::READABLE, |io| into.fill_from(|room| io.read(room)))
    }

    #[inline]
    pub(crate) fn try_read_vectored(&self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.try_io(Interest::READABLE, |io| io.read_vectored(pieces))
    }

    #[inline]
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, |io| io.write(bytes))
    }

    #[inline]
    pub(crate) fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, |io| io.write_vectored(pieces))
    }
}

impl<T: Source> Deref for Evented<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.io.as_ref().expect(NO_SOCKET)
    }
}

impl<T: Source> Drop for Evented<T> {
    fn drop(&mut self) {
        if let Some(io) = self.io.take() {
            // The descriptor is closed next whether or not this succeeds, and no caller is left
            // that could receive the error.
            let _ = self.deregister(&io);
        }
    }
}

impl<T: Source + fmt::Debug> fmt::Debug for Evented<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

// A panic can leave behind at most a readiness that was not cleared, which is harmless: the next
// call finds out from the kernel.
impl<T: Source> UnwindSafe for Evented<T> {}
impl<T: Source> RefUnwindSafe for Evented<T> {}
