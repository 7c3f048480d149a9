//! The receiving half of a watch channel, which remembers the last version it has seen.

use std::{
    fmt,
    future::{Future, poll_fn},
    task::{Context, Poll, ready},
};

use super::{
    error::RecvError,
    shared::{Ref, Shared},
    wait_queues::{Change, Version, WaitQueues},
};
use crate::engine::{prim::Arc, work::task::budget};

/// The receiving half of a watch channel.
///
/// A clone starts with the same version seen as the original.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::watch;
///
/// let (sender, mut receiver) = watch::channel(1);
/// sender.send(2).unwrap();
/// let clone = receiver.clone();
/// assert_eq!(*receiver.borrow_and_update(), 2);
/// assert!(!receiver.has_changed().unwrap());
/// assert!(clone.has_changed().unwrap());
/// ```
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: Version,
}

impl<T> Receiver<T> {
    /// Creates a receiver that the receiver_count already counts, with the current version as seen.
    pub(super) fn counted(shared: Arc<Shared<T>>) -> Self {
        let seen = shared.wait_queues.state().version();
        Self { shared, seen }
    }

    /// Returns a reference to the value without marking it as seen.
    ///
    /// Senders block while the [`Ref`] lives.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(1);
    /// sender.send(2).unwrap();
    /// assert_eq!(*receiver.borrow(), 2);
    /// assert!(receiver.has_changed().unwrap());
    /// ```
    #[inline]
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref::new(&self.shared, |wait_queues| wait_queues.state().version() != self.seen)
    }

    /// Returns a reference to the value and marks it as seen.
    ///
    /// Senders block while the [`Ref`] lives.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, mut receiver) = watch::channel(1);
    /// sender.send(2).unwrap();
    /// assert_eq!(*receiver.borrow_and_update(), 2);
    /// assert!(!receiver.has_changed().unwrap());
    /// ```
    #[inline]
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        see(&self.shared, &mut self.seen)
    }

    /// Returns `true` if there is a value that this receiver has not seen.
    ///
    /// # Errors
    ///
    /// If the last sender was dropped, even if the last value was not seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(1);
    /// assert!(!receiver.has_changed().unwrap());
    /// sender.send(2).unwrap();
    /// assert!(receiver.has_changed().unwrap());
    /// drop(sender);
    /// assert!(receiver.has_changed().is_err());
    /// ```
    #[inline]
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let now = self.shared.wait_queues.state();
        if now.is_closed() { Err(RecvError(())) } else { Ok(now.version() != self.seen) }
    }

    /// Returns `true` if the last sender was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(1);
    /// assert!(!receiver.is_closed());
    /// drop(sender);
    /// assert!(receiver.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared.wait_queues.state().is_closed()
    }

    /// Marks the value as not seen, so the next [`changed`](Self::changed) completes
    /// immediately.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (_sender, mut receiver) = watch::channel(1);
    /// receiver.mark_changed();
    /// assert!(receiver.has_changed().unwrap());
    /// ```
    pub fn mark_changed(&mut self) {
        self.seen = self.seen.before();
    }

    /// Marks the value as seen without borrowing it.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, mut receiver) = watch::channel(1);
    /// sender.send(2).unwrap();
    /// receiver.mark_unchanged();
    /// assert!(!receiver.has_changed().unwrap());
    /// ```
    pub fn mark_unchanged(&mut self) {
        self.seen = self.shared.wait_queues.state().version();
    }

    /// Waits for a value that this receiver has not seen, and marks it as seen.
    ///
    /// # Errors
    ///
    /// If every value was seen and the last sender was dropped.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing, because a value is marked as seen only
    /// when `changed` completes.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// # blitz_io::run(async {
    /// let (sender, mut receiver) = watch::channel("old");
    /// blitz_io::spawn(async move { sender.send("new").unwrap() });
    /// assert!(receiver.changed().await.is_ok());
    /// assert_eq!(*receiver.borrow(), "new");
    /// assert!(receiver.changed().await.is_err());
    /// # });
    /// ```
    #[inline]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), RecvError>> {
        Change::new(&*self.shared, &mut self.seen)
    }

    /// Waits until the closure returns `true` for the value, and returns a reference to it.
    ///
    /// The current value is checked first. Every value that was passed to the closure is marked
    /// as seen.
    ///
    /// The closure runs under the read lock, so it must not send into the same channel.
    ///
    /// # Errors
    ///
    /// If the last sender was dropped and the closure returned `false` for the last value.
    ///
    /// # Panics
    ///
    /// If the closure panics. The channel stays usable.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing, but values that the closure rejected stay marked as
    /// seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// # blitz_io::run(async {
    /// let (sender, mut receiver) = watch::channel(1);
    /// blitz_io::spawn(async move {
    ///     for value in 2..10 {
    ///         sender.send_replace(value);
    ///     }
    /// });
    /// assert!(*receiver.wait_for(|value| *value > 4).await.unwrap() > 4);
    /// assert!(receiver.wait_for(|value| *value > 10).await.is_err());
    /// # });
    /// ```
    pub async fn wait_for(
        &mut self,
        mut f: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, RecvError> {
        let (shared, seen) = (&*self.shared, &mut self.seen);
        // A first check that succeeds spends a budget unit; otherwise the `Change` below spends it.
        let first = |cx: &mut Context<'_>| {
            let unit = ready!(budget::poll_proceed(cx));
            let value = see(shared, seen);
            Poll::Ready(f(&value).then(|| {
                unit.spend();
                value
            }))
        };
        if let Some(value) = poll_fn(first).await {
            return Ok(value);
        }
        loop {
            let closed = Change::new(shared, seen).await.is_err();
            {
                let value = see(shared, seen);
                if (!closed || value.has_changed()) && f(&value) {
                    return Ok(value);
                }
            }
            if closed {
                return Err(RecvError(()));
            }
        }
    }

    /// Returns `true` if both receivers belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(1);
    /// assert!(receiver.same_channel(&sender.subscribe()));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

/// Returns a reference to the value and marks it as seen.
#[inline]
fn see<'a, T>(shared: &'a Shared<T>, seen: &mut Version) -> Ref<'a, T> {
    Ref::new(shared, |wait_queues: &WaitQueues| {
        let now = wait_queues.state().version();
        std::mem::replace(seen, now) != now
    })
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.receiver_count.join();
        Self { shared: self.shared.clone(), seen: self.seen }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.receiver_count.leave();
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.describe(&mut f.debug_struct("Receiver"))
    }
}
