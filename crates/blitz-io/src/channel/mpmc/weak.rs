//! Handles that do not keep a channel open.

use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
};

use super::{Receiver, Sender, chan::Chan};

/// A [`Sender`] that does not keep the channel open.
///
/// # Examples
///
/// ```
/// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
/// let weak = tx.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(tx);
/// assert!(weak.upgrade().is_none() && rx.is_closed());
/// ```
pub struct WeakSender<T> {
    chan: NonNull<Chan<T>>,
}

// SAFETY: the handle is a shared reference to a `Chan<T>`, which threads may share if `T: Send`.
unsafe impl<T: Send> Send for WeakSender<T> {}
// SAFETY: a `&WeakSender` gives only a shared reference to a `Chan<T>`, which threads may share
// if `T: Send`.
unsafe impl<T: Send> Sync for WeakSender<T> {}
// A panic in user code never leaves the channel in an inconsistent state.
impl<T> UnwindSafe for WeakSender<T> {}
impl<T> RefUnwindSafe for WeakSender<T> {}

impl<T> WeakSender<T> {
    /// Creates a weak sender, which holds its own share of the allocation.
    ///
    /// # Safety
    /// 1. The channel is alive.
    pub(super) unsafe fn new(chan: NonNull<Chan<T>>) -> Self {
        let weak = Self { chan };
        weak.chan().share();
        weak.chan().senders.add_weak();
        weak
    }

    fn chan(&self) -> &Chan<T> {
        // SAFETY: this handle holds a share of the allocation, so the channel is alive.
        unsafe { self.chan.as_ref() }
    }

    /// Returns a sender, or `None` if all senders were dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some_and(|again| again.same_channel(&tx)));
    /// drop((tx, rx));
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<Sender<T>> {
        // SAFETY: 1. of `Sender::new`: `add_unless_gone` has just counted this sender.
        self.chan().senders.add_unless_gone().then(|| unsafe { Sender::new(self.chan) })
    }

    /// Returns the number of senders; weak senders do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let weak = tx.downgrade();
    /// assert_eq!(weak.strong_count(), 1);
    /// drop((tx, rx));
    /// assert_eq!(weak.strong_count(), 0);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.chan().senders.strong()
    }

    /// Returns the number of weak senders.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let weak = tx.downgrade();
    /// assert_eq!(weak.clone().weak_count(), 2);
    /// assert_eq!(weak.weak_count(), 1);
    /// # drop((tx, rx));
    /// ```
    pub fn weak_count(&self) -> usize {
        self.chan().senders.weak()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        // SAFETY: 1. of `new`: this handle holds a share, so the channel is alive.
        unsafe { Self::new(self.chan) }
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.chan().senders.remove_weak();
        // SAFETY: 1. of `give_up`: the share is this handle's own, and the handle is being
        // dropped.
        unsafe { Chan::give_up(self.chan) };
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

/// A [`Receiver`] that does not keep the channel open.
///
/// # Examples
///
/// ```
/// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
/// let weak = rx.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(rx);
/// assert!(weak.upgrade().is_none() && tx.is_closed());
/// ```
pub struct WeakReceiver<T> {
    chan: NonNull<Chan<T>>,
}

// SAFETY: the handle is a shared reference to a `Chan<T>`, which threads may share if `T: Send`.
unsafe impl<T: Send> Send for WeakReceiver<T> {}
// SAFETY: a `&WeakReceiver` gives only a shared reference to a `Chan<T>`, which threads may
// share if `T: Send`.
unsafe impl<T: Send> Sync for WeakReceiver<T> {}
// A panic in user code never leaves the channel in an inconsistent state.
impl<T> UnwindSafe for WeakReceiver<T> {}
impl<T> RefUnwindSafe for WeakReceiver<T> {}

impl<T> WeakReceiver<T> {
    /// Creates a weak receiver, which holds its own share of the allocation.
    ///
    /// # Safety
    /// 1. The channel is alive.
    pub(super) unsafe fn new(chan: NonNull<Chan<T>>) -> Self {
        let weak = Self { chan };
        weak.chan().share();
        weak.chan().receivers.add_weak();
        weak
    }

    fn chan(&self) -> &Chan<T> {
        // SAFETY: this handle holds a share of the allocation, so the channel is alive.
        unsafe { self.chan.as_ref() }
    }

    /// Returns a receiver, or `None` if all receivers were dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let weak = rx.downgrade();
    /// assert!(weak.upgrade().is_some_and(|again| again.same_channel(&rx)));
    /// drop((rx, tx));
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<Receiver<T>> {
        // SAFETY: 1. of `Receiver::new`: `add_unless_gone` has just counted this receiver.
        self.chan().receivers.add_unless_gone().then(|| unsafe { Receiver::new(self.chan) })
    }

    /// Returns the number of receivers; weak receivers do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let weak = rx.downgrade();
    /// assert_eq!(weak.strong_count(), 1);
    /// drop((tx, rx));
    /// assert_eq!(weak.strong_count(), 0);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.chan().receivers.strong()
    }

    /// Returns the number of weak receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// let (tx, rx) = blitz_io::channel::mpmc::channel::<u32>(1);
    /// let weak = rx.downgrade();
    /// assert_eq!(weak.clone().weak_count(), 2);
    /// assert_eq!(weak.weak_count(), 1);
    /// # drop((tx, rx));
    /// ```
    pub fn weak_count(&self) -> usize {
        self.chan().receivers.weak()
    }
}

impl<T> Clone for WeakReceiver<T> {
    fn clone(&self) -> Self {
        // SAFETY: 1. of `new`: this handle holds a share, so the channel is alive.
        unsafe { Self::new(self.chan) }
    }
}

impl<T> Drop for WeakReceiver<T> {
    fn drop(&mut self) {
        self.chan().receivers.remove_weak();
        // SAFETY: 1. of `give_up`: the share is this handle's own, and the handle is being
        // dropped.
        unsafe { Chan::give_up(self.chan) };
    }
}

impl<T> fmt::Debug for WeakReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakReceiver").finish_non_exhaustive()
    }
}
