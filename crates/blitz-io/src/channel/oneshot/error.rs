//! Errors of receiving from a oneshot channel.

use std::{error::Error, fmt};

/// Error of a receive: the sender was dropped without sending, or the receiver was closed
/// before.
///
/// ```
/// use blitz_io::sync::oneshot;
///
/// let (tx, rx) = oneshot::channel::<u32>();
/// drop(tx);
/// let error: oneshot::error::RecvError = rx.blocking_recv().unwrap_err();
/// assert_eq!(error.to_string(), "channel closed");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecvError(pub(super) ());

/// Error of [`try_recv`](super::Receiver::try_recv).
///
/// ```
/// use blitz_io::sync::oneshot::{self, error::TryRecvError};
///
/// let (tx, mut rx) = oneshot::channel::<u32>();
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
/// drop(tx);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryRecvError {
    /// No value was sent yet, but it may still come.
    Empty,
    /// No value can come: the sender was dropped, the channel was closed, or the value was taken
    /// before.
    Closed,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl Error for RecvError {}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "channel empty",
            Self::Closed => "channel closed",
        })
    }
}

impl Error for TryRecvError {}
