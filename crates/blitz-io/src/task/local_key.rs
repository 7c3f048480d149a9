//! Task-local values, declared with `task_local!`: values that belong to a task or a part of one.
//!
//! The value is stored in the future that [`LocalKey::scope`] returns. While that future is polled
//! or dropped, a thread-local points to the value; a nested scope changes the pointer for its own
//! duration and then restores it. So a scope costs two writes per poll, however large its value is.
//! The thread-local is a plain word without a destructor, so it can be used until the very end of a
//! thread.
//!
//! # Invariants
//! - *Pointed to is borrowed.* The value that a slot points to is borrowed by a [`Scope`] on the
//!   stack of this thread, and the scope restores the slot when it is dropped, before the borrow
//!   ends. No scope leaves this file, so none is forgotten. A fiber that is suspended takes its
//!   scopes along (`work/scopes.rs`), so this holds for each of the stacks of a thread.
//!
//! # Rejected
//! Moving the value into the thread-local and back: it copies large values. With the pointer, a
//! scope inside of `with` would be sound as well; it panics nevertheless, because Tokio documents
//! that it does.

use std::{
    cell::Cell,
    error::Error,
    fmt,
    future::Future,
    marker::{PhantomData, PhantomPinned},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use crate::engine::prim::ThreadKey;
#[cfg(feature = "fiber")]
use crate::engine::work::scopes::ScopeLink;

/// Declares task-local values.
///
/// Each declaration creates a static of type [`LocalKey`](crate::task::LocalKey). It has no value
/// until [`scope`](crate::task::LocalKey::scope) sets one for the duration of one future. Tasks
/// that are spawned inside do not inherit the value.
///
/// # Examples
///
/// ```
/// blitz_io::task_local! {
///     /// The user that sent the request.
///     pub static USER: String;
///     static ATTEMPT: u32;
/// }
///
/// async fn greet() -> String {
///     USER.with(|user| format!("hello, {user}"))
/// }
///
/// # blitz_io::run(async {
/// let greeting = USER.scope("Ada".into(), greet()).await;
/// assert_eq!(greeting, "hello, Ada");
/// assert!(ATTEMPT.try_get().is_err());
/// # });
/// ```
#[macro_export]
macro_rules! task_local {
    ($( $(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty );* $(;)?) => { $(
        $(#[$attribute])*
        $visibility static $name: $crate::task::LocalKey<$type> = {
            ::std::thread_local! {
                static __SLOT: $crate::task::__Slot<$type> = const { $crate::task::__Slot::empty() };
            }
            $crate::task::LocalKey::__new(__SLOT)
        };
    )* };
    ($( $(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty $(= $value:expr)? );* $(;)?) => {
        ::core::compile_error!(
            "a task-local has no initial value: remove `= …`, and give it one with `scope`"
        );
    };
}

/// A pointer to the value of the innermost scope on a thread.
#[doc(hidden)]
#[derive(Debug)]
pub struct Slot<T> {
    value: Cell<Option<NonNull<T>>>,
    /// The number of calls of `with` in progress.
    borrows: Cell<usize>,
}

impl<T> Slot<T> {
    #[doc(hidden)]
    #[allow(clippy::new_without_default, reason = "`task_local!` needs a constant")]
    pub const fn empty() -> Self {
        Self { value: Cell::new(None), borrows: Cell::new(0) }
    }
}

/// A key for a task-local value, declared with [`task_local!`](crate::task_local).
///
/// # Examples
///
/// ```
/// blitz_io::task_local! {
///     static DEPTH: u32;
/// }
///
/// # blitz_io::run(async {
/// let inner = DEPTH.scope(1, async {
///     // A nested scope hides the outer value for its duration.
///     let inner = DEPTH.scope(DEPTH.get() + 1, async { DEPTH.get() }).await;
///     assert_eq!(DEPTH.get(), 1);
///     inner
/// });
/// assert_eq!(inner.await, 2);
/// # });
/// ```
pub struct LocalKey<T: 'static> {
    slot: ThreadKey<Slot<T>>,
}

/// A guard: while it lives, the slot of this thread points to `value`, or to nothing if `None`.
#[repr(C)]
struct Scope<'a, T: 'static> {
    #[cfg(feature = "fiber")]
    link: ScopeLink,
    key: &'static LocalKey<T>,
    /// The pointer that the slot does not hold at the moment: the former one while this scope is
    /// active, and this scope's own one otherwise.
    other: Cell<Option<NonNull<T>>>,
    value: PhantomData<&'a T>,
}

impl<'a, T> Scope<'a, T> {
    fn enter(key: &'static LocalKey<T>, value: Option<&'a T>) -> Self {
        let scope = Self {
            // SAFETY: 1. `exchange_linked` may be called with this link, because the link is the
            // first field of this scope, as its own obligation demands.
            #[cfg(feature = "fiber")]
            link: unsafe { ScopeLink::new(Self::exchange_linked) },
            key,
            other: Cell::new(value.map(NonNull::from)),
            value: PhantomData,
        };
        scope.exchange();
        scope
    }

    fn exchange(&self) {
        self.key.slot.with(|slot| self.other.set(slot.value.replace(self.other.get())));
    }

    /// # Safety
    /// 1. `link` is the link of a live scope of this type.
    #[cfg(feature = "fiber")]
    unsafe fn exchange_linked(link: *const ScopeLink) {
        // SAFETY: obligation 1 makes `link` the first field of a `Self`, and `repr(C)` puts it at
        // the same address.
        unsafe { &*link.cast::<Self>() }.exchange();
    }
}

impl<T> Drop for Scope<'_, T> {
    fn drop(&mut self) {
        self.exchange();
    }
}

/// A guard that registers a scope or a borrow with the fiber that has it on its stack, so
/// the fiber takes it along when it is suspended. It is dropped before the scope or borrow is.
#[cfg(feature = "fiber")]
struct Chained<'a, S>(&'a S);

#[cfg(feature = "fiber")]
impl<'a, S> Chained<'a, S> {
    /// # Safety
    /// 1. `S` is `repr(C)`, and its first field is a `ScopeLink`.
    unsafe fn new(linked: &'a S) -> Self {
        // SAFETY: 1. the link does not move until `drop` calls `leave`: it is borrowed until then,
        // and this guard is on the same stack, does not leave the file and is never forgotten. 2.
        // The pointer is derived from a reference to the whole `S`.
        unsafe { ScopeLink::enter((&raw const *linked).cast()) };
        Self(linked)
    }
}

#[cfg(feature = "fiber")]
impl<S> Drop for Chained<'_, S> {
    fn drop(&mut self) {
        // SAFETY: 1. `new` entered this link.
        unsafe { ScopeLink::leave((&raw const *self.0).cast()) };
    }
}

/// Creates a `Chained` guard for a local variable if fibers are enabled.
macro_rules! chained {
    ($linked:ident) => {
        #[cfg(feature = "fiber")]
        // SAFETY: 1. `Scope` and `Borrow` are `repr(C)` and have a `ScopeLink` as their first
        // field.
        let _chained = unsafe { Chained::new(&$linked) };
        #[cfg(not(feature = "fiber"))]
        let _ = &$linked;
    };
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn __new(slot: ThreadKey<Slot<T>>) -> Self {
        Self { slot }
    }

    /// Sets the value of this key while the future `f` runs.
    ///
    /// The value is available when `f` is polled and also when it is dropped. It moves with the
    /// future from thread to thread and is dropped with it;
    /// [`take_value`](TaskLocalFuture::take_value) takes it back.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::task_local! {
    ///     static NUMBER: u32;
    /// }
    ///
    /// # blitz_io::run(async {
    /// let task = blitz_io::spawn(NUMBER.scope(7, async { NUMBER.get() }));
    /// assert_eq!(task.await.unwrap(), 7);
    /// # });
    /// ```
    pub fn scope<F>(&'static self, value: T, f: F) -> TaskLocalFuture<T, F>
    where
        F: Future,
    {
        TaskLocalFuture { key: self, value: Some(value), future: Some(f), pinned: PhantomPinned }
    }

    /// Sets the value of this key for the duration of a call of `f`.
    ///
    /// # Panics
    ///
    /// If called inside [`with`](Self::with) of the same key.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::task_local! {
    ///     static NUMBER: u32;
    /// }
    ///
    /// assert_eq!(NUMBER.sync_scope(7, || NUMBER.get()), 7);
    /// assert!(NUMBER.try_get().is_err());
    /// ```
    #[track_caller]
    pub fn sync_scope<F, R>(&'static self, value: T, f: F) -> R
    where
        F: FnOnce() -> R,
    {
        self.assert_not_borrowed();
        let scope = Scope::enter(self, Some(&value));
        chained!(scope);
        f()
    }

    /// Calls `f` with a reference to the value and returns its result.
    ///
    /// # Panics
    ///
    /// Outside of a scope of this key; [`try_with`](Self::try_with) returns an error instead.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::task_local! {
    ///     static NAME: String;
    /// }
    ///
    /// let length = NAME.sync_scope("four".into(), || NAME.with(|name| name.len()));
    /// assert_eq!(length, 4);
    /// ```
    #[track_caller]
    pub fn with<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        match self.try_with(f) {
            Ok(result) => result,
            Err(AccessError { .. }) => panic!(
                "cannot access a task-local storage value without setting it first: \
                 call this inside of the key's `scope` or `sync_scope`"
            ),
        }
    }

    /// Calls `f` with a reference to the value and returns its result, or an error if no value is
    /// set.
    ///
    /// # Errors
    ///
    /// [`AccessError`] outside of a scope of this key.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::task_local! {
    ///     static NAME: String;
    /// }
    ///
    /// let error = NAME.try_with(|name| name.len()).unwrap_err();
    /// assert_eq!(error.to_string(), "task-local value not set");
    /// ```
    pub fn try_with<F, R>(&'static self, f: F) -> Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        let value = self.slot.with(|slot| slot.value.get()).ok_or(AccessError { private: () })?;
        let borrow = Borrow::new(self);
        chained!(borrow);
        // SAFETY: by the invariant 'pointed to is borrowed', a scope borrows the value. Its frame
        // is below this one on the stack of this thread, so the borrow lasts longer than this call.
        Ok(f(unsafe { value.as_ref() }))
    }
}

impl<T> LocalKey<T> {
    #[track_caller]
    fn assert_not_borrowed(&'static self) {
        assert!(
            self.slot.with(|slot| slot.borrows.get()) == 0,
            "cannot enter a task-local scope while the task-local storage is borrowed: enter it \
             outside of the key's `with`"
        );
    }
}

/// A call of `with` in progress.
#[repr(C)]
struct Borrow<T: 'static> {
    #[cfg(feature = "fiber")]
    link: ScopeLink,
    key: &'static LocalKey<T>,
    /// Set while this call is included in `Slot::borrows`.
    counts: Cell<bool>,
}

impl<T> Borrow<T> {
    fn new(key: &'static LocalKey<T>) -> Self {
        let borrow = Self {
            // SAFETY: 1. `exchange_linked` may be called with this link, because the link is the
            // first field of this borrow, as its own obligation demands.
            #[cfg(feature = "fiber")]
            link: unsafe { ScopeLink::new(Self::exchange_linked) },
            key,
            counts: Cell::new(false),
        };
        borrow.exchange();
        borrow
    }

    fn exchange(&self) {
        let counted = self.counts.replace(!self.counts.get());
        self.key.slot.with(|slot| {
            let borrows = slot.borrows.get();
            slot.borrows.set(if counted { borrows - 1 } else { borrows + 1 });
        });
    }

    /// # Safety
    /// 1. `link` is the link of a live borrow of this type.
    #[cfg(feature = "fiber")]
    unsafe fn exchange_linked(link: *const ScopeLink) {
        // SAFETY: obligation 1 makes `link` the first field of a `Self`, and `repr(C)` puts it at
        // the same address.
        unsafe { &*link.cast::<Self>() }.exchange();
    }
}

impl<T> Drop for Borrow<T> {
    fn drop(&mut self) {
        self.exchange();
    }
}

impl<T: Clone + 'static> LocalKey<T> {
    /// Returns a clone of the value.
    ///
    /// # Panics
    ///
    /// Outside of a scope of this key; [`try_get`](Self::try_get) returns an error instead.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::task_local! {
    ///     static NUMBER: u32;
    /// }
    ///
    /// assert_eq!(NUMBER.sync_scope(3, || NUMBER.get() + 1), 4);
    /// ```
    #[track_caller]
    pub fn get(&'static self) -> T {
        self.with(T::clone)
    }

    /// Returns a clone of the value, or an error if no value is set.
    ///
    /// # Errors
    ///
    /// [`AccessError`] outside of a scope of this key.
    ///
    /// # Examples
    ///
    /// ```
    /// blitz_io::task_local! {
    ///     static NUMBER: u32;
    /// }
    ///
    /// assert!(NUMBER.try_get().is_err());
    /// assert_eq!(NUMBER.sync_scope(3, || NUMBER.try_get()), Ok(3));
    /// ```
    pub fn try_get(&'static self) -> Result<T, AccessError> {
        self.try_with(T::clone)
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("LocalKey { .. }")
    }
}

pin_project! {
    /// A future that runs with a task-local value, returned by [`LocalKey::scope`].
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::task::futures::TaskLocalFuture;
    ///
    /// blitz_io::task_local! {
    ///     static NUMBER: u32;
    /// }
    ///
    /// fn with_number<F: Future>(future: F) -> TaskLocalFuture<u32, F> {
    ///     NUMBER.scope(1, future)
    /// }
    ///
    /// # blitz_io::run(async {
    /// assert_eq!(with_number(async { NUMBER.get() }).await, 1);
    /// # });
    /// ```
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct TaskLocalFuture<T, F>
    where
        T: 'static,
    {
        key: &'static LocalKey<T>,
        value: Option<T>,
        // `None` once it has completed, because it must be dropped while its value is set.
        #[pin]
        future: Option<F>,
        // `!Unpin`, as in Tokio, so the type promises nothing about moving it.
        #[pin]
        pinned: PhantomPinned,
    }

    impl<T: 'static, F> PinnedDrop for TaskLocalFuture<T, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let scope = Scope::enter(this.key, this.value.as_ref());
            chained!(scope);
            this.future.set(None);
        }
    }
}

impl<T, F> TaskLocalFuture<T, F>
where
    T: 'static,
{
    /// Takes the value out of the future; returns `None` if it was taken before.
    ///
    /// If the future has not completed, it finds no value from now on, not even that of a
    /// surrounding scope.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// blitz_io::task_local! {
    ///     static COUNT: Cell<u32>;
    /// }
    ///
    /// # blitz_io::run(async {
    /// let counted = COUNT.scope(Cell::new(0), async {
    ///     for _ in 0..3 {
    ///         COUNT.with(|count| count.set(count.get() + 1));
    ///     }
    /// });
    /// blitz_io::pin!(counted);
    /// counted.as_mut().await;
    /// assert_eq!(counted.take_value().map(Cell::into_inner), Some(3));
    /// # });
    /// ```
    pub fn take_value(self: Pin<&mut Self>) -> Option<T> {
        self.project().value.take()
    }
}

impl<T: 'static, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let Some(future) = this.future.as_mut().as_pin_mut() else {
            panic!("`TaskLocalFuture` polled after completion");
        };
        this.key.assert_not_borrowed();
        let scope = Scope::enter(this.key, this.value.as_ref());
        chained!(scope);
        let output = ready!(future.poll(cx));
        this.future.set(None);
        Poll::Ready(output)
    }
}

impl<T: fmt::Debug + 'static, F> fmt::Debug for TaskLocalFuture<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TaskLocalFuture");
        match &self.value {
            Some(value) => shown.field("value", value),
            None => shown.field("value", &format_args!("<missing>")),
        };
        shown.finish()
    }
}

/// The error of accessing a task-local value outside of a scope of its key.
///
/// # Examples
///
/// ```
/// blitz_io::task_local! {
///     static NUMBER: u32;
/// }
///
/// let error: blitz_io::task::AccessError = NUMBER.try_get().unwrap_err();
/// assert_eq!(error.to_string(), "task-local value not set");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccessError {
    private: (),
}

impl fmt::Debug for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessError").finish()
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("task-local value not set")
    }
}

impl Error for AccessError {}
