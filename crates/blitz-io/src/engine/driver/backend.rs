//! The selectors, by which a driver learns of events, and the choice between them.
//!
//! Each selector is a file with the same methods: `add`, `remove`, `forget`, `rearm`, `signal`,
//! `wait`. This file chooses one of them for each driver.

use std::{fmt, io, str::FromStr, time::Duration};

#[cfg(target_os = "linux")]
use super::epoll::Epoll;
#[cfg(unix)]
use super::poll::Poll;
#[cfg(any(test, not(target_os = "linux")))]
use super::polling_selector::PollingSelector;
#[cfg(target_os = "linux")]
use super::uring::UringSelector;
use super::{Fd, interest::Interest, ready::Ready, record_table::Token};

/// The environment variable that overrides every choice, for tests and experiments.
const VARIABLE: &str = "BLITZ_IO_BACKEND";

/// The system interface through which a runtime learns of I/O readiness.
///
/// Passed to the builder of a runtime. The environment variable `BLITZ_IO_BACKEND` (`auto`,
/// `epoll`, `poll`, `uring`) overrides it. If a backend is requested by name and the system refuses
/// it, the runtime is not built: the error says what was refused, and what to do.
/// [`Handle::io_backend`](crate::runtime::Handle::io_backend) returns the backend that a runtime
/// uses.
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
    /// The backend that was measured to be the best on this system: epoll on Linux, kqueue on macOS
    /// and BSD, and a completion port on Windows. Where a sandbox refuses epoll, it is `poll(2)`.
    #[default]
    Auto,
    /// Linux's epoll, edge-triggered.
    ///
    /// Every call that registers a socket (`bind`, `connect`, `accept`, `AsyncFd::new`) fails with
    /// `ENOSPC` once the user has as many descriptors in epoll as
    /// `/proc/sys/fs/epoll/max_user_watches` allows: raise that limit. `ENOMEM` from such a call
    /// means that the kernel is out of memory.
    Epoll,
    /// `poll(2)`, on any Unix. Each turn scans every descriptor, so it is meant for systems where
    /// no other backend works.
    Poll,
    /// Linux's io_uring, with multishot polls; requires Linux 5.17.
    ///
    /// `Auto` never chooses it. Operations that own their buffers (`read_owned` and similar) use
    /// io_uring independently of this setting, wherever the kernel allows it.
    ///
    /// Meant for current-thread runtimes: an event interrupts the thread that last waited for it,
    /// and with several workers that may be one that sleeps. As measured, epoll is faster with one
    /// worker, and several times faster with two.
    Uring,
}

impl IoBackend {
    const NAMES: [(Self, &str); 4] = [
        (Self::Auto, "auto"),
        (Self::Epoll, "epoll"),
        (Self::Poll, "poll"),
        (Self::Uring, "uring"),
    ];

    /// Returns the backend that the environment names, or else the one that the program requested.
    pub(super) fn chosen(requested: Option<Self>) -> io::Result<Self> {
        match std::env::var(VARIABLE) {
            Ok(name) if !name.is_empty() => name.parse().map_err(|why: io::Error| {
                io::Error::new(why.kind(), format!("the environment variable {VARIABLE}: {why}"))
            }),
            _ => Ok(requested.unwrap_or_default()),
        }
    }

    /// Describes the backend that a runtime without a request would use, found by creating a
    /// selector: its name, and why it is not epoll if that was refused.
    ///
    /// # Errors
    /// Returns the reason why a runtime with I/O would not start.
    pub(crate) fn in_force() -> io::Result<String> {
        Ok(match Selector::new(None)? {
            #[cfg(target_os = "linux")]
            Selector::Epoll(_) => "epoll".to_owned(),
            #[cfg(target_os = "linux")]
            Selector::Uring(_) => "io_uring".to_owned(),
            #[cfg(target_os = "linux")]
            Selector::Poll(_) => match (Self::chosen(None)?, Epoll::new()) {
                (Self::Auto, Err(why)) => format!("poll, because epoll is refused: {why}"),
                _ => "poll".to_owned(),
            },
            #[cfg(all(unix, not(target_os = "linux")))]
            Selector::Poll(_) => "poll".to_owned(),
            #[cfg(any(test, not(target_os = "linux")))]
            Selector::Polling(_) => "what the system has: kqueue, event ports or IOCP".to_owned(),
        })
    }
}

/// Returns true if the error means that the kernel or a sandbox will never allow the call. Any
/// other error is temporary, or is reported as it is.
#[cfg(target_os = "linux")]
fn is_refusal(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES))
}

/// Returns the error for a backend that was requested by name and is refused here.
#[cfg(target_os = "linux")]
fn refused_error(requested: IoBackend, why: io::Error) -> io::Error {
    if matches!(why.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
        return why;
    }
    let text = format!(
        "waiting for events by {requested} is refused here ({why}): choose `IoBackend::Auto`, or unset \
         {VARIABLE}; `blitz doctor` shows what this system allows"
    );
    io::Error::new(io::ErrorKind::Unsupported, text)
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

/// The selector of one driver.
#[derive(Debug)]
pub(super) enum Selector {
    #[cfg(target_os = "linux")]
    Epoll(Epoll),
    #[cfg(target_os = "linux")]
    Uring(Box<UringSelector>),
    #[cfg(unix)]
    Poll(Poll),
    #[cfg(any(test, not(target_os = "linux")))]
    Polling(PollingSelector),
}

/// Calls the same method on whichever selector it is.
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
            Selector::Polling($selector) => $call,
        }
    };
}

impl Selector {
    /// Creates the selector that the environment or the program requests, or else the best one.
    pub(super) fn new(requested: Option<IoBackend>) -> io::Result<Self> {
        match IoBackend::chosen(requested)? {
            #[cfg(target_os = "linux")]
            IoBackend::Auto => match Epoll::new() {
                Ok(epoll) => Ok(Self::Epoll(epoll)),
                Err(why) if is_refusal(&why) => Ok(Self::Poll(Poll::new()?)),
                Err(why) => Err(why),
            },
            #[cfg(target_os = "linux")]
            IoBackend::Epoll => match Epoll::new() {
                Ok(epoll) => Ok(Self::Epoll(epoll)),
                Err(why) => Err(refused_error(IoBackend::Epoll, why)),
            },
            #[cfg(target_os = "linux")]
            IoBackend::Uring => match UringSelector::new() {
                Ok(selector) => Ok(Self::Uring(Box::new(selector))),
                Err(why) => Err(refused_error(IoBackend::Uring, why)),
            },
            #[cfg(not(target_os = "linux"))]
            IoBackend::Auto => Ok(Self::Polling(PollingSelector::new()?)),
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

    /// Returns the backend's name; [`IoBackend::Auto`] for selectors that have no name of their
    /// own.
    pub(super) fn backend(&self) -> IoBackend {
        match self {
            #[cfg(target_os = "linux")]
            Self::Epoll(_) => IoBackend::Epoll,
            #[cfg(target_os = "linux")]
            Self::Uring(_) => IoBackend::Uring,
            #[cfg(unix)]
            Self::Poll(_) => IoBackend::Poll,
            #[cfg(any(test, not(target_os = "linux")))]
            Self::Polling(_) => IoBackend::Auto,
        }
    }

    /// Starts watching a descriptor; if it is ready already, that is reported as an event too.
    pub(super) fn add(&self, fd: Fd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        each!(self, selector => selector.add(fd, token, interest))
    }

    /// Stops watching a descriptor; to be called before it is closed.
    pub(super) fn remove(&self, fd: Fd<'_>, token: Token) -> io::Result<()> {
        each!(self, selector => selector.remove(fd, token))
    }

    /// Ends a registration, whether its descriptor was removed or not.
    pub(super) fn forget(&self, token: Token) {
        each!(self, selector => selector.forget(token));
    }

    /// Requests an event for when `ready`, which was just cleared, is ready again. Edge-triggered
    /// selectors need not be rearmed.
    #[inline]
    pub(super) fn rearm(&self, token: Token, ready: Ready) {
        each!(self, selector => selector.rearm(token, ready));
    }

    /// Ends a wait, or the next one.
    pub(super) fn signal(&self) {
        each!(self, selector => selector.signal());
    }

    /// Waits for events, for at most `timeout`, and collects them in `events`. It may return early
    /// without any.
    pub(super) fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.found.clear();
        each!(self, selector => selector.wait(events, timeout))
    }
}

/// The buffers in which a turn collects its events.
pub(super) struct Events {
    pub(super) found: Vec<SelectorEvent>,
    /// The maximum number of events per turn, for selectors that accept a limit.
    #[cfg(target_os = "linux")]
    pub(super) limit: usize,
    #[cfg(target_os = "linux")]
    pub(super) epoll: Vec<libc::epoll_event>,
    #[cfg(unix)]
    pub(super) poll: super::poll::PollArgs,
    #[cfg(any(test, not(target_os = "linux")))]
    pub(super) polling: super::polling_selector::Buffer,
}

/// One readiness event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SelectorEvent {
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
            poll: super::poll::PollArgs::default(),
            #[cfg(any(test, not(target_os = "linux")))]
            polling: super::polling_selector::Buffer::new(limit),
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
    fn a_backend_that_the_system_lacks_is_refused_with_a_reason() {
        // The environment variable would override the request.
        if std::env::var_os(super::VARIABLE).is_some() {
            return;
        }
        let requested = Selector::new(Some(IoBackend::Uring));
        if cfg!(target_os = "linux") && requested.is_ok() {
            return;
        }
        let why = requested.expect_err("only Linux has it");
        assert_eq!(why.kind(), ErrorKind::Unsupported);
        assert!(why.to_string().contains("uring"), "{why}");
        assert!(why.to_string().contains("unset BLITZ_IO_BACKEND"), "{why}");
    }
}
