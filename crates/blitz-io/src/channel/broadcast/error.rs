//! What can go wrong with a broadcast channel.

use std::{error::Error, fmt};

/// Nobody receives: the value comes back.
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

/// Why [`Receiver::recv`](super::Receiver::recv) has no value.
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
    /// Everything was received, and no sender is left.
    Closed,
    /// So many values were overwritten before this receiver saw them. The next call
    /// answers with the oldest one that is still there.
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

/// Why [`Receiver::try_recv`](super::Receiver::try_recv) has no value.
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
    /// Everything was received so far; more may come.
    Empty,
    /// Everything was received, and no sender is left.
    Closed,
    /// So many values were overwritten before this receiver saw them. The next call
    /// answers with the oldest one that is still there.
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
