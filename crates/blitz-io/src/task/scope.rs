//! Tasks that end before the code that started them goes on.
//!
//! The state of a scope is behind one lock, which a child takes when it is spawned, once
//! more when it can be aborted, and when it ends. Nothing of a user's runs or is dropped
//! under it. A child holds a [`Ticket`] beside its future: whatever ends the child drops
//! the future first and then the ticket, so a scope without tickets has no child that
//! still has anything.
//!
//! # Rejected
//! - Children that borrow from the body: the future of a scope can be dropped or leaked
//!   at any time, and a child on another thread would go on with what it borrowed.
//!   Blocking in the drop until the children have ended would stop the thread that is
//!   to end them.
//! - Children that are polled by the scope itself, as branches of one task: they may
//!   borrow, but never run at the same time.
//! - Going on after a panic until the handle of the child is awaited, as scoped threads
//!   do: a sibling that serves for ever would hide the panic for ever.
//! - A second type of handle: `JoinHandle` says all that there is to say.

use std::{
    any::Any,
    collections::HashMap,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use pin_project_lite::pin_project;

use super::{AbortHandle, JoinHandle};
use crate::{
    engine::prim::{Mutex, discard, lock},
    runtime::Handle,
};

/// Runs `body` with a [`Scope`] on which it can spawn tasks, and completes when the body
/// and all these tasks, its *children*, have ended.
///
/// Children run by themselves, on all threads of the runtime, as those of
/// [`spawn`](super::spawn) do. They may spawn more children through a clone of the
/// scope; these are awaited too. The scope's output is the body's.
///
/// # Panics
///
/// The first panic, of a child or of the body, ends the scope: the body is dropped, all
/// children are aborted, and when the last of them has ended that panic goes on here.
/// So no part of the work goes on beside another that is known to be broken. To survive
/// the panic of a task, start it with [`spawn`](super::spawn) or in a
/// [`JoinSet`](super::JoinSet), whose answers say how it ended.
///
/// # Cancel safety
///
/// Dropping the future of the scope drops the body and aborts all children, but it
/// cannot wait until they have ended: a drop would have to block its thread, which may
/// be the one that is to end them. A child that is inside a poll at that moment goes on
/// to its next `.await`. For the same reason children are `'static`: a child that borrows
/// from its parent could outlive what it borrowed. Share with an [`Arc`], or pass values
/// in and out.
///
/// # Examples
///
/// ```
/// use blitz_io::task;
///
/// # blitz_io::run(async {
/// let total = task::scope(|scope| async move {
///     let parts: Vec<_> = (0..4u64).map(|part| scope.spawn(async move { part * 10 })).collect();
///     let mut total = 0;
///     for part in parts {
///         total += part.await.unwrap();
///     }
///     total
/// })
/// .await;
/// assert_eq!(total, 60);
/// # });
/// ```
///
/// Children of children are awaited as well:
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicUsize, Ordering::Relaxed}};
/// use blitz_io::task::{self, Scope};
///
/// fn visit(scope: &Scope, depth: usize, visited: Arc<AtomicUsize>) {
///     let inner = scope.clone();
///     scope.spawn(async move {
///         visited.fetch_add(1, Relaxed);
///         if depth > 0 {
///             visit(&inner, depth - 1, visited.clone());
///             visit(&inner, depth - 1, visited);
///         }
///     });
/// }
///
/// # blitz_io::run(async {
/// let visited = Arc::new(AtomicUsize::new(0));
/// let count = visited.clone();
/// task::scope(|scope| async move { visit(&scope, 3, count) }).await;
/// assert_eq!(visited.load(Relaxed), 15);
/// # });
/// ```
pub fn scope<F, B>(body: F) -> ScopeFuture<B>
where
    F: FnOnce(Scope) -> B,
    B: Future,
{
    let state = Arc::new(State::new());
    // Made first: if `body` panics here, children that it has spawned are aborted.
    let guard = Guard(state.clone());
    let body = body(Scope { state });
    ScopeFuture { body: Some(body), output: None, guard }
}

/// The right to spawn children of a [`scope`]; clones can be passed to children.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let seven = blitz_io::task::scope(|scope| async move {
///     let child = scope.spawn(async { 7 });
///     child.await.unwrap()
/// });
/// assert_eq!(seven.await, 7);
/// # });
/// ```
#[derive(Clone)]
pub struct Scope {
    state: Arc<State>,
}

pin_project! {
    /// Future for the [`scope`] function.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ScopeFuture<B: Future> {
        #[pin]
        body: Option<B>,
        output: Option<B::Output>,
        guard: Guard,
    }
}

type Payload = Box<dyn Any + Send>;

struct State {
    inner: Mutex<Inner>,
}

struct Inner {
    /// Those that have not ended, by a number of their own; with the means to abort
    /// them, once they are spawned.
    children: HashMap<u64, Option<AbortHandle>>,
    next_key: u64,
    /// New children are refused: the scope is over, is being dropped, or has panicked.
    ending: bool,
    /// The first panic.
    panic: Option<Payload>,
    /// Of the scope's future.
    waker: Option<Waker>,
}

/// What the scope's future finds.
enum Found {
    /// Something is still to come.
    Pending,
    /// A panic; the body and the children must end.
    Panic,
    /// Nothing is left.
    Over(Option<Payload>),
}

impl State {
    fn new() -> Self {
        let inner = Inner {
            children: HashMap::new(),
            next_key: 0,
            ending: false,
            panic: None,
            waker: None,
        };
        Self { inner: Mutex::new(inner) }
    }

    /// Looks at what is left, and leaves the waker if something is.
    fn look(&self, has_body: bool, waker: &Waker) -> Found {
        // Cloned before the lock: it is a user's code.
        let waker = waker.clone();
        let mut inner = lock(&self.inner);
        if inner.panic.is_some() && !inner.ending {
            return Found::Panic;
        }
        if !has_body && inner.children.is_empty() {
            inner.ending = true;
            return Found::Over(inner.panic.take());
        }
        let old = inner.waker.replace(waker);
        drop(inner);
        drop(old);
        Found::Pending
    }

    /// Refuses new children, and aborts those that are there.
    fn end(&self) {
        lock(&self.inner).ending = true;
        self.abort_all();
    }

    fn abort_all(&self) {
        // Aborting may drop a future here, if its runtime is gone: not under the lock.
        let children: Vec<_> = lock(&self.inner).children.values().flatten().cloned().collect();
        children.iter().for_each(AbortHandle::abort);
    }

    /// Keeps the first panic for the scope's future.
    fn keep_panic(&self, payload: Payload) {
        let mut inner = lock(&self.inner);
        let (unused, waker) = if inner.ending || inner.panic.is_some() {
            (Some(payload), None)
        } else {
            inner.panic = Some(payload);
            (None, inner.waker.take())
        };
        drop(inner);
        // The panic hook has reported it.
        discard(unused);
        call(waker);
    }

    /// One more child; `true` if it is refused.
    fn enter(&self) -> (u64, bool) {
        let mut inner = lock(&self.inner);
        let key = inner.next_key;
        inner.next_key += 1;
        inner.children.insert(key, None);
        (key, inner.ending)
    }

    /// The child can be aborted from now on; `true` if it must be.
    fn spawned(&self, key: u64, abort: AbortHandle) -> bool {
        let mut unused = Some(abort);
        let mut inner = lock(&self.inner);
        // It may have ended before.
        if let Some(child) = inner.children.get_mut(&key) {
            *child = unused.take();
        }
        let ending = inner.ending;
        drop(inner);
        drop(unused);
        ending
    }

    fn leave(&self, key: u64) {
        let mut inner = lock(&self.inner);
        let child = inner.children.remove(&key);
        let waker = if inner.children.is_empty() { inner.waker.take() } else { None };
        drop(inner);
        drop(child);
        call(waker);
    }
}

/// Calls whoever polls the scope. A foreign waker that panics must not look like a panic
/// of the child that is about to end, nor meet one.
fn call(waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        discard(payload);
    }
}

impl Scope {
    /// Spawns a child on the current runtime.
    ///
    /// The handle can be awaited for the child's output, or dropped: the scope waits for
    /// the child all the same. It can also [abort](JoinHandle::abort) the child, which
    /// does not trouble the scope. After a panic of the child the scope has that panic,
    /// and the handle one that only says so.
    ///
    /// A child that is spawned after the scope has ended, or while it ends, is aborted
    /// before it begins.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let sum = blitz_io::task::scope(|scope| async move {
    ///     let (one, two) = (scope.spawn(async { 1 }), scope.spawn(async { 2 }));
    ///     one.await.unwrap() + two.await.unwrap()
    /// });
    /// assert_eq!(sum.await, 3);
    /// # });
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (key, child) = self.child(future);
        self.keep(key, super::spawn(child))
    }

    /// Spawns a child on the runtime of `handle`; see [`spawn`](Self::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Runtime::new()?;
    /// let handle = rt.handle().clone();
    /// let one = blitz_io::task::scope(|scope| async move {
    ///     scope.spawn_on(async { 1 }, &handle).await.unwrap()
    /// });
    /// assert_eq!(rt.block_on(one), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(&self, future: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (key, child) = self.child(future);
        self.keep(key, handle.spawn(child))
    }

    /// Aborts the children that the scope has now: for a body that has what it wants.
    ///
    /// The scope goes on, can spawn more, and awaits the end of those that were aborted.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let answer = blitz_io::task::scope(|scope| async move {
    ///     scope.spawn(std::future::pending::<()>()); // would never end
    ///     let answer = scope.spawn(async { 42 }).await.unwrap();
    ///     scope.abort_all();
    ///     answer
    /// });
    /// assert_eq!(answer.await, 42);
    /// # });
    /// ```
    pub fn abort_all(&self) {
        self.state.abort_all();
    }

    fn child<F: Future>(&self, future: F) -> (u64, Child<F>) {
        let (key, refused) = self.state.enter();
        let ticket = Ticket { state: self.state.clone(), key };
        (key, Child { future, ticket, refused })
    }

    fn keep<T>(&self, key: u64, handle: JoinHandle<T>) -> JoinHandle<T> {
        if self.state.spawned(key, handle.abort_handle()) {
            handle.abort();
        }
        handle
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let children = lock(&self.state.inner).children.len();
        f.debug_struct("Scope").field("children", &children).finish_non_exhaustive()
    }
}

/// Ends the scope when its future goes away.
struct Guard(Arc<State>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.end();
        // The future's task need not be kept by a scope whose handles live on.
        let waker = lock(&self.0.inner).waker.take();
        drop(waker);
    }
}

/// A child's place in its scope.
struct Ticket {
    state: Arc<State>,
    key: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.state.leave(self.key);
    }
}

pin_project! {
    struct Child<F> {
        // Dropped before the ticket: see the module.
        #[pin]
        future: F,
        ticket: Ticket,
        refused: bool,
    }
}

impl<F: Future> Future for Child<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if *this.refused {
            // Whoever spawned it is about to abort it.
            return Poll::Pending;
        }
        match catch_unwind(AssertUnwindSafe(|| this.future.poll(cx))) {
            Ok(polled) => polled,
            Err(payload) => {
                this.ticket.state.keep_panic(payload);
                // Not a panic of its own: the hook has reported the first.
                resume_unwind(Box::new("a child of a scope panicked: its scope has the panic"))
            }
        }
    }
}

impl<B: Future> Future for ScopeFuture<B> {
    type Output = B::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        let mut this = self.project();
        let state = &this.guard.0;
        if let Some(body) = this.body.as_mut().as_pin_mut() {
            match catch_unwind(AssertUnwindSafe(|| body.poll(cx))) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(output)) => {
                    *this.output = Some(output);
                    let dropped = catch_unwind(AssertUnwindSafe(|| this.body.set(None)));
                    dropped.unwrap_or_else(|payload| state.keep_panic(payload));
                }
                Err(payload) => state.keep_panic(payload),
            }
        }
        loop {
            match state.look(this.body.is_some(), cx.waker()) {
                Found::Pending => return Poll::Pending,
                Found::Panic => {
                    // Children first: the body may hold what keeps them waiting.
                    state.end();
                    let dropped = catch_unwind(AssertUnwindSafe(|| this.body.set(None)));
                    discard(dropped);
                }
                Found::Over(Some(payload)) => resume_unwind(payload),
                Found::Over(None) => {
                    let output = this.output.take();
                    return Poll::Ready(output.expect("a scope is not polled after its end"));
                }
            }
        }
    }
}

impl<B: Future> fmt::Debug for ScopeFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let children = lock(&self.guard.0.inner).children.len();
        f.debug_struct("ScopeFuture").field("children", &children).finish_non_exhaustive()
    }
}
