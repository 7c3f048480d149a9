//! Errors of sending into and receiving from mpsc channels.

use std::{error::Error, fmt};

/// Error of a send into a closed channel; contains the message.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc::{self, error::SendError};
///
/// let (sender, receiver) = mpsc::unbounded_channel();
/// drop(receiver);
/// assert_eq!(sender.send(7), Err(SendError(7)));
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl<T> Error for SendError<T> {}

/// Error of a send that could not complete immediately; contains the message.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc::{self, error::TrySendError};
///
/// let (sender, receiver) = mpsc::channel(1);
/// sender.try_send("first").unwrap();
/// assert_eq!(sender.try_send("second"), Err(TrySendError::Full("second")));
/// drop(receiver);
/// assert_eq!(sender.try_send("third"), Err(TrySendError::Closed("third")));
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum TrySendError<T> {
    /// The channel has no free capacity, or other senders wait for it.
    Full(T),
    /// The receiver was closed or dropped.
    Closed(T),
}

impl<T> TrySendError<T> {
    /// Returns the message that was not sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc::error::TrySendError;
    ///
    /// assert_eq!(TrySendError::Full(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Prints a quoted string, because programs know this output from Tokio.
        match self {
            Self::Full(_) => fmt::Debug::fmt("Full(..)", f),
            Self::Closed(_) => fmt::Debug::fmt("Closed(..)", f),
        }
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "no available capacity",
            Self::Closed(_) => "channel closed",
        })
    }
}

impl<T> Error for TrySendError<T> {}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        Self::Closed(error.0)
    }
}

/// Error of a receive that could not complete immediately.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc::{self, error::TryRecvError};
///
/// let (sender, mut receiver) = mpsc::channel::<u8>(1);
/// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
/// drop(sender);
/// assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
/// ```
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum TryRecvError {
    /// No message is queued, but more may come.
    Empty,
    /// No message is queued, and no more can come.
    Disconnected,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => fmt::Display::fmt("receiving on an empty channel", f),
            Self::Disconnected => fmt::Display::fmt("receiving on a closed channel", f),
        }
    }
}

impl Error for TryRecvError {}

/// An error that no function returns, because receiving returns an `Option`.
///
/// # Examples
///
/// ```
/// #[allow(deprecated)]
/// fn text(error: blitz_io::sync::mpsc::error::RecvError) -> String {
///     error.to_string()
/// }
/// ```
#[derive(Debug, Clone)]
#[doc(hidden)]
#[deprecated(note = "`recv` returns an `Option`: match on `None`")]
pub struct RecvError(());

#[allow(deprecated)]
impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

#[allow(deprecated)]
impl Error for RecvError {}

/// Error of a send that did not complete in time; contains the message.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc::error::SendTimeoutError;
///
/// let error = SendTimeoutError::Timeout(7);
/// assert_eq!(error.to_string(), "timed out waiting on send operation");
/// assert_eq!(error.into_inner(), 7);
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum SendTimeoutError<T> {
    /// The channel had no free capacity until the timeout elapsed.
    Timeout(T),
    /// The receiver was closed or dropped.
    Closed(T),
}

impl<T> SendTimeoutError<T> {
    /// Returns the message that was not sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc::error::SendTimeoutError;
    ///
    /// assert_eq!(SendTimeoutError::Closed(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(_) => fmt::Debug::fmt("Timeout(..)", f),
            Self::Closed(_) => fmt::Debug::fmt("Closed(..)", f),
        }
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "timed out waiting on send operation",
            Self::Closed(_) => "channel closed",
        })
    }
}

impl<T> Error for SendTimeoutError<T> {}
