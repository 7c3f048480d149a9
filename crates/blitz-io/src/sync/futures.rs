//! Named future types of the primitives in [`sync`](super).

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::notify::{Listener, Notify};

/// Future returned from [`Notify::notified`](super::Notify::notified).
///
/// Polling the future again after it completed returns ready again.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::Notify;
///
/// # blitz_io::run(async {
/// let notify = Notify::new();
/// let notified = notify.notified();
/// notify.notify_waiters();
/// notified.await;
/// # });
/// ```
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Notified<'a> {
    notify: &'a Notify,
    listener: Listener,
}

/// Future returned from [`Notify::notified_owned`](super::Notify::notified_owned).
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::{Notify, futures::OwnedNotified};
///
/// # blitz_io::run(async {
/// let notify = Arc::new(Notify::new());
/// let notified: OwnedNotified = notify.clone().notified_owned();
/// notify.notify_waiters();
/// notified.await;
/// # });
/// ```
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct OwnedNotified {
    // `Drop` takes the listener out of the wait queue before either field is dropped.
    notify: Arc<Notify>,
    listener: Listener,
}

impl<'a> Notified<'a> {
    #[inline]
    pub(super) fn new(notify: &'a Notify, listener: Listener) -> Self {
        Self { notify, listener }
    }

    /// Joins the wait queue if there is no notification to take yet.
    ///
    /// From then on [`notify_one`](super::Notify::notify_one) may choose this wait, as if the
    /// future had been polled. So call `enable`, then check for something to do, and only then
    /// await. Returns `true` if the wait was notified already: it is over, and polling the future
    /// returns ready at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use blitz_io::sync::Notify;
    ///
    /// # blitz_io::run(async {
    /// let notify = Notify::new();
    /// let mut notified = pin!(notify.notified());
    /// assert!(!notified.as_mut().enable());
    /// // A notification for something done from here on is not missed.
    /// notify.notify_one();
    /// notified.await;
    /// # });
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        let this = self.as_ref();
        // SAFETY: 1. the listener was created by this `Notify` and is used with no other.
        // 2. `Drop` calls `give_up`.
        unsafe { this.notify.listen(this.listener(), None) }.is_ready()
    }

    fn listener(self: Pin<&Self>) -> Pin<&Listener> {
        // SAFETY: the listener is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.listener) }
    }
}

impl Future for Notified<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_ref();
        // SAFETY: 1. the listener was created by this `Notify` and is used with no other.
        // 2. `Drop` calls `give_up`.
        unsafe { this.notify.poll(this.listener(), cx) }
    }
}

impl Drop for Notified<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        // SAFETY: 1. the listener was created by this `Notify` and is used with no other.
        unsafe { this.notify.give_up(this.listener()) };
    }
}

impl fmt::Debug for Notified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified").field("notify", self.notify).finish_non_exhaustive()
    }
}

impl OwnedNotified {
    #[inline]
    pub(super) fn new(notify: Arc<Notify>, listener: Listener) -> Self {
        Self { notify, listener }
    }

    /// Joins the wait queue if there is no notification to take yet.
    ///
    /// Returns `true` if the wait was notified already. See [`Notified::enable`] for when to call
    /// this.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{pin::pin, sync::Arc};
    /// use blitz_io::sync::Notify;
    ///
    /// let notify = Arc::new(Notify::new());
    /// let mut notified = pin!(notify.clone().notified_owned());
    /// assert!(!notified.as_mut().enable());
    /// notify.notify_one();
    /// assert!(notified.as_mut().enable());
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        let this = self.as_ref();
        // SAFETY: 1. the listener was created by this `Notify` and is used with no other.
        // 2. `Drop` calls `give_up`.
        unsafe { this.notify.listen(this.listener(), None) }.is_ready()
    }

    fn listener(self: Pin<&Self>) -> Pin<&Listener> {
        // SAFETY: the listener is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.listener) }
    }
}

impl Future for OwnedNotified {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_ref();
        // SAFETY: 1. the listener was created by this `Notify` and is used with no other.
        // 2. `Drop` calls `give_up`.
        unsafe { this.notify.poll(this.listener(), cx) }
    }
}

impl Drop for OwnedNotified {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        // SAFETY: 1. the listener was created by this `Notify` and is used with no other.
        unsafe { this.notify.give_up(this.listener()) };
    }
}

impl fmt::Debug for OwnedNotified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedNotified").field("notify", &self.notify).finish_non_exhaustive()
    }
}
