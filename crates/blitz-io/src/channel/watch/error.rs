//! Errors of sending into and receiving from watch channels.

use std::{error::Error, fmt};

/// Error of a send into a channel without receivers; contains the value.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::watch;
///
/// let (sender, receiver) = watch::channel("old");
/// drop(receiver);
/// let error = sender.send("new").unwrap_err();
/// assert_eq!(error.0, "new");
/// assert_eq!(error.to_string(), "channel closed");
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

/// Error of a receive: the last sender was dropped.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::watch;
///
/// let (sender, receiver) = watch::channel(());
/// drop(sender);
/// assert_eq!(receiver.has_changed().unwrap_err().to_string(), "channel closed");
/// ```
#[derive(Debug, Clone)]
pub struct RecvError(pub(super) ());

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl Error for RecvError {}
