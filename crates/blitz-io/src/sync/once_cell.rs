//! A cell that is written once, possibly by an asynchronous initialiser.
//!
//! # Protocol
//! The state word of the cell's [`InitState`] says how far the cell is, and whether a task waits:
//!
//! ```text
//! EMPTY             --set-->        SETTING, for as long as it takes to move the value;
//!                                   then DONE, by a plain store
//! EMPTY             --claim-->      RUNNING: the claimant has the init permit
//! RUNNING           --finish-->     DONE, for ever
//! RUNNING | WAITING --finish-->     DONE; then locks the queue and dismisses all
//! RUNNING           --pass_on-->    EMPTY: it gave up, and no task waits
//! RUNNING | WAITING --pass_on-->    RUNNING, under the lock: the init permit goes to the
//!                                   first in the queue; still WAITING if there are more
//! RUNNING           --join-->       RUNNING | WAITING, under the lock
//! ```
//! Joining the wait queue (the queue) exchanges the same word as finishing and giving up, so
//! one of them comes first. If joining comes second, it fails and reads the word again; if it
//! comes first, the other finds WAITING and gets the lock after it. No waiter joins after
//! DONE.
//!
//! No waiter joins while the cell is SETTING either: a task that comes then spins until DONE.
//! So `set` need not look for waiters, and is one exchange. The spin has no bound of its own,
//! but it ends: from SETTING to DONE the other thread moves a value and stores a word. No user
//! code runs there, nothing is locked or allocated, and nothing can panic. The other thread
//! can only be descheduled, and a spinning thread yields its processor after a microsecond.
//!
//! # Invariants
//! - The value is written by the holder of the init permit, or by the thread that made the
//!   word SETTING, and may be read by any thread that saw DONE.
//! - WAITING is set exactly if the wait queue is not empty, whenever the lock is free and the
//!   word is not DONE. An EMPTY cell has no waiters.
//! - The init permit is never lost: an initialiser that fails, panics or is dropped passes
//!   it on, and so does a waiter that was given it and was dropped before it saw that.
//!
//! # Rejected
//! - A semaphore of one permit that is closed in the end, as in Tokio: `set` would pay for a
//!   lock and for a wait queue that is empty.
//! - `set` by way of RUNNING: a second exchange, to see whether a waiter has joined in the few
//!   instructions in between.
//!
//! # Checked by
//! `an_initialiser_that_is_dropped_lets_the_next_one_try`,
//! `an_initialiser_that_panics_lets_the_next_one_try`, `of_two_sets_one_wins`,
//! `a_set_against_an_initialiser_leaves_one_value`,
//! `a_task_that_waits_for_an_initialiser_sees_its_value`,
//! `an_init_permit_given_to_a_dropped_waiter_is_passed_on`, `get_returns_a_whole_value`,
//! `a_waiter_dropped_against_the_end_breaks_nothing`, `all_waiters_are_dismissed_in_wake_lists`;
//! weakened as `once_join_looks_again`, `once_finish_sees_waiting`, `once_passes_on`,
//! `once_drop_passes_on`, `once_done_release`, `once_done_acquire`, `once_claims_once`,
//! `once_set_has_no_waiters`.

use std::{
    error::Error,
    fmt,
    future::Future,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::engine::{
    prim::{
        AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
        UnsafeCell,
        backoff::Backoff,
        store_lock::StoreLock,
        weakened,
    },
    wait::{
        update_waker::update_waker,
        wait_queue::{WaitQueue, Waiter, WaiterState},
        wake_list::wake_each,
    },
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

const EMPTY: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
const WAITING: u32 = 4;
const SETTING: u32 = 8;

/// A cell that can be written only once, possibly by an asynchronous initialiser.
///
/// The cell is empty at first. It is filled by [`set`](Self::set), or by
/// [`get_or_init`](Self::get_or_init), which runs an initialiser while all other callers wait
/// for its result. Reading a full cell is one load.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::OnceCell;
///
/// static CONFIG: OnceCell<String> = OnceCell::const_new();
///
/// async fn config() -> &'static str {
///     CONFIG.get_or_init(|| async { "read from somewhere".to_owned() }).await
/// }
///
/// # blitz_io::run(async {
/// assert_eq!(config().await, "read from somewhere");
/// assert!(CONFIG.initialized());
/// # });
/// ```
pub struct OnceCell<T> {
    init: InitState,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the cell owns the value, so sending the cell sends a `T`, which is `Send`.
unsafe impl<T: Send> Send for OnceCell<T> {}
// SAFETY: one thread writes, before all threads that read; `set` sends a value to other
// threads (`T: Send`), `get` shares it with them (`T: Sync`).
unsafe impl<T: Sync + Send> Sync for OnceCell<T> {}

/// The state word of a cell and its wait queue, without the type of the value.
struct InitState {
    word: AtomicU32,
    waiters: StoreLock<WaitQueue<Grant>>,
}

/// Outcome for a waiter that was dismissed from the wait queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grant {
    /// The cell is full, if the waiter has been dismissed.
    Value,
    /// Like [`Value`](Self::Value); besides, the waiter's task was deferred once because it had
    /// no budget: see `defer_once`.
    Deferred,
    /// The waiter has the init permit.
    Permit,
}

/// The right to write the cell; dropping it passes it on to the next waiter.
struct InitPermit<'a>(&'a InitState);

/// Future that waits for the init permit, or for the value, in which case its output is
/// `None`.
struct AcquireInit<'a> {
    init: &'a InitState,
    waiter: Waiter<Grant>,
}

/// Error of [`OnceCell::set`]; carries the value that was not stored.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::{OnceCell, SetError};
///
/// let cell = OnceCell::new_with(Some(1));
/// assert_eq!(cell.set(2), Err(SetError::AlreadyInitializedError(2)));
/// ```
#[derive(Debug, PartialEq, Eq)]
pub enum SetError<T> {
    /// The cell held a value already.
    AlreadyInitializedError(T),
    /// An initialiser is running.
    InitializingError(T),
}

impl InitState {
    /// Returns `true` if the cell is full; the caller may read the value then.
    #[inline]
    fn is_done(&self) -> bool {
        let order = if weakened!("once_done_acquire") { Relaxed } else { Acquire };
        // Acquire: the value is read next. Pairs with the Release in `finish` and `finish_set`.
        self.word.load(order) == DONE
    }

    /// Takes the init permit for an initialiser, if the cell is empty; otherwise returns the
    /// current word as the error.
    #[inline]
    fn claim(&self) -> Result<InitPermit<'_>, u32> {
        self.begin(RUNNING).map(|()| InitPermit(self))
    }

    /// Exchanges EMPTY for `state`; otherwise returns the current word as the error.
    #[inline]
    fn begin(&self, state: u32) -> Result<(), u32> {
        if weakened!("once_claims_once") {
            // Acquire: like the exchange below; the seeded bug is that this is no exchange.
            let now = self.word.load(Acquire);
            return if now == EMPTY {
                self.word.store(state, Relaxed);
                Ok(())
            } else {
                Err(now)
            };
        }
        // Acquire: the new claimant sees what earlier claimants that gave up did. Pairs with the
        // Release in `pass_on`. Acquire on failure: if the word is DONE, the value may be read
        // next. Pairs with the Release in `finish` and `finish_set`.
        self.word.compare_exchange(EMPTY, state, Acquire, Acquire).map(drop)
    }

    /// Turns SETTING into DONE after the value was written; there are no waiters to wake.
    #[inline]
    fn finish_set(&self) {
        let order = if weakened!("once_done_release") { Relaxed } else { Release };
        // Release: publishes the value. Pairs with the Acquire in `is_done`, `begin` and
        // `await_set`.
        self.word.store(DONE, order);
    }

    /// Spins until SETTING has become DONE.
    #[cold]
    fn await_set(&self) {
        let mut backoff = Backoff::default();
        // Acquire: the value is read next. Pairs with the Release in `finish_set`.
        while self.word.load(Acquire) == SETTING {
            backoff.pause();
        }
    }

    /// Turns RUNNING into DONE after the value was written, and wakes all waiters.
    #[inline]
    fn finish(&self, permit: InitPermit<'_>) {
        std::mem::forget(permit);
        let order = if weakened!("once_done_release") { Relaxed } else { Release };
        // Release: publishes the value. Pairs with the Acquire in `is_done` and `begin`.
        let before = self.word.swap(DONE, order);
        if before & WAITING != 0 && !weakened!("once_finish_sees_waiting") {
            self.dismiss_all();
        }
    }

    #[cold]
    fn dismiss_all(&self) {
        let lock = || self.waiters.lock();
        // No waiter joins between two wake lists, because the word is DONE.
        wake_each(lock(), lock, |waiters| {
            waiters.first()?;
            Some(waiters.dismiss_first())
        });
    }

    /// Gives up the init permit: passes it to the first waiter, or makes the word EMPTY.
    #[cold]
    fn pass_on(&self) {
        // Release: the next claimant sees what this one did. Pairs with the Acquire in `begin`
        // and `claim_or_mark`. Relaxed on failure: a task waits, and the lock orders the rest.
        if self.word.compare_exchange(RUNNING, EMPTY, Release, Relaxed).is_ok() {
            return;
        }
        let mut waiters = self.waiters.lock();
        let Some(grant) = waiters.first() else {
            // All waiters have left meanwhile. Release: the next claimant sees what this one did.
            // Pairs with the Acquire in `begin` and `claim_or_mark`. No other thread writes the
            // word, because the init permit is ours and joining the queue needs the lock.
            self.word.store(EMPTY, Release);
            return;
        };
        *grant = Grant::Permit;
        let waker = waiters.dismiss_first();
        self.end_waiting(&waiters);
        drop(waiters);
        waker.wake();
    }

    /// Clears WAITING if the wait queue is empty; called under the lock after a waiter left it.
    fn end_waiting(&self, waiters: &WaitQueue<Grant>) {
        if waiters.is_empty() {
            // Relaxed: publishes nothing, and a read-modify-write keeps what others published.
            self.word.fetch_and(!WAITING, Relaxed);
        }
    }

    /// Takes the init permit, or reports DONE as `Ready(None)`, or sets WAITING because the
    /// caller must wait. Called under the lock.
    fn claim_or_mark(&self) -> Poll<Option<InitPermit<'_>>> {
        // Acquire, here and below: DONE means that the value is read next, EMPTY that the caller
        // sees what earlier claimants did. Pairs with the Release in `finish`, `finish_set` and
        // `pass_on`.
        let mut now = self.word.load(Acquire);
        loop {
            let next = match now {
                DONE => return Poll::Ready(None),
                EMPTY => RUNNING,
                SETTING if !weakened!("once_set_has_no_waiters") => {
                    self.await_set();
                    return Poll::Ready(None);
                }
                _ => now | WAITING,
            };
            if weakened!("once_join_looks_again") {
                self.word.store(now | WAITING, Relaxed);
                return Poll::Pending;
            }
            // Acquire: like the load above, with the same partners.
            match self.word.compare_exchange_weak(now, next, Acquire, Acquire) {
                Ok(EMPTY) => return Poll::Ready(Some(InitPermit(self))),
                Ok(_) => return Poll::Pending,
                Err(seen) => now = seen,
            }
        }
    }
}

impl Drop for InitPermit<'_> {
    fn drop(&mut self) {
        if !weakened!("once_passes_on") {
            self.0.pass_on();
        }
    }
}

impl<'a> AcquireInit<'a> {
    fn waiter(self: Pin<&Self>) -> (&'a InitState, Pin<&Waiter<Grant>>) {
        let init = self.init;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (init, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Returns `true` if a claim that was polled without budget must be deferred to its task's
    /// next poll.
    ///
    /// That is so once, unless the claim must wait for an initialiser anyway, so that a loop over
    /// full cells lets other tasks run. If it were deferred again and again, it might never
    /// complete, because a future polled beside it may use up the budget of every poll.
    #[cold]
    fn defer_once(self: Pin<&Self>) -> bool {
        let (init, waiter) = self.waiter();
        // Relaxed: only a hint; the code that goes on reads the word again.
        let runs = init.word.load(Relaxed) & RUNNING != 0;
        if runs || waiter.state() != WaiterState::Out {
            return false;
        }
        // SAFETY: 1. we own the waiter, and it is OUT. 2. The closure only replaces the grant.
        unsafe {
            waiter.with_data(|grant| std::mem::replace(grant, Grant::Deferred)) != Grant::Deferred
        }
    }

    #[inline]
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Option<InitPermit<'a>>> {
        if self.init.is_done() {
            return Poll::Ready(None);
        }
        match self.init.claim() {
            Ok(permit) => Poll::Ready(Some(permit)),
            Err(_) => self.queue(cx),
        }
    }

    #[cold]
    fn queue(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Option<InitPermit<'a>>> {
        let (init, waiter) = self.waiter();
        // Cloning a waker runs user code, so it happens before the lock is taken.
        let waker = cx.waker().clone();
        let mut waiters = init.waiters.lock();
        let claimed = init.claim_or_mark();
        if claimed.is_ready() {
            // Dropping a waker runs user code, so the lock is released first.
            drop(waiters);
            drop(waker);
            return claimed;
        }
        // SAFETY: 1. we own the waiter, and it is OUT. 2. `Drop` removes it from the queue.
        unsafe { waiters.join(waiter, waker) };
        Poll::Pending
    }

    /// Polls a waiter that is in the wait queue, or was dismissed meanwhile.
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Option<InitPermit<'a>>> {
        let (init, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter. 2. It joined this cell's wait queue.
        let is_dismissed =
            unsafe { update_waker(&init.waiters, |waiters| waiters, waiter, cx.waker()) };
        if is_dismissed { Poll::Ready(self.end()) } else { Poll::Pending }
    }

    /// Returns what a dismissed waiter was given: the init permit, or `None` for the value.
    fn end(self: Pin<&Self>) -> Option<InitPermit<'a>> {
        let (init, waiter) = self.waiter();
        waiter.settle();
        // SAFETY: 1. we own the waiter, and `settle` made it OUT. 2. The closure only reads.
        let grant = unsafe { waiter.with_data(|grant| *grant) };
        (grant == Grant::Permit).then(|| InitPermit(init))
    }

    /// Leaves the wait queue; an init permit that the waiter was given is passed on.
    #[cold]
    fn give_up(self: Pin<&Self>) {
        let (init, waiter) = self.waiter();
        let mut waiters = init.waiters.lock();
        // SAFETY: 1. we own the waiter. 2. It joined this cell's wait queue.
        if let Some(waker) = unsafe { waiters.remove(waiter) } {
            init.end_waiting(&waiters);
            drop(waiters);
            // Last, because dropping a waker may panic, and everything else is done by now.
            return drop(waker);
        }
        drop(waiters);
        let given = self.end();
        if weakened!("once_drop_passes_on") {
            std::mem::forget(given);
        }
    }
}

impl<'a> Future for AcquireInit<'a> {
    type Output = Option<InitPermit<'a>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_ref();
        let unit = budget::take();
        if unit.is_none() && this.defer_once() {
            ready!(budget::available(cx));
        }
        let polled = match this.waiter.state() {
            WaiterState::Out => this.begin(cx),
            WaiterState::In => this.go_on(cx),
            WaiterState::Dismissed => Poll::Ready(this.end()),
        };
        if polled.is_ready() {
            if let Some(unit) = unit {
                unit.spend();
            }
        } else {
            thread_context::waits_for(WaitReason::Cell);
        }
        polled
    }
}

impl Drop for AcquireInit<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.state() != WaiterState::Out {
            // SAFETY: the future was pinned to join the queue, and is not moved from here on.
            unsafe { Pin::new_unchecked(&*self) }.give_up();
        }
    }
}

impl<T> OnceCell<T> {
    /// Creates a new empty `OnceCell`.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::OnceCell::<u8>::new();
    /// assert_eq!(cell.get(), None);
    /// ```
    pub fn new() -> Self {
        Self::const_new()
    }

    /// Creates a new empty `OnceCell`, for use in constants and statics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::OnceCell;
    ///
    /// static CELL: OnceCell<u8> = OnceCell::const_new();
    ///
    /// assert!(!CELL.initialized());
    /// ```
    #[cfg(not(blitz_loom))]
    pub const fn const_new() -> Self {
        Self::with_word(EMPTY, MaybeUninit::uninit())
    }

    /// Creates a new empty `OnceCell`; not `const`, because the model checker's atomics are not.
    #[cfg(blitz_loom)]
    pub fn const_new() -> Self {
        Self::with_word(EMPTY, MaybeUninit::uninit())
    }

    /// Creates a new `OnceCell` that holds `value`, or is empty if that is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::OnceCell;
    ///
    /// assert_eq!(OnceCell::new_with(Some(1)).get(), Some(&1));
    /// assert_eq!(OnceCell::<u8>::new_with(None).get(), None);
    /// ```
    pub fn new_with(value: Option<T>) -> Self {
        value.map_or_else(Self::new, Self::const_new_with)
    }

    /// Creates a new `OnceCell` that holds `value`, for use in constants and statics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::OnceCell;
    ///
    /// static CELL: OnceCell<u8> = OnceCell::const_new_with(1);
    ///
    /// assert_eq!(CELL.get(), Some(&1));
    /// ```
    #[cfg(not(blitz_loom))]
    pub const fn const_new_with(value: T) -> Self {
        Self::with_word(DONE, MaybeUninit::new(value))
    }

    /// Creates a new `OnceCell` that holds `value`; not `const`, because the model checker's
    /// atomics are not.
    #[cfg(blitz_loom)]
    pub fn const_new_with(value: T) -> Self {
        Self::with_word(DONE, MaybeUninit::new(value))
    }

    #[cfg(not(blitz_loom))]
    const fn with_word(word: u32, value: MaybeUninit<T>) -> Self {
        let init =
            InitState { word: AtomicU32::new(word), waiters: StoreLock::new(WaitQueue::new()) };
        Self { init, value: UnsafeCell::new(value) }
    }

    #[cfg(blitz_loom)]
    fn with_word(word: u32, value: MaybeUninit<T>) -> Self {
        let init =
            InitState { word: AtomicU32::new(word), waiters: StoreLock::new(WaitQueue::new()) };
        Self { init, value: UnsafeCell::new(value) }
    }

    /// Returns `true` if the `OnceCell` holds a value.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::OnceCell::new();
    /// cell.set(1).unwrap();
    /// assert!(cell.initialized());
    /// ```
    #[inline]
    pub fn initialized(&self) -> bool {
        self.init.is_done()
    }

    /// Returns a reference to the value, or `None` if the cell is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::OnceCell::new();
    /// assert_eq!(cell.get(), None);
    /// cell.set("full").unwrap();
    /// assert_eq!(cell.get(), Some(&"full"));
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: 1. `initialized` saw DONE.
        self.initialized().then(|| unsafe { self.value() })
    }

    /// Returns a mutable reference to the value, or `None` if the cell is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut cell = blitz_io::sync::OnceCell::new_with(Some(1));
    /// *cell.get_mut().unwrap() += 1;
    /// assert_eq!(cell.get(), Some(&2));
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.initialized() {
            return None;
        }
        // SAFETY: we saw DONE, so the value is there, and the exclusive borrow excludes other
        // references.
        Some(unsafe { &mut *self.value.with_mut(|value| (*value).as_mut_ptr()) })
    }

    /// Stores `value` in an empty `OnceCell`.
    ///
    /// # Errors
    ///
    /// Returns `value` in a [`SetError`] if the cell holds a value already, or if an initialiser
    /// of [`get_or_init`](Self::get_or_init) is running.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::OnceCell::new();
    /// assert_eq!(cell.set(1), Ok(()));
    /// assert!(cell.set(2).unwrap_err().is_already_init_err());
    /// assert_eq!(cell.get(), Some(&1));
    /// ```
    #[inline]
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        match self.init.begin(SETTING) {
            Ok(()) => {
                // SAFETY: this thread made the word SETTING, so no other thread writes, and none
                // reads before DONE.
                self.value.with_mut(|slot| unsafe { (*slot).write(value) });
                self.init.finish_set();
                Ok(())
            }
            Err(DONE) => Err(SetError::AlreadyInitializedError(value)),
            Err(_) => Err(SetError::InitializingError(value)),
        }
    }

    /// Returns the value, running `f` to create it if the cell is empty.
    ///
    /// One initialiser runs at a time; all other callers wait for it. If it is dropped or panics,
    /// the caller that has waited longest runs its own. An initialiser that awaits the value of
    /// the cell that it initialises deadlocks.
    ///
    /// Each call consumes one unit of the task's budget, if there is one. Without budget, a call
    /// that could go on at once is deferred to the task's next poll, but only once.
    ///
    /// # Cancel safety
    ///
    /// Dropping a call that waits has no effect on the cell. Dropping a call while its initialiser
    /// runs drops the initialiser too, and the next caller runs its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::OnceCell;
    ///
    /// # blitz_io::run(async {
    /// let cell = OnceCell::new();
    /// assert_eq!(cell.get_or_init(|| async { 1 }).await, &1);
    /// assert_eq!(cell.get_or_init(|| async { 2 }).await, &1);
    /// # });
    /// ```
    pub async fn get_or_init<F, Fut>(&self, f: F) -> &T
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        match self.claim().await {
            Some(permit) => {
                let value = f().await;
                self.fill(permit, value)
            }
            // SAFETY: 1. a claim returns `None` if it saw DONE, or was dismissed after DONE.
            None => unsafe { self.value() },
        }
    }

    /// Returns the value, running the fallible `f` to create it if the cell is empty.
    ///
    /// If the initialiser fails, the caller that has waited longest runs its own; without a
    /// waiting caller the cell stays empty. Behaves like [`get_or_init`](Self::get_or_init)
    /// otherwise.
    ///
    /// # Errors
    ///
    /// Returns the error of this call's own initialiser.
    ///
    /// # Cancel safety
    ///
    /// Dropping a call that waits has no effect on the cell. Dropping a call while its initialiser
    /// runs drops the initialiser too, and the next caller runs its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::OnceCell;
    ///
    /// # blitz_io::run(async {
    /// let cell = OnceCell::new();
    /// assert_eq!(cell.get_or_try_init(|| async { "x".parse::<u8>() }).await.ok(), None);
    /// assert_eq!(cell.get_or_try_init(|| async { "5".parse::<u8>() }).await, Ok(&5));
    /// # });
    /// ```
    pub async fn get_or_try_init<E, F, Fut>(&self, f: F) -> Result<&T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        match self.claim().await {
            Some(permit) => {
                let value = f().await?;
                Ok(self.fill(permit, value))
            }
            // SAFETY: 1. a claim returns `None` if it saw DONE, or was dismissed after DONE.
            None => Ok(unsafe { self.value() }),
        }
    }

    /// Consumes the cell and returns its value, if there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::OnceCell::new_with(Some(1));
    /// assert_eq!(cell.into_inner(), Some(1));
    /// ```
    pub fn into_inner(mut self) -> Option<T> {
        self.take_value()
    }

    /// Takes the value out of the cell, leaving it empty.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut cell = blitz_io::sync::OnceCell::new_with(Some(1));
    /// assert_eq!(cell.take(), Some(1));
    /// assert_eq!(cell.set(2), Ok(()));
    /// ```
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }

    #[inline]
    fn claim(&self) -> AcquireInit<'_> {
        AcquireInit { init: &self.init, waiter: Waiter::new(Grant::Value) }
    }

    /// Writes the value and wakes all waiters.
    #[inline]
    fn fill(&self, permit: InitPermit<'_>, value: T) -> &T {
        // SAFETY: we have the init permit, so no other thread writes, and none reads before
        // DONE.
        self.value.with_mut(|slot| unsafe { (*slot).write(value) });
        self.init.finish(permit);
        // SAFETY: 1. `finish` has just made the cell DONE on this thread.
        unsafe { self.value() }
    }

    /// Returns the value.
    ///
    /// # Safety
    /// 1. The cell is DONE, and the caller saw it.
    #[inline]
    unsafe fn value(&self) -> &T {
        // SAFETY: by our obligation 1 the value is there, and it is not written any more.
        unsafe { &*self.value.with(|value| (*value).as_ptr()) }
    }

    fn take_value(&mut self) -> Option<T> {
        if !self.initialized() {
            return None;
        }
        // Relaxed: the borrow is exclusive, so no other thread reads it.
        self.init.word.store(EMPTY, Relaxed);
        // SAFETY: we saw DONE, so the value is there; the word is EMPTY now, so the value is read
        // only once.
        Some(self.value.with_mut(|value| unsafe { (*value).assume_init_read() }))
    }
}

impl<T> Drop for OnceCell<T> {
    #[inline]
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            drop(self.take_value());
        }
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceCell").field("value", &self.get()).finish()
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> Self {
        Self::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceCell<T> {}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        Self::const_new_with(value)
    }
}

impl<T> SetError<T> {
    /// Returns `true` if the cell held a value already.
    ///
    /// # Examples
    ///
    /// ```
    /// let cell = blitz_io::sync::OnceCell::new_with(Some(1));
    /// assert!(cell.set(2).unwrap_err().is_already_init_err());
    /// ```
    pub fn is_already_init_err(&self) -> bool {
        matches!(self, Self::AlreadyInitializedError(_))
    }

    /// Returns `true` if an initialiser was running.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::OnceCell;
    ///
    /// # blitz_io::run(async {
    /// let cell = OnceCell::new();
    /// cell.get_or_init(async || {
    ///     assert!(cell.set(2).unwrap_err().is_initializing_err());
    ///     1
    /// })
    /// .await;
    /// # });
    /// ```
    pub fn is_initializing_err(&self) -> bool {
        matches!(self, Self::InitializingError(_))
    }
}

impl<T> fmt::Display for SetError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyInitializedError(_) => "AlreadyInitializedError",
            Self::InitializingError(_) => "InitializingError",
        })
    }
}

impl<T: fmt::Debug> Error for SetError<T> {}

#[cfg(test)]
mod models;
