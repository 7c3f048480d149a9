//! The Linux selector: one epoll instance, edge-triggered, with each descriptor registered once.
//!
//! Any thread may wait in it; the driver's `TryLock` admits one at a time. An eventfd ends a wait.
//! It is edge-triggered too, so each write is an event and the eventfd need not be read. (Its
//! counter is full after 2^64 writes.)
//!
//! Timeouts are exact by `epoll_pwait2` (Linux 5.11). Where the kernel lacks it, or a sandbox
//! refuses it, they are rounded up to milliseconds, so a wait never ends early.
//!
//! # Rejected
//! - Level-triggered or one-shot events: one more system call for each wait of each socket.
//! - A timerfd for older kernels: one more system call for each wait, for the sake of kernels that
//!   no distribution supports any more.
//! - Reading the eventfd after a wait: a system call without use.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    time::{Duration, Instant},
};

use super::{
    Fd,
    backend::{Events, SelectorEvent},
    interest::Interest,
    poll_flags::{PollFlags, remaining, rounded_up},
    ready::Ready,
    record_table::Token,
};
use crate::engine::prim::{AtomicBool, Ordering::Relaxed};

/// The epoll selector.
#[derive(Debug)]
pub(super) struct Epoll {
    epoll: OwnedFd,
    /// The eventfd that ends a wait.
    eventfd: OwnedFd,
    /// Set once the kernel or a sandbox has refused `epoll_pwait2`; timeouts are coarse from then
    /// on.
    coarse: AtomicBool,
}

/// The timeout argument of `epoll_pwait2`, with the same layout on all architectures.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// Converts the return value of a system call: a negative one becomes the last error.
fn cvt(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes ownership of the descriptor that a system call returned.
fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    let fd = cvt(result)?;
    // SAFETY: the system call has just created the descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the call takes no pointers.
        let eventfd = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let this = Self { epoll, eventfd, coarse: AtomicBool::new(false) };
        this.control(libc::EPOLL_CTL_ADD, this.eventfd.as_raw_fd(), libc::EPOLLIN, Token::NUDGE)?;
        Ok(this)
    }

    fn control(&self, operation: i32, fd: i32, events: i32, token: Token) -> io::Result<()> {
        let mut event =
            libc::epoll_event { events: (events | libc::EPOLLET) as u32, u64: token.bits() };
        // SAFETY: `event` outlives the call, which only reads it; if a descriptor is not open, the
        // call returns EBADF.
        let result =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &raw mut event) };
        cvt(result).map(drop)
    }

    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        let mut events = 0;
        if interest.is_readable() {
            events |= libc::EPOLLIN | libc::EPOLLRDHUP;
        }
        if interest.is_writable() {
            events |= libc::EPOLLOUT;
        }
        if interest.is_priority() {
            events |= libc::EPOLLPRI;
        }
        // Errors are always reported.
        self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd(), events, token)
    }

    pub(super) fn remove(&self, fd: Fd<'_>, token: Token) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd.as_raw_fd(), 0, token)
    }

    /// No-op: the kernel drops the registration when the last copy of the descriptor is closed;
    /// until then, the generation in the token makes its events harmless.
    pub(super) fn forget(&self, _: Token) {}

    /// No-op: the registration is edge-triggered, so every change is reported.
    #[inline]
    pub(super) fn rearm(&self, _: Token, _: Ready) {}

    pub(super) fn signal(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: the eight bytes outlive the call. It does not block, and its only possible error,
        // a full counter, leaves an event pending as well.
        unsafe { libc::write(self.eventfd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.epoll.reserve(events.limit);
        let begun = timeout.filter(|timeout| !timeout.is_zero()).map(|_| Instant::now());
        let mut time_left = timeout;
        let count = loop {
            match self.wait_once(&mut events.epoll, events.limit, time_left) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {
                    time_left = remaining(timeout, begun);
                }
                result => break result?,
            }
        };
        // SAFETY: the kernel initialised the first `count` events, and the capacity is at least
        // `limit`.
        unsafe { events.epoll.set_len(count) };
        for event in &events.epoll {
            let (token, bits) = (Token::from_bits(event.u64), event.events as i32);
            if token != Token::NUDGE {
                events.found.push(SelectorEvent { token, ready: flags_of(bits).ready() });
            }
        }
        events.epoll.clear();
        Ok(())
    }

    /// Waits once; returns how many events were written into the spare capacity of the empty
    /// `buffer`.
    fn wait_once(
        &self,
        buffer: &mut Vec<libc::epoll_event>,
        limit: usize,
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        debug_assert!(buffer.capacity() >= limit, "there must be room for what the kernel writes");
        let (epoll, room) = (self.epoll.as_raw_fd(), buffer.as_mut_ptr());
        let milliseconds = match timeout {
            None => -1,
            Some(Duration::ZERO) => 0,
            Some(timeout) => {
                if let Some(count) = self.wait_exactly(room, limit, timeout)? {
                    return Ok(count);
                }
                rounded_up(timeout)
            }
        };
        // A raw system call, because the C library's wrapper is a thread cancellation point, which
        // costs two atomic exchanges.
        // SAFETY: there is room for `limit` events, and a null signal mask is allowed.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait,
                epoll,
                room,
                limit as libc::c_int,
                milliseconds,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        cvt(result as libc::c_int).map(|count| count as usize)
    }

    /// Waits with a timeout in nanoseconds; returns `None` if the kernel or a sandbox refuses the
    /// call.
    fn wait_exactly(
        &self,
        room: *mut libc::epoll_event,
        limit: usize,
        timeout: Duration,
    ) -> io::Result<Option<usize>> {
        // Relaxed: a thread that does not see the flag makes the call and gets the error itself.
        if self.coarse.load(Relaxed) {
            return Ok(None);
        }
        let timeout = Timespec {
            seconds: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            nanoseconds: timeout.subsec_nanos().into(),
        };
        // SAFETY: the caller has room for `limit` events at `room`; `timeout` outlives the call,
        // which only reads it; a null signal mask is allowed.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                room,
                limit as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if result >= 0 {
            return Ok(Some(result as usize));
        }
        let why = io::Error::last_os_error();
        // Sandboxes that are older than the system call return EPERM.
        if matches!(why.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) {
            self.coarse.store(true, Relaxed);
            return Ok(None);
        }
        Err(why)
    }
}

fn flags_of(bits: i32) -> PollFlags {
    PollFlags {
        input: bits & libc::EPOLLIN != 0,
        output: bits & libc::EPOLLOUT != 0,
        urgent: bits & libc::EPOLLPRI != 0,
        end: bits & libc::EPOLLRDHUP != 0,
        hung_up: bits & libc::EPOLLHUP != 0,
        error: bits & libc::EPOLLERR != 0,
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        os::{fd::AsFd, unix::net::UnixStream},
        time::{Duration, Instant},
    };

    use super::Epoll;
    use crate::engine::{
        driver::{backend::Events, interest::Interest, ready::Ready, record_table::Token},
        prim::Ordering::Relaxed,
    };

    fn epoll(coarse: bool) -> Epoll {
        let epoll = Epoll::new().unwrap();
        epoll.coarse.store(coarse, Relaxed);
        epoll
    }

    #[test]
    fn a_wait_is_never_too_short_with_or_without_exact_ones() {
        for coarse in [false, true] {
            let (epoll, mut events) = (epoll(coarse), Events::new(8));
            for microseconds in [1, 300, 1_700] {
                let timeout = Duration::from_micros(microseconds);
                let start = Instant::now();
                epoll.wait(&mut events, Some(timeout)).unwrap();
                assert!(start.elapsed() >= timeout, "{coarse} {timeout:?}");
                assert_eq!(epoll.coarse.load(Relaxed), coarse, "this kernel knows how");
            }
        }
    }

    #[test]
    fn a_wait_without_end_is_none() {
        for coarse in [false, true] {
            let (epoll, mut events) = (epoll(coarse), Events::new(8));
            epoll.signal();
            epoll.wait(&mut events, Some(Duration::MAX)).unwrap();
            assert!(events.found.is_empty(), "a signal is no event");
        }
    }

    /// Edge-triggered: a signal ends one wait, although the eventfd is never read.
    #[test]
    fn each_signal_ends_one_wait() {
        let (epoll, mut events) = (epoll(false), Events::new(8));
        for _ in 0..3 {
            epoll.signal();
            epoll.wait(&mut events, None).unwrap();
            let start = Instant::now();
            epoll.wait(&mut events, Some(Duration::from_millis(2))).unwrap();
            assert!(start.elapsed() >= Duration::from_millis(2), "the signal ended two waits");
        }
    }

    #[test]
    fn an_event_is_reported_once() {
        let (epoll, mut events) = (epoll(false), Events::new(8));
        let (near, _far) = UnixStream::pair().unwrap();
        let token = Token::from_bits(7);
        epoll.add(near.as_fd(), token, Interest::WRITABLE).unwrap();
        epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert_eq!(events.found.len(), 1);
        assert_eq!((events.found[0].token, events.found[0].ready), (token, Ready::WRITABLE));
        events.found.clear();
        epoll.wait(&mut events, Some(Duration::ZERO)).unwrap();
        assert!(events.found.is_empty());
    }

    /// Other errors: `a_descriptor_that_epoll_refuses_has_the_systems_number`, in `tests/it`.
    #[test]
    fn a_refusal_keeps_the_systems_number() {
        let epoll = epoll(false);
        let (near, _far) = UnixStream::pair().unwrap();
        let add = || epoll.add(near.as_fd(), Token::from_bits(7), Interest::READABLE);
        add().unwrap();
        assert_eq!(add().unwrap_err().raw_os_error(), Some(libc::EEXIST));
    }
}
