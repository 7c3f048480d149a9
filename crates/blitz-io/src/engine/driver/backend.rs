//! Which mechanism of the system tells of events: the list, and the choice.
//!
//! Each is a file with the same verbs: `add`, `remove`, `forget`, `rearm`, `signal`, `wait`.
//! Here they are chosen between, once for each driver.

use std::{fmt, io, str::FromStr, time::Duration};

#[cfg(target_os = "linux")]
use super::epoll::Epoll;
#[cfg(any(test, not(target_os = "linux")))]
use super::other::Other;
#[cfg(unix)]
use super::poll::Poll;
#[cfg(target_os = "linux")]
use super::uring::Uring;
use super::{Fd, interest::Interest, ready::Ready, sources::Token};

/// What overrides every choice, for tests and for finding out.
const VARIABLE: &str = "BLITZ_IO_BACKEND";

/// How a runtime learns of what happens to its sockets.
///
/// Given to the builder of a runtime. The environment variable `BLITZ_IO_BACKEND` (`auto`,
/// `epoll`, `poll`, `uring`) overrides it.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::IoBackend;
///
/// let backend: IoBackend = "poll".parse()?;
/// assert_eq!(backend, IoBackend::Poll);
/// assert_eq!(backend.to_string(), "poll");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum IoBackend {
    /// What was measured to be the best here: epoll on Linux, kqueue on macOS and BSD, and
    /// the system's completion port on Windows.
    #[default]
    Auto,
    /// Linux's epoll, edge-triggered.
    Epoll,
    /// `poll(2)`, on any Unix: each turn looks at every descriptor, so it is for where
    /// there is nothing else.
    Poll,
    /// Linux's io_uring, by multishot polls. Where the kernel or a sandbox refuses it, or the
    /// kernel is older than 5.17, this is epoll, and `blitz doctor` says why.
    Uring,
}

impl IoBackend {
    const NAMES: [(Self, &str); 4] = [
        (Self::Auto, "auto"),
        (Self::Epoll, "epoll"),
        (Self::Poll, "poll"),
        (Self::Uring, "uring"),
    ];

    /// What the environment says, or else the program.
    pub(super) fn chosen(asked: Option<Self>) -> io::Result<Self> {
        match std::env::var(VARIABLE) {
            Ok(name) if !name.is_empty() => name.parse().map_err(|why: io::Error| {
                io::Error::new(why.kind(), format!("the environment variable {VARIABLE}: {why}"))
            }),
            _ => Ok(asked.unwrap_or_default()),
        }
    }

    /// What a runtime gets here that asks for nothing, found by making one: the name, and why
    /// io_uring was refused if that was asked for.
    ///
    /// # Errors
    /// Why a runtime with I/O would not start.
    pub(crate) fn in_force() -> io::Result<String> {
        Ok(match Selector::new(None)? {
            #[cfg(target_os = "linux")]
            Selector::Epoll(_) => match Self::chosen(None)? {
                Self::Uring => format!("epoll, because io_uring is refused{}", why_no_ring()),
                _ => "epoll".to_owned(),
            },
            #[cfg(target_os = "linux")]
            Selector::Uring(_) => "io_uring".to_owned(),
            #[cfg(unix)]
            Selector::Poll(_) => "poll".to_owned(),
            #[cfg(any(test, not(target_os = "linux")))]
            Selector::Other(_) => "what the system has: kqueue, event ports or IOCP".to_owned(),
        })
    }
}

/// What is said of a ring that cannot be had.
#[cfg(target_os = "linux")]
fn why_no_ring() -> String {
    Uring::new().err().map_or_else(String::new, |why| format!(": {why}"))
}

impl fmt::Display for IoBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMES.iter().find(|(backend, _)| backend == self);
        f.pad(named.map_or("", |(_, name)| name))
    }
}

impl FromStr for IoBackend {
    type Err = io::Error;

    fn from_str(name: &str) -> io::Result<Self> {
        let named = Self::NAMES.iter().find(|(_, known)| name.eq_ignore_ascii_case(known));
        named.map(|(backend, _)| *backend).ok_or_else(|| {
            let why =
                format!("`{name}` is no way to wait for events: say auto, epoll, poll or uring");
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })
    }
}

/// The mechanism of one driver.
#[derive(Debug)]
pub(super) enum Selector {
    #[cfg(target_os = "linux")]
    Epoll(Epoll),
    #[cfg(target_os = "linux")]
    Uring(Box<Uring>),
    #[cfg(unix)]
    Poll(Poll),
    #[cfg(any(test, not(target_os = "linux")))]
    Other(Other),
}

/// Calls the same method of whichever it is.
macro_rules! each {
    ($self:ident, $selector:ident => $call:expr) => {
        match $self {
            #[cfg(target_os = "linux")]
            Selector::Epoll($selector) => $call,
            #[cfg(target_os = "linux")]
            Selector::Uring($selector) => $call,
            #[cfg(unix)]
            Selector::Poll($selector) => $call,
            #[cfg(any(test, not(target_os = "linux")))]
            Selector::Other($selector) => $call,
        }
    };
}

impl Selector {
    /// What the environment or the program asks for, or what suits best.
    pub(super) fn new(asked: Option<IoBackend>) -> io::Result<Self> {
        match IoBackend::chosen(asked)? {
            #[cfg(target_os = "linux")]
            IoBackend::Auto | IoBackend::Epoll => Ok(Self::Epoll(Epoll::new()?)),
            #[cfg(target_os = "linux")]
            IoBackend::Uring => match Uring::new() {
                Ok(ring) => Ok(Self::Uring(Box::new(ring))),
                Err(_) => Ok(Self::Epoll(Epoll::new()?)),
            },
            #[cfg(not(target_os = "linux"))]
            IoBackend::Auto => Ok(Self::Other(Other::new()?)),
            #[cfg(unix)]
            IoBackend::Poll => Ok(Self::Poll(Poll::new()?)),
            #[cfg(not(target_os = "linux"))]
            missing => {
                let why = format!(
                    "waiting for events by {missing} is not supported here: choose `IoBackend::Auto`, \
                     or unset {VARIABLE}"
                );
                Err(io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }

    /// Watches a descriptor from now on; what is ready already is an event too.
    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        each!(self, selector => selector.add(fd, token, interest))
    }

    /// Stops watching it, before it is closed.
    pub(super) fn remove(&self, fd: Fd<'_>, token: Token) -> io::Result<()> {
        each!(self, selector => selector.remove(fd, token))
    }

    /// Its registration has ended, whether it was removed or not.
    pub(super) fn forget(&self, token: Token) {
        each!(self, selector => selector.forget(token));
    }

    /// What was ready is no more: tell when it is again. Edge-triggered ones do anyway.
    #[inline]
    pub(super) fn rearm(&self, token: Token, ready: Ready) {
        each!(self, selector => selector.rearm(token, ready));
    }

    /// Ends a wait, or the next one.
    pub(super) fn signal(&self) {
        each!(self, selector => selector.signal());
    }

    /// Waits for events, for at most so long, and tells them. It may end early without any.
    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.found.clear();
        each!(self, selector => selector.wait(events, timeout))
    }
}

/// Where a turn keeps what the system told.
pub(super) struct Events {
    pub(super) found: Vec<Found>,
    /// How many at most, where a mechanism can be told.
    #[cfg(target_os = "linux")]
    pub(super) limit: usize,
    #[cfg(target_os = "linux")]
    pub(super) epoll: Vec<libc::epoll_event>,
    #[cfg(unix)]
    pub(super) poll: super::poll::Asked,
    #[cfg(any(test, not(target_os = "linux")))]
    pub(super) other: super::other::Buffer,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) token: Token,
    pub(super) ready: Ready,
}

impl Events {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            found: Vec::new(),
            #[cfg(target_os = "linux")]
            limit: limit.clamp(1, i32::MAX as usize),
            #[cfg(target_os = "linux")]
            epoll: Vec::new(),
            #[cfg(unix)]
            poll: super::poll::Asked::default(),
            #[cfg(any(test, not(target_os = "linux")))]
            other: super::other::Buffer::new(limit),
        }
    }
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::io::ErrorKind;

    use super::{IoBackend, Selector};

    #[test]
    fn a_backend_is_called_by_its_name() {
        for (backend, name) in IoBackend::NAMES {
            assert_eq!(backend.to_string(), name);
            assert_eq!(name.to_uppercase().parse::<IoBackend>().unwrap(), backend);
        }
        let why = "select".parse::<IoBackend>().unwrap_err();
        assert_eq!(why.kind(), ErrorKind::InvalidInput);
        assert!(why.to_string().contains("`select`") && why.to_string().contains("epoll"), "{why}");
    }

    #[test]
    fn what_the_system_does_not_have_is_refused_in_words() {
        // The variable would override it.
        if std::env::var_os(super::VARIABLE).is_some() {
            return;
        }
        let asked = Selector::new(Some(IoBackend::Uring));
        if cfg!(target_os = "linux") {
            asked.expect("it is io_uring, or epoll in its stead");
            return;
        }
        let why = asked.unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Unsupported);
        assert!(why.to_string().contains("uring"), "{why}");
    }
}
