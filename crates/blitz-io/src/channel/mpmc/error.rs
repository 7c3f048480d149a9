//! Why a value could not be sent or received.

use std::{error::Error, fmt};

/// The channel is closed; the value comes back.
///
/// ```
/// use blitz_io::channel::mpmc::{self, error::SendError};
///
/// let (tx, rx) = mpmc::channel(1);
/// drop(rx);
/// assert_eq!(tx.blocking_send(7), Err(SendError(7)));
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct SendError<T>(pub T);

/// Why [`try_send`](super::Sender::try_send) did not send; the value comes back.
///
/// ```
/// use blitz_io::channel::mpmc::{self, error::TrySendError};
///
/// let (tx, rx) = mpmc::channel(1);
/// tx.try_send(1).unwrap();
/// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
/// rx.close();
/// assert_eq!(tx.try_send(3).unwrap_err().into_inner(), 3);
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum TrySendError<T> {
    /// There is no room now.
    Full(T),
    /// The channel is closed.
    Closed(T),
}

/// Why [`try_recv`](super::Receiver::try_recv) has no value.
///
/// ```
/// use blitz_io::channel::mpmc::{self, error::TryRecvError};
///
/// let (tx, rx) = mpmc::channel::<u32>(1);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
/// drop(tx);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
/// ```
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum TryRecvError {
    /// Nothing is there now; something may still come.
    Empty,
    /// The channel is closed, and what was in it has been received.
    Disconnected,
}

impl<T> TrySendError<T> {
    /// The value that was not sent.
    ///
    /// ```
    /// use blitz_io::channel::mpmc::error::TrySendError;
    ///
    /// assert_eq!(TrySendError::Full(5).into_inner(), 5);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        Self::Closed(error.0)
    }
}

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

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
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

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "receiving on an empty channel",
            Self::Disconnected => "receiving on a closed channel",
        })
    }
}

impl Error for TryRecvError {}
