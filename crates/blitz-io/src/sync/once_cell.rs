//! A cell that is written once, perhaps by an asynchronous initialiser.
//!
//! # Protocol
//! The gate's word says how far the cell is, and whether somebody waits:
//!
//! ```text
//! EMPTY             --set-->        SETTING, for as long as it takes to move the value;
//!                                   then DONE, by a plain store
//! EMPTY             --claim-->      RUNNING: the claimant has the right to write
//! RUNNING           --finish-->     DONE, for ever
//! RUNNING | WAITING --finish-->     DONE; then locks the line and dismisses all
//! RUNNING           --pass_on-->    EMPTY: it gave up, and nobody waits
//! RUNNING | WAITING --pass_on-->    RUNNING, under the lock: the right goes to the first
//!                                   in line; still WAITING if there are more
//! RUNNING           --join-->       RUNNING | WAITING, under the lock
//! ```
//! Joining exchanges the same word as finishing and giving up, so one comes first. If
//! joining is second it fails and looks again; if it is first the other finds WAITING,
//! and comes to the lock behind it. After DONE nobody joins.
//!
//! Nobody joins while the cell is SETTING either: who comes then spins until DONE. So `set`
//! need not look for anybody: it is one exchange. The spin has no bound of its own, but ends:
//! from SETTING to DONE the other thread moves a value and stores a word. No code of a user
//! runs there, nothing is locked or allocated, nothing can panic. It can only lose its
//! processor, and who spins lets others run after a microsecond.
//!
//! # Invariants
//! - The value is written by the one who has the right, or made the word SETTING, and
//!   read by anybody who saw DONE.
//! - WAITING is set exactly if the line is not empty, whenever the lock is free and the
//!   word is not DONE. An EMPTY cell has no waiters.
//! - The right is never lost: an initialiser that fails, panics or is dropped passes it
//!   on, and so does a waiter that was given it and never looked.
//!
//! # Rejected
//! - A semaphore of one permit that is closed in the end, as Tokio has it: `set` would
//!   pay for a lock and a line that nobody stands in.
//! - `set` by way of RUNNING: a second exchange, to see whether somebody has joined in
//!   the few instructions in between.
//!
//! # Checked by
//! `an_initialiser_that_is_dropped_lets_the_next_one_try`,
//! `an_initialiser_that_panics_lets_the_next_one_try`, `of_two_sets_one_wins`,
//! `a_set_against_an_initialiser_leaves_one_value`,
//! `who_waits_for_an_initialiser_sees_its_value`,
//! `a_right_given_to_one_who_is_dropped_goes_on`, `what_get_answers_is_whole`,
//! `a_waiter_dropped_against_the_end_breaks_nothing`,
//! `all_who_wait_are_dismissed_in_batches`;
//! weakened as `once_join_looks_again`, `once_finish_sees_waiting`, `once_passes_on`,
//! `once_drop_passes_on`, `once_done_release`, `once_done_acquire`, `once_claims_once`,
//! `once_nobody_joins_a_set`.

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
        bolt::Bolted,
        weakened,
    },
    wait::{
        batch::wake_each,
        keep::keep_waker,
        line::{Line, Place, Waiter},
    },
    work::{
        current,
        task::{budget, moment::Wait},
    },
};

const EMPTY: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
const WAITING: u32 = 4;
const SETTING: u32 = 8;

/// A cell that can be written only once, also from asynchronous code.
///
/// It is empty at first. [`set`](Self::set) fills it, or
/// [`get_or_init`](Self::get_or_init), which runs an initialiser while all others who
/// ask wait for it. Afterwards a look at it is one load.
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
    gate: Gate,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value moves with the cell.
unsafe impl<T: Send> Send for OnceCell<T> {}
// SAFETY: one writes, before all who read; `set` sends a value, `get` shares it.
unsafe impl<T: Sync + Send> Sync for OnceCell<T> {}

/// The word and the line; see the module.
struct Gate {
    word: AtomicU32,
    line: Bolted<Line<Grant>>,
}

/// What one in line was given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grant {
    /// The news that the cell is full, if it has left.
    Value,
    /// The same; and its task had no budget when it came: see `puts_off`.
    PutOff,
    /// The right to write.
    Right,
}

/// The right to write the cell; passed on when it is dropped.
struct Right<'a>(&'a Gate);

/// Waits for the right, or for the value: `None`.
struct Claim<'a> {
    gate: &'a Gate,
    waiter: Waiter<Grant>,
}

/// Errors that can be returned from [`OnceCell::set`]; they carry the value back.
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
    /// The cell was full already.
    AlreadyInitializedError(T),
    /// An initialiser is at work.
    InitializingError(T),
}

impl Gate {
    /// Whether a claimant sees the cell full.
    #[inline]
    fn is_done(&self) -> bool {
        let order = if weakened!("once_done_acquire") { Relaxed } else { Acquire };
        // Acquire: the value is read next. Pairs with the Release in `finish`.
        self.word.load(order) == DONE
    }

    /// The right to write for an initialiser, if the cell is empty; else what the word is.
    #[inline]
    fn claim(&self) -> Result<Right<'_>, u32> {
        self.begin(RUNNING).map(|()| Right(self))
    }

    /// EMPTY becomes this; else what the word is.
    #[inline]
    fn begin(&self, state: u32) -> Result<(), u32> {
        if weakened!("once_claims_once") {
            // Acquire: as below; the bug is that it is no exchange.
            let now = self.word.load(Acquire);
            return if now == EMPTY {
                self.word.store(state, Relaxed);
                Ok(())
            } else {
                Err(now)
            };
        }
        // Acquire: who tries sees what those did who failed. Pairs with the Release in
        // `pass_on`. On failure: as in `is_done`.
        self.word.compare_exchange(EMPTY, state, Acquire, Acquire).map(drop)
    }

    /// SETTING becomes DONE: the value is written, and nobody waits.
    #[inline]
    fn finish_set(&self) {
        let order = if weakened!("once_done_release") { Relaxed } else { Release };
        // Release: publishes the value. Pairs with the Acquire in `is_done`, `begin` and
        // `await_set`.
        self.word.store(DONE, order);
    }

    /// Until SETTING has become DONE.
    #[cold]
    fn await_set(&self) {
        let mut backoff = Backoff::default();
        // Acquire: the value is read next. Pairs with the Release in `finish_set`.
        while self.word.load(Acquire) == SETTING {
            backoff.pause();
        }
    }

    /// The value is written: tells all.
    #[inline]
    fn finish(&self, right: Right<'_>) {
        std::mem::forget(right);
        let order = if weakened!("once_done_release") { Relaxed } else { Release };
        // Release: publishes the value. Pairs with the Acquire in `is_done` and `begin`.
        let before = self.word.swap(DONE, order);
        if before & WAITING != 0 && !weakened!("once_finish_sees_waiting") {
            self.dismiss_all();
        }
    }

    #[cold]
    fn dismiss_all(&self) {
        let lock = || self.line.lock();
        // Nobody joins between two batches: it is DONE.
        wake_each(lock(), lock, |line| {
            line.first()?;
            Some(line.dismiss_first())
        });
    }

    /// One who had the right gives up.
    #[cold]
    fn pass_on(&self) {
        // Release: as `begin` says. Relaxed on failure: somebody waits, and the lock
        // orders the rest.
        if self.word.compare_exchange(RUNNING, EMPTY, Release, Relaxed).is_ok() {
            return;
        }
        let mut line = self.line.lock();
        let Some(grant) = line.first() else {
            // Who waited has gone. Release: as above. Nobody else writes: the right is
            // ours, and to join needs the lock.
            self.word.store(EMPTY, Release);
            return;
        };
        *grant = Grant::Right;
        let waker = line.dismiss_first();
        self.end_waiting(&line);
        drop(line);
        waker.wake();
    }

    /// Somebody has left, under the lock.
    fn end_waiting(&self, line: &Line<Grant>) {
        if line.is_empty() {
            // Relaxed: publishes nothing, and an exchange keeps what others publish.
            self.word.fetch_and(!WAITING, Relaxed);
        }
    }

    /// Under the lock: the right, the news that it is DONE, or, if it has to be waited
    /// for, the mark.
    fn claim_or_mark(&self) -> Poll<Option<Right<'_>>> {
        // Acquire, here and below: as in `is_done` and `begin`.
        let mut now = self.word.load(Acquire);
        loop {
            let next = match now {
                DONE => return Poll::Ready(None),
                EMPTY => RUNNING,
                SETTING if !weakened!("once_nobody_joins_a_set") => {
                    self.await_set();
                    return Poll::Ready(None);
                }
                _ => now | WAITING,
            };
            if weakened!("once_join_looks_again") {
                self.word.store(now | WAITING, Relaxed);
                return Poll::Pending;
            }
            // Acquire: as above.
            match self.word.compare_exchange_weak(now, next, Acquire, Acquire) {
                Ok(EMPTY) => return Poll::Ready(Some(Right(self))),
                Ok(_) => return Poll::Pending,
                Err(seen) => now = seen,
            }
        }
    }
}

impl Drop for Right<'_> {
    fn drop(&mut self) {
        if !weakened!("once_passes_on") {
            self.0.pass_on();
        }
    }
}

impl<'a> Claim<'a> {
    fn waiter(self: Pin<&Self>) -> (&'a Gate, Pin<&Waiter<Grant>>) {
        let gate = self.gate;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (gate, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Whether one who comes without budget has to wait for its task's next turn: once,
    /// unless it has to wait for an initialiser anyway. So a loop over full cells lets
    /// others run. Put off again and again, it might never get an answer: what is polled
    /// beside it may use up the budget of every poll.
    #[cold]
    fn puts_off(self: Pin<&Self>) -> bool {
        let (gate, waiter) = self.waiter();
        // Relaxed: a look; whoever goes on looks again.
        let runs = gate.word.load(Relaxed) & RUNNING != 0;
        if runs || waiter.place() != Place::Out {
            return false;
        }
        // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
        unsafe {
            waiter.with_data(|grant| std::mem::replace(grant, Grant::PutOff)) != Grant::PutOff
        }
    }

    #[inline]
    fn begin(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Option<Right<'a>>> {
        if self.gate.is_done() {
            return Poll::Ready(None);
        }
        match self.gate.claim() {
            Ok(right) => Poll::Ready(Some(right)),
            Err(_) => self.queue(cx),
        }
    }

    #[cold]
    fn queue(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Option<Right<'a>>> {
        let (gate, waiter) = self.waiter();
        // A user's code, and so before the lock.
        let waker = cx.waker().clone();
        let mut line = gate.line.lock();
        let claimed = gate.claim_or_mark();
        if claimed.is_ready() {
            // The lock first, then the waker.
            drop(line);
            drop(waker);
            return claimed;
        }
        // SAFETY: 1. we own the waiter, and it is OUT. 2. `Drop` does.
        unsafe { line.join(waiter, waker) };
        Poll::Pending
    }

    /// In line, as far as we know.
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<Option<Right<'a>>> {
        let (gate, waiter) = self.waiter();
        // SAFETY: 1. we own it. 2. It joined this line.
        let left = unsafe { keep_waker(&gate.line, |line| line, waiter, cx.waker()) };
        if left { Poll::Ready(self.end()) } else { Poll::Pending }
    }

    /// Dismissed.
    fn end(self: Pin<&Self>) -> Option<Right<'a>> {
        let (gate, waiter) = self.waiter();
        waiter.settle();
        // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
        let grant = unsafe { waiter.with_data(|grant| *grant) };
        (grant == Grant::Right).then(|| Right(gate))
    }

    /// Leaves the line; what it was given goes on.
    #[cold]
    fn give_up(self: Pin<&Self>) {
        let (gate, waiter) = self.waiter();
        let mut line = gate.line.lock();
        // SAFETY: 1. we own the waiter. 2. It joined this line.
        if let Some(waker) = unsafe { line.remove(waiter) } {
            gate.end_waiting(&line);
            drop(line);
            // Last: dropping it may panic, and everything is done by now.
            return drop(waker);
        }
        drop(line);
        let given = self.end();
        if weakened!("once_drop_passes_on") {
            std::mem::forget(given);
        }
    }
}

impl<'a> Future for Claim<'a> {
    type Output = Option<Right<'a>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_ref();
        let unit = budget::take();
        if unit.is_none() && this.puts_off() {
            ready!(budget::available(cx));
        }
        let polled = match this.waiter.place() {
            Place::Out => this.begin(cx),
            Place::In => this.go_on(cx),
            Place::Left => Poll::Ready(this.end()),
        };
        if polled.is_ready() {
            if let Some(unit) = unit {
                unit.spend();
            }
        } else {
            current::waits_for(Wait::Cell);
        }
        polled
    }
}

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.place() != Place::Out {
            // SAFETY: it was pinned, and is not moved from here on.
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

    /// Creates a new empty `OnceCell`, also in a constant.
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

    /// The same; the model checker's words are not made in constants.
    #[cfg(blitz_loom)]
    pub fn const_new() -> Self {
        Self::with_word(EMPTY, MaybeUninit::uninit())
    }

    /// Creates a new `OnceCell` that holds the value, if there is one.
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

    /// Creates a new `OnceCell` that holds the value, also in a constant.
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

    /// The same; the model checker's words are not made in constants.
    #[cfg(blitz_loom)]
    pub fn const_new_with(value: T) -> Self {
        Self::with_word(DONE, MaybeUninit::new(value))
    }

    #[cfg(not(blitz_loom))]
    const fn with_word(word: u32, value: MaybeUninit<T>) -> Self {
        let gate = Gate { word: AtomicU32::new(word), line: Bolted::new(Line::new()) };
        Self { gate, value: UnsafeCell::new(value) }
    }

    #[cfg(blitz_loom)]
    fn with_word(word: u32, value: MaybeUninit<T>) -> Self {
        let gate = Gate { word: AtomicU32::new(word), line: Bolted::new(Line::new()) };
        Self { gate, value: UnsafeCell::new(value) }
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
        self.gate.is_done()
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
        // SAFETY: 1. we saw DONE.
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
        // SAFETY: we saw DONE, so the value is there; the borrow is the only one.
        Some(unsafe { &mut *self.value.with_mut(|value| (*value).as_mut_ptr()) })
    }

    /// Fills an empty `OnceCell`.
    ///
    /// # Errors
    ///
    /// The value comes back if the cell is full already, or if an initialiser of
    /// [`get_or_init`](Self::get_or_init) is at work.
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
        match self.gate.begin(SETTING) {
            Ok(()) => {
                // SAFETY: SETTING is ours, so nobody else writes, and nobody reads before
                // DONE.
                self.value.with_mut(|slot| unsafe { (*slot).write(value) });
                self.gate.finish_set();
                Ok(())
            }
            Err(DONE) => Err(SetError::AlreadyInitializedError(value)),
            Err(_) => Err(SetError::InitializingError(value)),
        }
    }

    /// Returns the value, and makes it first if there is none.
    ///
    /// One initialiser runs at a time; all others who ask wait for it. If it is dropped
    /// or panics, the one who has waited longest runs its own. An initialiser that asks
    /// for the value of the cell that it initialises waits for itself, for ever.
    ///
    /// Each call takes one unit of the task's budget, if there is one. Without it a call
    /// that need not wait is put off, once.
    ///
    /// # Cancel safety
    ///
    /// A call that is dropped while it waits takes nothing with it. One that is dropped
    /// while its initialiser runs drops that too, and lets the next one try.
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
            Some(right) => {
                let value = f().await;
                self.fill(right, value)
            }
            // SAFETY: 1. whoever is told so saw DONE, or was dismissed after it.
            None => unsafe { self.value() },
        }
    }

    /// Returns the value, and tries to make it first if there is none.
    ///
    /// An initialiser that fails leaves the cell empty, or lets the one who has waited
    /// longest try. Otherwise as [`get_or_init`](Self::get_or_init).
    ///
    /// # Errors
    ///
    /// The initialiser's.
    ///
    /// # Cancel safety
    ///
    /// As [`get_or_init`](Self::get_or_init).
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
            Some(right) => {
                let value = f().await?;
                Ok(self.fill(right, value))
            }
            // SAFETY: 1. whoever is told so saw DONE, or was dismissed after it.
            None => Ok(unsafe { self.value() }),
        }
    }

    /// Takes the value out of the cell, which ends.
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

    /// Takes the value out of the cell, which is empty again.
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
    fn claim(&self) -> Claim<'_> {
        Claim { gate: &self.gate, waiter: Waiter::new(Grant::Value) }
    }

    /// Writes the value, and tells all.
    #[inline]
    fn fill(&self, right: Right<'_>, value: T) -> &T {
        // SAFETY: the right is ours, so nobody else writes, and nobody reads before DONE.
        self.value.with_mut(|slot| unsafe { (*slot).write(value) });
        self.gate.finish(right);
        // SAFETY: 1. it is DONE by us.
        unsafe { self.value() }
    }

    /// # Safety
    /// 1. The cell is DONE, and the caller saw it.
    #[inline]
    unsafe fn value(&self) -> &T {
        // SAFETY: by 1. the value is there, and is not written any more.
        unsafe { &*self.value.with(|value| (*value).as_ptr()) }
    }

    fn take_value(&mut self) -> Option<T> {
        if !self.initialized() {
            return None;
        }
        // Relaxed: the borrow is the only one.
        self.gate.word.store(EMPTY, Relaxed);
        // SAFETY: we saw DONE, so the value is there; by EMPTY it is read once.
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
    /// Returns `true` if the cell was full already.
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

    /// Returns `true` if an initialiser is at work.
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
