//! Linux: one epoll instance, edge-triggered, each descriptor registered once.
//!
//! Any thread may wait in it, one at a time by the driver's seat. An eventfd ends a wait: it
//! is edge-triggered too, so each write is an event and nobody has to read it. (Its count is
//! full after 2^64 writes.)
//!
//! Time-outs are exact by `epoll_pwait2` (Linux 5.11). Where the kernel does not know it, or
//! a sandbox refuses it, they are rounded up to milliseconds: never early.
//!
//! # Rejected
//! - Level-triggered, or one shot: a system call more for each wait of each socket.
//! - A timerfd for older kernels: a system call more for each wait, for the sake of kernels
//!   that no distribution supports any more.
//! - Reading the eventfd after a wait: a system call for nothing.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    time::{Duration, Instant},
};

use super::{
    Fd,
    backend::{Events, Found},
    interest::Interest,
    ready::Ready,
    signs::{Signs, rest, rounded_up},
    sources::Token,
};
use crate::engine::prim::{AtomicBool, Ordering::Relaxed};

/// See the module.
#[derive(Debug)]
pub(super) struct Epoll {
    epoll: OwnedFd,
    /// The eventfd.
    bell: OwnedFd,
    /// The kernel does not know exact time-outs.
    coarse: AtomicBool,
}

/// What `epoll_pwait2` takes, on all architectures.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// The answer of a system call.
fn answered(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The descriptor that a system call answered with.
fn owned(answer: libc::c_int) -> io::Result<OwnedFd> {
    let fd = answered(answer)?;
    // SAFETY: a new descriptor, which nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no pointers.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: no pointers.
        let bell = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let this = Self { epoll, bell, coarse: AtomicBool::new(false) };
        this.control(libc::EPOLL_CTL_ADD, this.bell.as_raw_fd(), libc::EPOLLIN, Token::NUDGE)?;
        Ok(this)
    }

    fn control(&self, verb: i32, fd: i32, events: i32, token: Token) -> io::Result<()> {
        let mut event =
            libc::epoll_event { events: (events | libc::EPOLLET) as u32, u64: token.bits() };
        // SAFETY: `event` is read during the call; both descriptors are open, or the call
        // answers EBADF.
        let answer = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), verb, fd, &raw mut event) };
        answered(answer).map(drop)
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
        // Errors are always told.
        self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd(), events, token).map_err(refused)
    }

    pub(super) fn remove(&self, fd: Fd<'_>, token: Token) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd.as_raw_fd(), 0, token)
    }

    /// The kernel forgets a descriptor with its last copy; tokens tell until then.
    pub(super) fn forget(&self, _: Token) {}

    /// It tells every change anyway.
    #[inline]
    pub(super) fn rearm(&self, _: Token, _: Ready) {}

    pub(super) fn signal(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes that live during the call. It does not block, and the only
        // way to fail, a full count, leaves an event there as well.
        unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.epoll.reserve(events.limit);
        let begun = timeout.filter(|timeout| !timeout.is_zero()).map(|_| Instant::now());
        let mut left = timeout;
        let count = loop {
            match self.ask(&mut events.epoll, events.limit, left) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {
                    left = rest(timeout, begun);
                }
                answer => break answer?,
            }
        };
        // SAFETY: the kernel wrote so many, and there is room for `limit`.
        unsafe { events.epoll.set_len(count) };
        for event in &events.epoll {
            let (token, told) = (Token::from_bits(event.u64), event.events as i32);
            if token != Token::NUDGE {
                events.found.push(Found { token, ready: signs(told).ready() });
            }
        }
        events.epoll.clear();
        Ok(())
    }

    /// One wait; how many events were written into the room of the empty `buffer`.
    fn ask(
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
                if let Some(count) = self.ask_exactly(room, limit, timeout)? {
                    return Ok(count);
                }
                rounded_up(timeout)
            }
        };
        // Not the C library's, which is a point at which a thread may be cancelled: that
        // costs two exchanges of a word.
        // SAFETY: there is room for `limit` events. No signal mask is given.
        let answer = unsafe {
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
        answered(answer as libc::c_int).map(|count| count as usize)
    }

    /// `None` if the kernel does not know how.
    fn ask_exactly(
        &self,
        room: *mut libc::epoll_event,
        limit: usize,
        timeout: Duration,
    ) -> io::Result<Option<usize>> {
        // Relaxed: whoever does not see it finds out.
        if self.coarse.load(Relaxed) {
            return Ok(None);
        }
        let timeout = Timespec {
            seconds: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            nanoseconds: timeout.subsec_nanos().into(),
        };
        // SAFETY: there is room for `limit` events (the caller's), and the time is read
        // during the call. No signal mask is given.
        let answer = unsafe {
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
        if answer >= 0 {
            return Ok(Some(answer as usize));
        }
        let why = io::Error::last_os_error();
        // Sandboxes that are older than the call answer EPERM.
        if matches!(why.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) {
            self.coarse.store(true, Relaxed);
            return Ok(None);
        }
        Err(why)
    }
}

fn signs(told: i32) -> Signs {
    Signs {
        input: told & libc::EPOLLIN != 0,
        output: told & libc::EPOLLOUT != 0,
        urgent: told & libc::EPOLLPRI != 0,
        end: told & libc::EPOLLRDHUP != 0,
        hung_up: told & libc::EPOLLHUP != 0,
        error: told & libc::EPOLLERR != 0,
    }
}

/// What to do about it, where there is something to do.
fn refused(why: io::Error) -> io::Error {
    let next = match why.raw_os_error() {
        Some(libc::ENOSPC) => "raise /proc/sys/fs/epoll/max_user_watches",
        Some(libc::ENOMEM) => "the kernel is out of memory: close some, or give the machine more",
        // EPERM among them, for files: programs look at its number.
        _ => return why,
    };
    io::Error::new(why.kind(), format!("cannot wait for this descriptor: {why}: {next}"))
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::{
        io::ErrorKind,
        os::{fd::AsFd, unix::net::UnixStream},
        time::{Duration, Instant},
    };

    use super::{Epoll, refused};
    use crate::engine::{
        driver::{backend::Events, interest::Interest, ready::Ready, sources::Token},
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
            assert!(events.found.is_empty(), "a signal is nobody's event");
        }
    }

    /// Edge-triggered: a signal is heard once, though nobody reads the eventfd.
    #[test]
    fn each_signal_ends_one_wait() {
        let (epoll, mut events) = (epoll(false), Events::new(8));
        for _ in 0..3 {
            epoll.signal();
            epoll.wait(&mut events, None).unwrap();
            let start = Instant::now();
            epoll.wait(&mut events, Some(Duration::from_millis(2))).unwrap();
            assert!(start.elapsed() >= Duration::from_millis(2), "the signal was heard again");
        }
    }

    #[test]
    fn an_event_is_told_once() {
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

    #[test]
    fn a_refusal_says_what_to_do() {
        let full = refused(std::io::Error::from_raw_os_error(libc::ENOSPC));
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        assert!(full.to_string().contains("max_user_watches"), "{full}");
        let twice = refused(std::io::Error::from_raw_os_error(libc::EEXIST));
        assert_eq!(twice.raw_os_error(), Some(libc::EEXIST), "others are passed on");
    }
}
