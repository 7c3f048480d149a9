//! What can go wrong with timers.

use std::{error, fmt, io};

/// A timer could not do its work.
///
/// Futures do not answer with it: [`Sleep`](super::Sleep) panics with its text if the
/// runtime has ended while it waited.
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
    /// The runtime's timers were shut down.
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

    /// Whether the runtime's timers were shut down.
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

    /// There are too many timers. Here there cannot be: they need no place but their own.
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

    /// Whether there were too many timers.
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

    /// The time is too far away. Here none is.
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

    /// Whether the time was too far away.
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
        // The beginnings are Tokio's, for those who search for them.
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

/// The time was over before the future was done.
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
