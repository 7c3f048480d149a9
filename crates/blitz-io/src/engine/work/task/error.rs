//! The reason that a task has no output: it was cancelled, or it panicked.

use std::{any::Any, fmt, io};

use super::cell::Id;

/// The error of a task that was cancelled or panicked, and so has no output.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let error = blitz_io::spawn(async { panic!("boom") }).await.unwrap_err();
/// assert!(error.is_panic());
/// assert_eq!(error.into_panic().downcast_ref(), Some(&"boom"));
/// # });
/// ```
pub struct JoinError {
    id: Id,
    reason: Reason,
}

enum Reason {
    Cancelled,
    Panicked(Payload),
}

/// The payload of a panic. Shared references to it are only used to read a message
/// out of it, so the error can be `Sync` although a payload is only `Send`.
struct Payload(Box<dyn Any + Send + 'static>);

// SAFETY: through `&Payload` only `message` is reached, which reads a `&str` or
// a `String`; both are `Sync`. The value itself only ever moves, and is `Send`.
unsafe impl Sync for Payload {}

impl Payload {
    fn message(&self) -> Option<&str> {
        let payload = &*self.0;
        let text = payload.downcast_ref::<&'static str>().copied();
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
    }
}

impl JoinError {
    pub(crate) fn cancelled(id: Id) -> Self {
        Self { id, reason: Reason::Cancelled }
    }

    pub(crate) fn panicked(id: Id, payload: Box<dyn Any + Send + 'static>) -> Self {
        Self { id, reason: Reason::Panicked(Payload(payload)) }
    }

    /// Returns true if the task was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let handle = blitz_io::spawn(std::future::pending::<()>());
    /// handle.abort();
    /// assert!(handle.await.unwrap_err().is_cancelled());
    /// # });
    /// ```
    pub fn is_cancelled(&self) -> bool {
        matches!(self.reason, Reason::Cancelled)
    }

    /// Returns true if the task panicked.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let error = blitz_io::spawn(async { panic!("boom") }).await.unwrap_err();
    /// assert!(error.is_panic());
    /// # });
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.reason, Reason::Panicked(_))
    }

    /// Consumes the error and returns the payload of the task's panic.
    ///
    /// # Panics
    ///
    /// If the task was cancelled and did not panic; check [`is_panic`](Self::is_panic)
    /// first, or use [`try_into_panic`](Self::try_into_panic).
    ///
    /// # Examples
    ///
    /// ```should_panic
    /// # blitz_io::run(async {
    /// let error = blitz_io::spawn(async { panic!("boom") }).await.unwrap_err();
    /// if error.is_panic() {
    ///     // Resume the task's panic on this thread.
    ///     std::panic::resume_unwind(error.into_panic());
    /// }
    /// # });
    /// ```
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        self.try_into_panic().expect("`JoinError` reason is not a panic. Check `is_panic` first")
    }

    /// Consumes the error and returns the payload of the task's panic, or the error
    /// itself if the task did not panic.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let error = blitz_io::spawn(async { panic!("boom") }).await.unwrap_err();
    /// let payload = error.try_into_panic().unwrap();
    /// assert_eq!(payload.downcast_ref(), Some(&"boom"));
    /// # });
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, JoinError> {
        match self.reason {
            Reason::Panicked(payload) => Ok(payload.0),
            Reason::Cancelled => Err(self),
        }
    }

    /// Returns the [task ID](crate::task::Id) of the task that failed.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let handle = blitz_io::spawn(async { panic!("boom") });
    /// let id = handle.id();
    /// assert_eq!(handle.await.unwrap_err().id(), id);
    /// # });
    /// ```
    pub fn id(&self) -> Id {
        self.id
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Cancelled => write!(f, "task {} was cancelled", self.id),
            Reason::Panicked(payload) => match payload.message() {
                Some(text) => write!(f, "task {} panicked with message {text:?}", self.id),
                None => write!(f, "task {} panicked", self.id),
            },
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Cancelled => write!(f, "JoinError::Cancelled({:?})", self.id),
            Reason::Panicked(payload) => match payload.message() {
                Some(text) => write!(f, "JoinError::Panic({:?}, {text:?}, ...)", self.id),
                None => write!(f, "JoinError::Panic({:?}, ...)", self.id),
            },
        }
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> io::Error {
        let text = match error.reason {
            Reason::Cancelled => "task was cancelled",
            Reason::Panicked(_) => "task panicked",
        };
        io::Error::other(text)
    }
}
