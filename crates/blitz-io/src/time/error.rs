//! Errors of timers.

use std::{error, fmt, io};

/// Error of a timer.
///
/// No future returns it: [`Sleep`](super::Sleep) panics with its message if it is polled
/// after its runtime has ended.
///
/// # Examples
///
/// ```
/// use blitz_io::time::error::Error;
///
/// let error = Error::shutdown();
/// assert!(error.is_shutdown() && !error.is_at_capacity());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Error(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shutdown,
    AtCapacity,
    Invalid,
}

impl Error {
    /// Creates the error for timers that were shut down with their runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::time::error::Error;
    /// assert!(Error::shutdown().to_string().starts_with("the timer is shutdown"));
    /// ```
    pub fn shutdown() -> Error {
        Error(Kind::Shutdown)
    }

    /// Returns `true` if the timers were shut down with their runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::time::error::Error;
    /// assert!(!Error::invalid().is_shutdown());
    /// ```
    pub fn is_shutdown(&self) -> bool {
        self.0 == Kind::Shutdown
    }

    /// Creates the error for too many timers.
    ///
    /// This error does not occur in this crate, because a timer needs no memory but its own.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::time::error::Error;
    /// assert!(Error::at_capacity().is_at_capacity());
    /// ```
    pub fn at_capacity() -> Error {
        Error(Kind::AtCapacity)
    }

    /// Returns `true` if there were too many timers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::time::error::Error;
    /// assert!(!Error::shutdown().is_at_capacity());
    /// ```
    pub fn is_at_capacity(&self) -> bool {
        self.0 == Kind::AtCapacity
    }

    /// Creates the error for a time that is too far away.
    ///
    /// This error does not occur in this crate, because no time is too far away.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::time::error::Error;
    /// assert!(Error::invalid().is_invalid());
    /// ```
    pub fn invalid() -> Error {
        Error(Kind::Invalid)
    }

    /// Returns `true` if the time was too far away.
    ///
    /// # Examples
    ///
    /// ```
    /// # use blitz_io::time::error::Error;
    /// assert!(!Error::shutdown().is_invalid());
    /// ```
    pub fn is_invalid(&self) -> bool {
        self.0 == Kind::Invalid
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The beginnings are Tokio's, so that a search for them finds the known explanations.
        f.write_str(match self.0 {
            Kind::Shutdown => {
                "the timer is shutdown, must be called from the context of Tokio runtime: the \
                 runtime has ended, so keep it for as long as its timers are awaited"
            }
            Kind::AtCapacity => "timer is at capacity and cannot create a new entry",
            Kind::Invalid => "timer duration exceeds maximum duration",
        })
    }
}

impl error::Error for Error {}

/// Error of [`timeout`](super::timeout()): the time elapsed before the future completed.
///
/// # Examples
///
/// ```
/// use blitz_io::time::{Duration, timeout};
///
/// # blitz_io::run(async {
/// let elapsed = timeout(Duration::ZERO, std::future::pending::<()>()).await.unwrap_err();
/// assert_eq!(elapsed.to_string(), "deadline has elapsed");
/// assert_eq!(std::io::Error::from(elapsed).kind(), std::io::ErrorKind::TimedOut);
/// # });
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl Elapsed {
    pub(crate) fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt("deadline has elapsed", f)
    }
}

impl error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(_: Elapsed) -> io::Error {
        io::ErrorKind::TimedOut.into()
    }
}
