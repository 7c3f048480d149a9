//! The sending half of a watch channel.
//!
//! # Checked by
//! `the_last_sender_against_changed_ends_it`,
//! `a_send_against_changed_shows_its_value`; weakened as `watch_last_sender_closes`.

use std::{fmt, future::Future};

use super::{
    error::SendError,
    receiver::Receiver,
    receiver_count::Gone,
    shared::{Ref, Shared},
};
use crate::engine::{
    prim::{
        Arc,
        Ordering::{AcqRel, Acquire, Relaxed},
        weakened, write,
    },
    work::thread_context::LockHeldGuard,
};

/// The sending half of a watch channel.
///
/// Clones send into the same channel.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::watch::Sender;
///
/// let sender = Sender::new(1);
/// let receiver = sender.subscribe();
/// sender.send(2).unwrap();
/// assert_eq!(*receiver.borrow(), 2);
/// ```
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Creates a channel without a receiver; see [`channel`](super::channel).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch::Sender;
    ///
    /// let sender = Sender::new("first");
    /// assert_eq!(sender.receiver_count(), 0);
    /// assert_eq!(*sender.borrow(), "first");
    /// ```
    pub fn new(init: T) -> Self {
        Self::with_receivers(init, 0, 0)
    }

    /// Creates a channel with a count of receivers and of earlier versions.
    ///
    /// Tests pass a large `versions` to begin close to the wrap-around.
    pub(super) fn with_receivers(init: T, receivers: usize, versions: u64) -> Self {
        Self { shared: Arc::new(Shared::new(init, receivers, versions)) }
    }

    #[inline]
    pub(super) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    /// Replaces the value and notifies the receivers.
    ///
    /// Blocks the thread while any [`Ref`] of this channel lives. The previous value is dropped
    /// after the lock is released.
    ///
    /// # Errors
    ///
    /// If there is no receiver, returns the new value in the error and keeps the previous one.
    /// Use [`send_replace`](Self::send_replace) to store a value without receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(1);
    /// sender.send(2).unwrap();
    /// assert_eq!(*receiver.borrow(), 2);
    /// drop(receiver);
    /// assert!(sender.send(3).is_err());
    /// assert_eq!(*sender.borrow(), 2);
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        drop(self.send_replace(value));
        Ok(())
    }

    /// Modifies the value in place and notifies the receivers, if there are any.
    ///
    /// The closure runs under the lock, so it must not borrow from, or send into, the same
    /// channel.
    ///
    /// # Panics
    ///
    /// If the closure panics. The value stays as the closure left it, no receiver is notified,
    /// and the channel stays usable.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(vec![1]);
    /// sender.send_modify(|list| list.push(2));
    /// assert_eq!(*receiver.borrow(), [1, 2]);
    /// ```
    pub fn send_modify<F>(&self, modify: F)
    where
        F: FnOnce(&mut T),
    {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Modifies the value in place, and notifies the receivers if the closure returns `true`.
    ///
    /// Returns the result of the closure. After `false` no receiver is notified, even if the
    /// value was changed.
    ///
    /// The closure runs under the lock, so it must not borrow from, or send into, the same
    /// channel.
    ///
    /// # Panics
    ///
    /// If the closure panics. The value stays as the closure left it, no receiver is notified,
    /// and the channel stays usable.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(1);
    /// let at_most_two = |value: &mut i32| {
    ///     let change = *value < 2;
    ///     *value += i32::from(change);
    ///     change
    /// };
    /// assert!(sender.send_if_modified(at_most_two));
    /// assert!(!sender.send_if_modified(at_most_two));
    /// assert_eq!(*receiver.borrow(), 2);
    /// ```
    #[inline]
    pub fn send_if_modified<F>(&self, modify: F) -> bool
    where
        F: FnOnce(&mut T) -> bool,
    {
        let (mut value, holding) = (write(&self.shared.value), LockHeldGuard::lock());
        if !modify(&mut value) {
            return false;
        }
        // Published under the lock, so that a reader of the value knows its version.
        let pending_wake = self.shared.wait_queues.publish();
        drop((value, holding));
        self.shared.wait_queues.wake(pending_wake);
        true
    }

    /// Replaces the value, notifies the receivers, if there are any, and returns the previous
    /// value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch::Sender;
    ///
    /// let sender = Sender::new(1);
    /// assert_eq!(sender.send_replace(2), 1);
    /// assert_eq!(sender.send_replace(3), 2);
    /// ```
    #[inline]
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_if_modified(|old| {
            std::mem::swap(old, &mut value);
            true
        });
        value
    }

    /// Returns a reference to the value; senders block while the [`Ref`] lives.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch::Sender;
    ///
    /// let sender = Sender::new("value");
    /// assert_eq!(*sender.borrow(), "value");
    /// assert!(!sender.borrow().has_changed());
    /// ```
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref::new(&self.shared, |_| false)
    }

    /// Returns `true` if there is no receiver now.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(());
    /// assert!(!sender.is_closed());
    /// drop(receiver);
    /// assert!(sender.is_closed());
    /// ```
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until there is no receiver.
    ///
    /// New receivers may [`subscribe`](Self::subscribe) later.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// # blitz_io::run(async {
    /// let (sender, receiver) = watch::channel(());
    /// let task = blitz_io::spawn(async move { drop(receiver) });
    /// sender.closed().await;
    /// assert!(sender.is_closed());
    /// # task.await.unwrap();
    /// # });
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> {
        Gone::new(&*self.shared)
    }

    /// Creates a new receiver, for which the current value counts as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, _) = watch::channel(1);
    /// sender.send_replace(2);
    /// let receiver = sender.subscribe();
    /// assert_eq!(*receiver.borrow(), 2);
    /// assert!(!receiver.has_changed().unwrap());
    /// ```
    pub fn subscribe(&self) -> Receiver<T> {
        self.shared.receiver_count.join();
        Receiver::counted(self.shared.clone())
    }

    /// Returns the number of receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch;
    ///
    /// let (sender, receiver) = watch::channel(1);
    /// let _another = receiver.clone();
    /// assert_eq!(sender.receiver_count(), 2);
    /// ```
    #[inline]
    pub fn receiver_count(&self) -> usize {
        self.shared.receiver_count.count()
    }

    /// Returns the number of senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch::Sender;
    ///
    /// let sender = Sender::new(1);
    /// let _another = sender.clone();
    /// assert_eq!(sender.sender_count(), 2);
    /// ```
    pub fn sender_count(&self) -> usize {
        // Acquire: a caller sees what the dropped senders did. Pairs with the AcqRel in `drop`.
        self.shared.senders.load(Acquire)
    }

    /// Returns `true` if both senders send into the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::watch::Sender;
    ///
    /// let (one, two) = (Sender::new(1), Sender::new(1));
    /// assert!(one.same_channel(&one.clone()));
    /// assert!(!one.same_channel(&two));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        // Relaxed: this only counts, and the count cannot reach zero because it includes this
        // sender.
        self.shared.senders.fetch_add(1, Relaxed);
        Self { shared: self.shared.clone() }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what each sender did happens before the close. The `fetch_sub` of each sender
        // pairs with that of the last one.
        let last = self.shared.senders.fetch_sub(1, AcqRel) == 1;
        if last && !weakened!("watch_last_sender_closes") {
            self.shared.wait_queues.close();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.describe(&mut f.debug_struct("Sender"))
    }
}
