//! Errors of sending into and receiving from broadcast channels.

use std::{error::Error, fmt};

/// Error of a send into a channel without receivers; contains the value.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::broadcast;
///
/// let (sender, receiver) = broadcast::channel(4);
/// drop(receiver);
/// let error = sender.send("hello").unwrap_err();
/// assert_eq!(error.0, "hello");
/// assert_eq!(error.to_string(), "channel closed");
/// ```
#[derive(Debug)]
pub struct SendError<T>(pub T);

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl<T: fmt::Debug> Error for SendError<T> {}

/// Error of [`Receiver::recv`](super::Receiver::recv).
///
/// # Examples
///
/// ```
/// use blitz_io::sync::broadcast::error::RecvError;
///
/// assert_eq!(RecvError::Closed.to_string(), "channel closed");
/// assert_eq!(RecvError::Lagged(3).to_string(), "channel lagged by 3");
/// ```
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum RecvError {
    /// Every value was received, and all senders were dropped.
    Closed,
    /// This number of values was overwritten before the receiver saw them.
    ///
    /// The next call returns the oldest value that is still stored.
    Lagged(u64),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("channel closed"),
            Self::Lagged(count) => write!(f, "channel lagged by {count}"),
        }
    }
}

impl Error for RecvError {}

/// Error of [`Receiver::try_recv`](super::Receiver::try_recv).
///
/// # Examples
///
/// ```
/// use blitz_io::sync::broadcast::{self, error::TryRecvError};
///
/// let (sender, mut receiver) = broadcast::channel::<u8>(1);
/// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
/// drop(sender);
/// assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
/// assert_eq!(TryRecvError::Empty.to_string(), "channel empty");
/// ```
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum TryRecvError {
    /// Every value so far was received; more may come.
    Empty,
    /// Every value was received, and all senders were dropped.
    Closed,
    /// This number of values was overwritten before the receiver saw them.
    ///
    /// The next call returns the oldest value that is still stored.
    Lagged(u64),
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("channel empty"),
            Self::Closed => f.write_str("channel closed"),
            Self::Lagged(count) => write!(f, "channel lagged by {count}"),
        }
    }
}

impl Error for TryRecvError {}
