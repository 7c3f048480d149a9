//! Structured concurrency: a scope completes only after all tasks that were spawned in it.
//!
//! The state of a scope is protected by one lock. A child takes the lock when it is spawned, again
//! when its abort handle is stored, and when it ends. No user code runs and no user value is
//! dropped under the lock. A child holds a [`Ticket`] beside its future. However the child ends,
//! its future is dropped before its ticket, so when a scope has no tickets left, none of its
//! children owns anything any more.
//!
//! # Rejected
//! - Children that borrow from the body: the future of a scope can be dropped or leaked at any
//!   time, and a child on another thread would continue to use what it borrowed. Blocking in the
//!   drop until the children have ended would stop the very thread that may have to end them.
//! - Children that the scope itself polls, as branches of one task: they may borrow, but never run
//!   in parallel.
//! - Continuing after a panic until the child's handle is awaited, as scoped threads do: a sibling
//!   that never ends, such as a server, would hide the panic forever.
//! - A separate type of handle: `JoinHandle` already reports everything that a scope could report.

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

/// Runs `body` with a [`Scope`] for spawning tasks, and completes when the body and all these
/// tasks, its *children*, have ended.
///
/// Children are tasks of their own that run on all threads of the runtime, like those of
/// [`spawn`](super::spawn). They may spawn more children through a clone of the scope; the scope
/// waits for these too. The output of the scope is that of the body.
///
/// # Panics
///
/// The first panic, of a child or of the body, ends the scope: the body is dropped, all children
/// are aborted, and when the last of them has ended, that panic is resumed here. So no part of the
/// work continues while another part is known to be broken. To survive the panic of a task, start
/// it with [`spawn`](super::spawn) or in a [`JoinSet`](super::JoinSet), which report it as an
/// error.
///
/// # Cancel safety
///
/// Dropping the future of the scope drops the body and aborts all children, but it cannot wait
/// until they have ended, because the drop would have to block its thread, which may be the one
/// that has to end them. A child that is being polled at that moment continues up to its next
/// `.await`. For the same reason children must be `'static`: a child that borrows from its parent
/// could outlive what it borrowed. Share data with an [`Arc`], or pass values in and out.
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
/// The scope also waits for children of children:
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
    // Created before `body` is called: if the call panics, children that it has spawned are
    // aborted.
    let guard = Guard(state.clone());
    let body = body(Scope { state });
    ScopeFuture { body: Some(body), output: None, guard }
}

/// A handle for spawning children in a [`scope`]; clones of it can be passed to children.
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
    /// The future of [`scope`].
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
    /// The children that have not ended, each under its own key, with a handle to abort it once it
    /// has been spawned.
    children: HashMap<u64, Option<AbortHandle>>,
    next_key: u64,
    /// Set when new children must be refused: the scope is over, is being dropped, or has panicked.
    ending: bool,
    /// The payload of the first panic.
    panic: Option<Payload>,
    /// The waker of the task that polls the scope's future.
    waker: Option<Waker>,
}

/// The state that the scope's future finds when it is polled.
enum Found {
    /// The body or a child is still running.
    Pending,
    /// A child or the body panicked; the body and the children must be ended.
    Panic,
    /// The body and all children have ended; contains the panic, if there was one.
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

    /// Returns what is left of the scope, and stores the waker if the scope must wait.
    fn check(&self, has_body: bool, waker: &Waker) -> Found {
        // Cloned before the lock is taken, because cloning a waker may run user code.
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

    /// Refuses new children and aborts the existing ones.
    fn end(&self) {
        lock(&self.inner).ending = true;
        self.abort_all();
    }

    fn abort_all(&self) {
        // Aborting drops the future on this thread if its runtime is gone, so the lock must not be
        // held.
        let children: Vec<_> = lock(&self.inner).children.values().flatten().cloned().collect();
        children.iter().for_each(AbortHandle::abort);
    }

    /// Stores the first panic and wakes the scope's future, which resumes it.
    fn keep_panic(&self, payload: Payload) {
        let mut inner = lock(&self.inner);
        let (unused, waker) = if inner.ending || inner.panic.is_some() {
            (Some(payload), None)
        } else {
            inner.panic = Some(payload);
            (None, inner.waker.take())
        };
        drop(inner);
        // A later panic is dropped: the panic hook has already reported it.
        discard(unused);
        call(waker);
    }

    /// Registers a new child and returns its key, and `true` if the child must be refused.
    fn enter(&self) -> (u64, bool) {
        let mut inner = lock(&self.inner);
        let key = inner.next_key;
        inner.next_key += 1;
        inner.children.insert(key, None);
        (key, inner.ending)
    }

    /// Stores the abort handle of a child that was spawned; returns `true` if it must be aborted.
    fn spawned(&self, key: u64, abort: AbortHandle) -> bool {
        let mut unused = Some(abort);
        let mut inner = lock(&self.inner);
        // The child may have ended already.
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

/// Wakes the task that polls the scope. A panic of a foreign waker is caught, because it must not
/// look like a panic of the child that is about to end, nor happen while that child is unwinding.
fn call(waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        discard(payload);
    }
}

impl Scope {
    /// Spawns a child on the current runtime and returns a handle to it.
    ///
    /// Awaiting the handle gives the child's output. The handle may also be dropped, and the scope
    /// still waits for the child, or it may [abort](JoinHandle::abort) the child, which does not
    /// affect the scope. If the child panics, the scope resumes that panic, and awaiting the handle
    /// returns a panic with a message that only refers to the scope.
    ///
    /// A child that is spawned after the scope has ended, or while it is ending, is aborted, and
    /// its future is never polled.
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

    /// Aborts all current children of the scope, for a body that has the result it needs.
    ///
    /// The scope continues: more children can be spawned, and it waits for the aborted ones to end.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let output = blitz_io::task::scope(|scope| async move {
    ///     scope.spawn(std::future::pending::<()>()); // would never end
    ///     let output = scope.spawn(async { 42 }).await.unwrap();
    ///     scope.abort_all();
    ///     output
    /// });
    /// assert_eq!(output.await, 42);
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

/// Ends the scope when its future is dropped.
struct Guard(Arc<State>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.end();
        // `Scope` handles may outlive the future, and must not keep the task alive that polled it.
        let waker = lock(&self.0.inner).waker.take();
        drop(waker);
    }
}

/// A child's registration in its scope, which ends when it is dropped.
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
        // Dropped before the ticket, so that a scope without tickets has no child that owns
        // anything.
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
            // The thread that spawned this child is about to abort it.
            return Poll::Pending;
        }
        match catch_unwind(AssertUnwindSafe(|| this.future.poll(cx))) {
            Ok(polled) => polled,
            Err(payload) => {
                this.ticket.state.keep_panic(payload);
                // `resume_unwind` does not call the panic hook, which has already reported the
                // first panic.
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
            match state.check(this.body.is_some(), cx.waker()) {
                Found::Pending => return Poll::Pending,
                Found::Panic => {
                    // Children are aborted before the body is dropped, because the body may hold
                    // what they wait for, and releasing it would let them continue.
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
