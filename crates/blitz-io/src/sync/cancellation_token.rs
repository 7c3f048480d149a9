//! Cancellation tokens, which form a tree: cancelling one cancels all below it.
//!
//! A token is a counted reference to a node of the tree. Parents and children are linked by plain
//! pointers, and every node keeps the first node of its tree alive, because the lock of that node
//! guards all pointers of the tree. `tree.rs` has the nodes.

mod tree;

use std::{
    fmt,
    future::Future,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use self::tree::NodeRef;
use super::latch::LatchWait;
use crate::engine::work::task::timestamp::WaitReason;

/// A token that requests one or more tasks to stop.
///
/// A clone is the same token. A [child](Self::child_token) is cancelled with its parent, but
/// not the other way round. A cancelled token stays cancelled. The name and the interface are
/// those of `tokio-util`.
///
/// A token is one allocation. [`is_cancelled`](Self::is_cancelled) is one load, and waiting
/// for a cancellation allocates nothing. Dropped children leave nothing behind.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::CancellationToken;
///
/// # blitz_io::run(async {
/// let token = CancellationToken::new();
/// let task = blitz_io::spawn({
///     let token = token.clone();
///     async move {
///         blitz_io::select! {
///             () = token.cancelled() => "stopped",
///             () = std::future::pending() => "done",
///         }
///     }
/// });
/// token.cancel();
/// assert_eq!(task.await.unwrap(), "stopped");
/// # });
/// ```
pub struct CancellationToken {
    node: NodeRef,
}

impl UnwindSafe for CancellationToken {}
impl RefUnwindSafe for CancellationToken {}

/// Future returned from [`CancellationToken::cancelled`].
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let token = blitz_io::sync::CancellationToken::new();
/// let cancelled = token.cancelled();
/// token.cancel();
/// cancelled.await;
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct WaitForCancellationFuture<'a> {
    token: &'a CancellationToken,
    stay: LatchWait,
}

/// Future returned from [`CancellationToken::cancelled_owned`].
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let token = blitz_io::sync::CancellationToken::new();
/// let task = blitz_io::spawn(token.clone().cancelled_owned());
/// token.cancel();
/// task.await.unwrap();
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct WaitForCancellationFutureOwned {
    // `Drop` ends the stay before either field is dropped.
    token: CancellationToken,
    stay: LatchWait,
}

pin_project! {
    /// Future of [`CancellationToken::run_until_cancelled`], after its first check of the token.
    struct Run<'a, F> {
        #[pin]
        cancelled: WaitForCancellationFuture<'a>,
        #[pin]
        future: F,
    }
}

impl CancellationToken {
    /// Creates a new token, which is not cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = blitz_io::sync::CancellationToken::new();
    /// assert!(!token.is_cancelled());
    /// ```
    pub fn new() -> Self {
        Self { node: NodeRef::new() }
    }

    /// Creates a child token, which is cancelled when this one is.
    ///
    /// If this token is cancelled already, so is the child. The child can also be cancelled
    /// alone. If this token is dropped, the child becomes a child of this token's parent.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = blitz_io::sync::CancellationToken::new();
    /// let (first, second) = (token.child_token(), token.child_token());
    /// first.cancel();
    /// assert!(!token.is_cancelled() && !second.is_cancelled());
    /// token.cancel();
    /// assert!(second.is_cancelled() && token.child_token().is_cancelled());
    /// ```
    pub fn child_token(&self) -> Self {
        Self { node: self.node.child() }
    }

    /// Cancels this token and all its descendants, and wakes all tasks that wait for them.
    ///
    /// A thread that sees a token cancelled also sees all its descendants cancelled. No lock is
    /// held while wakers are called.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = blitz_io::sync::CancellationToken::new();
    /// let grandchild = token.child_token().child_token();
    /// token.cancel();
    /// assert!(grandchild.is_cancelled());
    /// ```
    pub fn cancel(&self) {
        if !self.is_cancelled() {
            self.node.cancel();
        }
    }

    /// Returns `true` if the token is cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = blitz_io::sync::CancellationToken::new();
    /// token.cancel();
    /// assert!(token.is_cancelled());
    /// ```
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.node.latch.is_open()
    }

    /// Waits until the token is cancelled.
    ///
    /// A completed wait consumes one unit of the task's budget, if there is one. Without budget,
    /// a wait that could complete at once is deferred to the task's next poll, but only once, so
    /// a cancellation is seen whatever else the task does.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future has no effect on the token.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let token = blitz_io::sync::CancellationToken::new();
    /// blitz_io::join!(token.cancelled(), async { token.cancel() });
    /// # });
    /// ```
    #[inline]
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        WaitForCancellationFuture { token: self, stay: LatchWait::new() }
    }

    /// Waits until the token is cancelled, in a future that owns the token.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future drops its token, and cancels nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let token = blitz_io::sync::CancellationToken::new();
    /// let cancelled = token.child_token().cancelled_owned();
    /// token.cancel();
    /// cancelled.await;
    /// # });
    /// ```
    #[inline]
    pub fn cancelled_owned(self) -> WaitForCancellationFutureOwned {
        WaitForCancellationFutureOwned { token: self, stay: LatchWait::new() }
    }

    /// Converts the token to a guard that cancels it when dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = blitz_io::sync::CancellationToken::new();
    /// drop(token.clone().drop_guard());
    /// assert!(token.is_cancelled());
    /// ```
    pub fn drop_guard(self) -> DropGuard {
        DropGuard { token: Some(self) }
    }

    /// Creates a guard that borrows the token and cancels it when dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = blitz_io::sync::CancellationToken::new();
    /// drop(token.drop_guard_ref());
    /// assert!(token.is_cancelled());
    /// ```
    pub fn drop_guard_ref(&self) -> DropGuardRef<'_> {
        DropGuardRef { token: Some(self) }
    }

    /// Runs `fut` until it completes, or until the token is cancelled; then drops it and returns
    /// `None`.
    ///
    /// If the token is cancelled before the first poll, `fut` is not polled. After that `fut` is
    /// always polled first, so if it completes when the token is cancelled, its output is
    /// returned.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe if `fut` is.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::CancellationToken;
    ///
    /// # blitz_io::run(async {
    /// let token = CancellationToken::new();
    /// assert_eq!(token.run_until_cancelled(async { 5 }).await, Some(5));
    /// token.cancel();
    /// assert_eq!(token.run_until_cancelled(async { 5 }).await, None);
    /// # });
    /// ```
    pub async fn run_until_cancelled<F>(&self, fut: F) -> Option<F::Output>
    where
        F: Future,
    {
        if self.is_cancelled() {
            return None;
        }
        Run { cancelled: self.cancelled(), future: fut }.await
    }

    /// Runs `fut` until it completes, or until the token is cancelled, in a future that owns the
    /// token.
    ///
    /// Behaves like [`run_until_cancelled`](Self::run_until_cancelled) otherwise.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe if `fut` is.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let token = blitz_io::sync::CancellationToken::new();
    /// let child = token.child_token();
    /// let task = blitz_io::spawn(child.run_until_cancelled_owned(std::future::pending::<()>()));
    /// token.cancel();
    /// assert_eq!(task.await.unwrap(), None);
    /// # });
    /// ```
    pub async fn run_until_cancelled_owned<F>(self, fut: F) -> Option<F::Output>
    where
        F: Future,
    {
        self.run_until_cancelled(fut).await
    }
}

impl Clone for CancellationToken {
    /// Returns another handle of the same token.
    fn clone(&self) -> Self {
        Self { node: self.node.clone() }
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}

/// Compares tokens by identity: only clones of a token are equal.
impl PartialEq for CancellationToken {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl Eq for CancellationToken {}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_cancelled = self.is_cancelled();
        f.debug_struct("CancellationToken").field("is_cancelled", &is_cancelled).finish()
    }
}

impl WaitForCancellationFuture<'_> {
    fn stay(self: Pin<&Self>) -> Pin<&LatchWait> {
        // SAFETY: the stay is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.stay) }
    }
}

impl Future for WaitForCancellationFuture<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_ref();
        // SAFETY: 1. the stay is used with this token's latch only. 2. `Drop` calls `leave`.
        unsafe { this.token.node.latch.poll(this.stay(), cx, WaitReason::Cancellation) }
    }
}

impl Drop for WaitForCancellationFuture<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        // SAFETY: 1. the stay is used with this token's latch only.
        unsafe { this.token.node.latch.leave(this.stay()) };
    }
}

impl fmt::Debug for WaitForCancellationFuture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancellationFuture").finish()
    }
}

impl WaitForCancellationFutureOwned {
    fn stay(self: Pin<&Self>) -> Pin<&LatchWait> {
        // SAFETY: the stay is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.stay) }
    }
}

impl Future for WaitForCancellationFutureOwned {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_ref();
        // SAFETY: 1. the stay is used with this token's latch only. 2. `Drop` calls `leave`.
        unsafe { this.token.node.latch.poll(this.stay(), cx, WaitReason::Cancellation) }
    }
}

impl Drop for WaitForCancellationFutureOwned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future was pinned if it was ever polled, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        // SAFETY: 1. the stay is used with this token's latch only.
        unsafe { this.token.node.latch.leave(this.stay()) };
    }
}

impl fmt::Debug for WaitForCancellationFutureOwned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitForCancellationFutureOwned").finish()
    }
}

impl<F: Future> Future for Run<'_, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Some(output));
        }
        this.cancelled.poll(cx).map(|()| None)
    }
}

/// Guard that owns a token and cancels it when dropped; see
/// [`CancellationToken::drop_guard`].
///
/// # Examples
///
/// ```
/// let token = blitz_io::sync::CancellationToken::new();
/// {
///     let _guard = token.clone().drop_guard();
/// }
/// assert!(token.is_cancelled());
/// ```
#[derive(Debug)]
pub struct DropGuard {
    /// The token, until the guard is disarmed.
    token: Option<CancellationToken>,
}

/// Guard that borrows a token and cancels it when dropped; see
/// [`CancellationToken::drop_guard_ref`].
///
/// # Examples
///
/// ```
/// let token = blitz_io::sync::CancellationToken::new();
/// {
///     let _guard = token.drop_guard_ref();
/// }
/// assert!(token.is_cancelled());
/// ```
#[derive(Debug)]
pub struct DropGuardRef<'a> {
    /// The token, until the guard is disarmed.
    token: Option<&'a CancellationToken>,
}

impl DropGuard {
    /// Returns the token that this guard cancels.
    ///
    /// # Examples
    ///
    /// ```
    /// let guard = blitz_io::sync::CancellationToken::new().drop_guard();
    /// assert!(!guard.token().is_cancelled());
    /// ```
    pub fn token(&self) -> &CancellationToken {
        self.token.as_ref().expect("a guard that was not disarmed has its token")
    }

    /// Consumes the guard and returns its token, without cancelling it.
    ///
    /// # Examples
    ///
    /// ```
    /// let guard = blitz_io::sync::CancellationToken::new().drop_guard();
    /// assert!(!guard.disarm().is_cancelled());
    /// ```
    pub fn disarm(mut self) -> CancellationToken {
        self.token.take().expect("a guard that was not disarmed has its token")
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.token {
            token.cancel();
        }
    }
}

impl<'a> DropGuardRef<'a> {
    /// Returns the token that this guard cancels.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = blitz_io::sync::CancellationToken::new();
    /// let guard = token.drop_guard_ref();
    /// assert!(!guard.token().is_cancelled());
    /// ```
    pub fn token(&self) -> &CancellationToken {
        self.token.expect("a guard that was not disarmed has its token")
    }

    /// Consumes the guard and returns its token, without cancelling it.
    ///
    /// # Examples
    ///
    /// ```
    /// let token = blitz_io::sync::CancellationToken::new();
    /// assert!(!token.drop_guard_ref().disarm().is_cancelled());
    /// ```
    pub fn disarm(mut self) -> &'a CancellationToken {
        self.token.take().expect("a guard that was not disarmed has its token")
    }
}

impl Drop for DropGuardRef<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            token.cancel();
        }
    }
}
