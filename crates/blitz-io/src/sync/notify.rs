//! Notifications without a value, to one waiter or to all of them.
//!
//! # Protocol
//! The state word holds a bit PERMIT, a bit WAITING that says that the wait queue (the queue)
//! is not empty, and above them the generation: how often all waiters were notified.
//!
//! ```text
//! a waiter                                   notify_one
//! N1 created: notes the generation           O1 not WAITING: sets PERMIT, done
//! N2 another generation: done                O2 WAITING: locks the queue
//! N3 PERMIT: takes it, done                  O3 the queue is empty: sets PERMIT
//! N4 locks the queue                         O4 dismisses the first, or the last, which is
//! N5 N2 and N3 once more                        of the current generation
//! N6 sets WAITING                            notify_waiters
//! N7 joins the queue                         A1 not WAITING: next generation, done
//!                                            A2 locks the queue: next generation
//!                                            A3 dismisses all of an older generation, one
//!                                               wake list at a time, with the lock
//!                                               released in between
//! ```
//! N6 exchanges the same word as O1 and A1, so one of them comes first. If O1 or A1 does, N6
//! fails and N5 sees the notification; if N6 does, O1 and A1 find WAITING set and get the lock
//! after N7.
//!
//! A waiter that joins is of the current generation (N5, under the lock). So generations
//! never decrease along the queue, waiters that joined after A2 are behind all that must be
//! dismissed, and A3 stops at the first of them. A thread that notifies one waiter while A3
//! goes on dismisses the older waiters first, because they are notified already and must not
//! consume its notification.
//!
//! O1 and A1 exchange the word even if there is nothing to change (PERMIT is already set, or
//! no waiter exists), so a waiter that takes a permit sees what every thread that set it did
//! before. N1 loads with Acquire, so a waiter that creates its future, then checks a flag and
//! finds it unset, is notified by the thread that sets the flag and then notifies all.
//!
//! # Invariants
//! - WAITING is set exactly if the wait queue is not empty, whenever the lock is free, and
//!   changes only under the lock.
//! - PERMIT and WAITING are not set together. While WAITING is set, the word changes only under the
//!   lock.
//! - A notification for one waiter ends as a poll that returns ready, as a permit, or with
//!   another waiter: a future that is dropped before it saw its notification passes it on.
//!
//! # Rejected
//! Detaching the whole wait queue to notify all: see `wait_queue.rs`. Comparing the generations of
//! waiters by size: inequality is enough. It misses a notification only if the generation
//! wraps around between the creation of a future and its first poll: after 2^62 calls of
//! `notify_waiters`, or 2^30 on a 32-bit machine.
//!
//! # Checked by
//! `a_notification_against_a_waiter_is_not_lost`, `a_notification_against_a_drop_is_passed_on`,
//! `a_second_notification_publishes_too`, `two_notifications_wake_two`,
//! `all_waiters_created_before_are_notified`, `a_check_after_creation_is_notified_or_sees`,
//! `one_against_all_against_a_drop_loses_nothing`, `an_enabled_waiter_is_notified`,
//! `a_wake_list_does_not_take_what_is_for_a_later_waiter`,
//! `a_later_waiter_is_not_woken_by_a_wake_list`, `a_new_waker_against_a_notification_is_woken`;
//! weakened as `notify_one_sees_waiting`, `notify_join_looks_again`, `notify_drop_passes_on`,
//! `notify_permit_release`, `notify_permit_acquire`, `notify_set_again_publishes`,
//! `notify_all_generation`, `notify_created_acquire`, `notify_old_first`, `notify_batch_ends`,
//! `notify_all_wakes_batches`.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use super::futures::{Notified, OwnedNotified};
use crate::engine::{
    prim::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
        store_lock::{StoreLock, StoreLockGuard},
        weakened,
    },
    wait::{
        update_waker::update_waker,
        wait_queue::{WaitQueue, Waiter, WaiterState},
        wake_list::WakeList,
    },
    work::{
        task::{budget, timestamp::WaitReason},
        thread_context,
    },
};

const PERMIT: usize = 1;
const WAITING: usize = 1 << 1;
const SHIFT: u32 = 2;
const GENERATION: usize = 1 << SHIFT;

/// Notifies one waiting task, or all of them, without passing a value.
///
/// Tasks wait on a `Notify` until another task reports that there is something to do. It
/// behaves like a semaphore that starts without a permit and never has more than one:
/// [`notify_one`] makes the permit available, and [`notified().await`](Self::notified) waits
/// for it and consumes it. If no task waits, the permit is stored for the next one that does;
/// a second permit is not stored beside it.
///
/// [`notify_waiters`] is different: it notifies all current waiters and stores nothing.
///
/// Notifying while no task waits, and waiting while a permit is stored, is one atomic
/// exchange on one word. Waiters are notified in the order in which they began to wait.
///
/// [`notify_one`]: Self::notify_one
/// [`notify_waiters`]: Self::notify_waiters
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::Notify;
///
/// # blitz_io::run(async {
/// let notify = Arc::new(Notify::new());
/// let task = blitz_io::spawn({
///     let notify = notify.clone();
///     async move { notify.notified().await }
/// });
/// // The order of the two does not matter.
/// notify.notify_one();
/// task.await.unwrap();
/// # });
/// ```
#[repr(align(64))] // A cache line of its own: two in one line cost a quarter on two cores.
pub struct Notify {
    word: AtomicUsize,
    waiters: StoreLock<WaitQueue<WaiterData>>,
}

/// State of one waiter, which is part of the waiting future and pinned with it.
pub(super) struct Listener {
    /// The generation at the creation of the future.
    generation: usize,
    waiter: Waiter<WaiterData>,
}

/// Data of a waiter that notifying threads read and write under the lock.
struct WaiterData {
    /// The generation at the creation of the future.
    generation: usize,
    notice: Notice,
}

/// How a waiter was notified, if at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notice {
    /// Not notified yet.
    None,
    /// Not notified yet, and deferred once because its task had no budget to take what was
    /// available: see `defer_once`.
    PutOff,
    /// Notified alone, from this end of the wait queue.
    One(End),
    /// Notified together with all other waiters.
    All,
    /// The future has returned ready.
    Seen,
}

/// The end of the wait queue from which a waiter is notified.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

fn generation(word: usize) -> usize {
    word >> SHIFT
}

impl Notify {
    /// Creates a new `Notify`, without a permit.
    ///
    /// # Examples
    ///
    /// ```
    /// let notify = blitz_io::sync::Notify::new();
    /// notify.notify_one();
    /// # blitz_io::run(notify.notified());
    /// ```
    pub fn new() -> Self {
        Self::const_new()
    }

    /// Creates a new `Notify` without a permit, for use in constants and statics.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Notify;
    ///
    /// static CHANGED: Notify = Notify::const_new();
    ///
    /// CHANGED.notify_one();
    /// # blitz_io::run(CHANGED.notified());
    /// ```
    #[cfg(not(blitz_loom))]
    pub const fn const_new() -> Self {
        Self { word: AtomicUsize::new(0), waiters: StoreLock::new(WaitQueue::new()) }
    }

    /// Creates a new `Notify`; not `const`, because the model checker's atomics are not.
    #[cfg(blitz_loom)]
    pub fn const_new() -> Self {
        Self { word: AtomicUsize::new(0), waiters: StoreLock::new(WaitQueue::new()) }
    }

    /// Waits for a notification.
    ///
    /// If a permit is stored, the wait consumes it and completes at once. Otherwise it completes
    /// when it is its turn to be notified by [`notify_one`](Self::notify_one), or at the first
    /// [`notify_waiters`](Self::notify_waiters) after this call. The future joins the wait queue
    /// when it is first polled, or when [`Notified::enable`] is called.
    ///
    /// A completed wait consumes one unit of the task's budget, if there is one. Without budget,
    /// a wait that could complete at once is deferred to the task's next poll, but only once.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in the wait queue. If it was notified by `notify_one` and
    /// has not completed, the notification goes to the next waiter.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Notify;
    ///
    /// # blitz_io::run(async {
    /// let notify = Notify::new();
    /// notify.notify_one();
    /// notify.notified().await;
    /// # });
    /// ```
    #[inline]
    pub fn notified(&self) -> Notified<'_> {
        Notified::new(self, self.listener())
    }

    /// Waits for a notification, in a future that owns the [`Arc`].
    ///
    /// Behaves like [`notified`](Self::notified) otherwise.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses its place in the wait queue and passes on a notification that it
    /// was given and has not seen, like [`notified`](Self::notified).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::sync::Notify;
    ///
    /// # blitz_io::run(async {
    /// let notify = Arc::new(Notify::new());
    /// let task = blitz_io::spawn(notify.clone().notified_owned());
    /// notify.notify_one();
    /// task.await.unwrap();
    /// # });
    /// ```
    #[inline]
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        let listener = self.listener();
        OwnedNotified::new(self, listener)
    }

    /// Notifies the task that has waited longest.
    ///
    /// If no task waits, a permit is stored for the next one that does. At most one permit is
    /// stored.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Notify;
    ///
    /// # blitz_io::run(async {
    /// let notify = Notify::new();
    /// notify.notify_one();
    /// notify.notify_one();
    /// notify.notified().await;
    /// // Both calls stored the same permit.
    /// assert!(!std::pin::pin!(notify.notified()).enable());
    /// # });
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        self.notify(End::First);
    }

    /// Notifies the task that began to wait last.
    ///
    /// Behaves like [`notify_one`](Self::notify_one) otherwise. Useful for tasks that wait for
    /// work, because the one that began to wait last has the warmest caches.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::pin::pin;
    /// use blitz_io::sync::Notify;
    ///
    /// let notify = Notify::new();
    /// let (mut first, mut last) = (pin!(notify.notified()), pin!(notify.notified()));
    /// assert!(!first.as_mut().enable() && !last.as_mut().enable());
    /// notify.notify_last();
    /// assert!(!first.as_mut().enable());
    /// assert!(last.as_mut().enable());
    /// ```
    #[inline]
    pub fn notify_last(&self) {
        self.notify(End::Last);
    }

    /// Notifies all tasks that wait now.
    ///
    /// These are all waits for which [`notified`](Self::notified) was called before, whether the
    /// future has been polled or not. No permit is stored for later waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Notify;
    ///
    /// # blitz_io::run(async {
    /// let notify = Notify::new();
    /// let (first, second) = (notify.notified(), notify.notified());
    /// notify.notify_waiters();
    /// first.await;
    /// second.await;
    /// // This wait begins too late to be notified.
    /// assert!(!std::pin::pin!(notify.notified()).enable());
    /// # });
    /// ```
    pub fn notify_waiters(&self) {
        // Relaxed: only a first guess, which the exchange below confirms.
        let mut now = self.word.load(Relaxed);
        while now & WAITING == 0 {
            let next = now.wrapping_add(GENERATION);
            // A1. Release: a waiter that sees the new generation sees what was done before it.
            // Pairs with the Acquire in `listener`, `take` and `go_on`. Relaxed on failure: only a
            // better guess.
            match self.word.compare_exchange_weak(now, next, Release, Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
        self.notify_all();
    }

    /// Begins a new generation and dismisses all waiters of older ones (A2 and A3).
    #[cold]
    fn notify_all(&self) {
        let mut wake_list = WakeList::new();
        let mut waiters = self.waiters.lock();
        if !weakened!("notify_all_generation") {
            // Release: a waiter that sees the new generation sees what was done before it. Pairs
            // with the Acquire in `listener`, `take` and `go_on`.
            self.word.fetch_add(GENERATION, Release);
        }
        while self.dismiss_old(&mut waiters, &mut wake_list) {
            drop(waiters);
            wake_list.wake_all();
            if weakened!("notify_all_wakes_batches") {
                return;
            }
            waiters = self.waiters.lock();
        }
        drop(waiters);
        wake_list.wake_all();
    }

    /// Dismisses waiters of older generations; returns `true` if it stopped because the wake list
    /// is full.
    fn dismiss_old(&self, waiters: &mut WaitQueue<WaiterData>, wake_list: &mut WakeList) -> bool {
        // Relaxed: the generation changes only under the lock, which we hold, or while the wait
        // queue is empty.
        let now = generation(self.word.load(Relaxed));
        while let Some(data) = waiters.first() {
            if data.generation == now && !weakened!("notify_batch_ends") {
                return false;
            }
            if wake_list.is_full() {
                return true;
            }
            data.notice = Notice::All;
            wake_list.push(waiters.dismiss_first());
            self.end_waiting(waiters);
        }
        false
    }

    /// Clears WAITING if the wait queue is empty; called under the lock after a waiter left it.
    fn end_waiting(&self, waiters: &WaitQueue<WaiterData>) {
        if waiters.is_empty() {
            // Relaxed: there is no permit that would have to publish anything, and a
            // read-modify-write keeps what the generation publishes.
            self.word.fetch_and(!WAITING, Relaxed);
        }
    }

    #[inline]
    fn notify(&self, end: End) {
        let order = if weakened!("notify_permit_release") { Relaxed } else { Release };
        // Relaxed: only a first guess, which the exchange below confirms.
        let mut now = self.word.load(Relaxed);
        while now & WAITING == 0 || weakened!("notify_one_sees_waiting") {
            if now & PERMIT != 0 && weakened!("notify_set_again_publishes") {
                return;
            }
            // O1. Release: the waiter that takes the permit sees what every thread that set it did
            // before. Pairs with the Acquire in `take`. Relaxed on failure: only a better guess.
            match self.word.compare_exchange_weak(now, now | PERMIT, order, Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
        self.notify_queued(end);
    }

    /// Notifies one waiter under the lock, or stores a permit if there is none (O2 to O4).
    fn notify_queued(&self, end: End) {
        let mut waiters = self.waiters.lock();
        // Relaxed: the generation changes only under the lock, which we hold, or while the wait
        // queue is empty.
        let now = generation(self.word.load(Relaxed));
        let is_old = |data: &mut WaiterData| data.generation != now;
        if waiters.first().is_some_and(is_old) && !weakened!("notify_old_first") {
            waiters = self.dismiss_all_old(waiters);
        }
        let first_or_last = match end {
            End::First => waiters.first(),
            End::Last => waiters.last(),
        };
        let Some(data) = first_or_last else {
            // O3. Release: the waiter that takes the permit sees what was done before it was set.
            // Pairs with the Acquire in `take`. No waiter can join meanwhile, as we hold the lock.
            self.word.fetch_or(PERMIT, Release);
            return;
        };
        data.notice = Notice::One(end);
        let waker = match end {
            End::First => waiters.dismiss_first(),
            End::Last => waiters.dismiss_last(),
        };
        self.end_waiting(&waiters);
        drop(waiters);
        waker.wake();
    }

    /// Helps a thread that notifies all and has released the lock between two wake lists: dismisses
    /// all waiters of older generations. The returned queue has none of them.
    #[cold]
    fn dismiss_all_old<'a>(
        &'a self,
        mut waiters: StoreLockGuard<'a, WaitQueue<WaiterData>>,
    ) -> StoreLockGuard<'a, WaitQueue<WaiterData>> {
        let mut wake_list = WakeList::new();
        loop {
            let is_full = self.dismiss_old(&mut waiters, &mut wake_list);
            drop(waiters);
            wake_list.wake_all();
            waiters = self.waiters.lock();
            // More waiters may have become old while the lock was free.
            // Relaxed: the generation changes only under the lock, which we hold, or while the wait
            // queue is empty.
            let now = generation(self.word.load(Relaxed));
            if !is_full && waiters.first().is_none_or(|data| data.generation == now) {
                return waiters;
            }
        }
    }

    /// Creates a listener that notes the current generation (N1).
    #[inline]
    fn listener(&self) -> Listener {
        let order = if weakened!("notify_created_acquire") { Relaxed } else { Acquire };
        // Acquire: a caller that checks a flag after this and finds it unset is notified by the
        // thread that sets the flag and then notifies all. Pairs with the Release in
        // `notify_waiters` and `notify_all`.
        let generation = generation(self.word.load(order));
        let waiter = Waiter::new(WaiterData { generation, notice: Notice::None });
        Listener { generation, waiter }
    }

    /// Polls a wait (N2 to N7, or what follows them); without a waker it is only enabled.
    ///
    /// # Safety
    /// 1. The listener is from this `Notify`, and is given to no other.
    /// 2. The caller calls `give_up` before the listener ends.
    #[inline]
    pub(super) unsafe fn listen(
        &self,
        listener: Pin<&Listener>,
        waker: Option<&Waker>,
    ) -> Poll<()> {
        let waiter = listener.waiter();
        match waiter.state() {
            // SAFETY: 1. our own obligation 1 says that the listener is this `Notify`'s. 2. Our own
            // obligation 2 says that the caller calls `give_up`. 3. `state` is OUT.
            WaiterState::Out => ready!(unsafe { self.begin(listener, waker) }),
            // SAFETY: 1. our own obligation 1 says that the listener is this `Notify`'s. 2. Our own
            // obligation 2 says that the caller calls `give_up`.
            WaiterState::In => ready!(unsafe { self.go_on(listener, waker) }),
            WaiterState::Dismissed => waiter.settle(),
        }
        // SAFETY: 1. our obligation 1 makes the waiter the caller's, and it is OUT by now.
        // 2. The closure only stores a field.
        unsafe { waiter.with_data(|data| data.notice = Notice::Seen) };
        Poll::Ready(())
    }

    /// Polls a wait for a task, like [`listen`](Self::listen), and spends a unit of the task's
    /// budget when it completes, if there is one.
    ///
    /// # Safety
    /// 1. The listener is from this `Notify`, and is given to no other.
    /// 2. The caller calls `give_up` before the listener ends.
    #[inline]
    pub(super) unsafe fn poll(&self, listener: Pin<&Listener>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = budget::take();
        // SAFETY: 1. our own obligation 1 says that the listener is this `Notify`'s.
        if unit.is_none() && unsafe { self.defer_once(listener) } {
            ready!(budget::available(cx));
        }
        // SAFETY: 1. our own obligation 1 says that the listener is this `Notify`'s. 2. Our own
        // obligation 2 says that the caller calls `give_up`.
        let polled = unsafe { self.listen(listener, Some(cx.waker())) };
        if polled.is_ready() {
            if let Some(unit) = unit {
                unit.spend();
            }
        } else {
            thread_context::waits_for(WaitReason::Notice);
        }
        polled
    }

    /// Returns `true` if a wait that was polled without budget must be deferred to its task's
    /// next poll.
    ///
    /// That is so if it could complete at once, so that a loop over notifications lets other
    /// tasks run. But it is deferred only once, and never after it has been in the wait queue:
    /// otherwise a future polled beside it could use up the budget of every poll and keep it
    /// from ever completing.
    ///
    /// # Safety
    /// 1. The listener is from this `Notify`, and is given to no other.
    #[cold]
    unsafe fn defer_once(&self, listener: Pin<&Listener>) -> bool {
        let waiter = listener.waiter();
        // Relaxed: only a hint; the code that goes on reads the word again.
        let now = self.word.load(Relaxed);
        let is_ready = generation(now) != listener.generation || now & PERMIT != 0;
        if !is_ready || waiter.state() != WaiterState::Out {
            return false;
        }
        let put_off = |data: &mut WaiterData| {
            let first = data.notice == Notice::None;
            if first {
                data.notice = Notice::PutOff;
            }
            first
        };
        // SAFETY: 1. our obligation 1 makes the waiter the caller's, and it is OUT. 2. The
        // closure only touches the data.
        unsafe { waiter.with_data(put_off) }
    }

    /// Takes a notification that is there, or joins the wait queue (N2 to N7).
    ///
    /// # Safety
    /// 1. The listener is from this `Notify`, and is given to no other.
    /// 2. The caller calls `give_up` before the listener ends.
    /// 3. The waiter is OUT.
    #[inline]
    unsafe fn begin(&self, listener: Pin<&Listener>, waker: Option<&Waker>) -> Poll<()> {
        let waiter = listener.waiter();
        // SAFETY: 1. our obligation 1 makes the waiter the caller's, and by obligation 3 it is
        // OUT. 2. The closure only reads a field.
        let seen = unsafe { waiter.with_data(|data| data.notice == Notice::Seen) };
        if seen || self.take(listener.generation, 0) {
            return Poll::Ready(());
        }
        // Cloning a waker runs user code, so it happens before the lock is taken.
        let waker = waker.unwrap_or(Waker::noop()).clone();
        let mut waiters = self.waiters.lock();
        if self.take(listener.generation, WAITING) {
            // Dropping a waker runs user code, so the lock is released first.
            drop(waiters);
            drop(waker);
            return Poll::Ready(());
        }
        // SAFETY: 1. our obligation 1 makes the waiter the caller's, and by obligation 3 it is
        // OUT. 2. `give_up` removes it, and by our obligation 2 the caller calls it.
        unsafe { waiters.join(waiter, waker) };
        Poll::Pending
    }

    /// Takes a notification of another generation (N2) or the permit (N3) and returns `true`; if
    /// there is neither, sets the bits of `mark` in the word.
    #[inline]
    fn take(&self, created: usize, mark: usize) -> bool {
        let order = if weakened!("notify_permit_acquire") { Relaxed } else { Acquire };
        // Acquire, here and below: sees what was done before the notification. Pairs with the
        // Release in `notify` and `notify_waiters`.
        let mut now = self.word.load(order);
        loop {
            let blind = mark != 0 && weakened!("notify_join_looks_again");
            if generation(now) != created && !blind {
                return true;
            }
            let permit = now & PERMIT != 0 && !blind;
            let next = if permit { now & !PERMIT } else { now | mark };
            if next == now {
                return false;
            }
            match self.word.compare_exchange_weak(now, next, order, order) {
                Ok(_) => return permit,
                Err(seen) => now = seen,
            }
        }
    }

    /// Polls a waiter that is in the wait queue, or was dismissed meanwhile; if this returns
    /// ready, it is out of the queue.
    ///
    /// # Safety
    /// 1. The listener is from this `Notify`, and is given to no other.
    /// 2. The caller calls `give_up` before the listener ends.
    unsafe fn go_on(&self, listener: Pin<&Listener>, waker: Option<&Waker>) -> Poll<()> {
        let waiter = listener.waiter();
        // Acquire: sees what was done before the notification. Pairs with the Release in
        // `notify_waiters` and `notify_all`. If the generation is another, a thread is notifying
        // all and has not reached this waiter yet.
        if generation(self.word.load(Acquire)) != listener.generation {
            // SAFETY: 1. our obligation 1 makes the waiter the caller's; it joined this queue, and
            // may have left it since.
            unsafe { self.leave(waiter) };
            return Poll::Ready(());
        }
        if let Some(waker) = waker {
            // SAFETY: 1. our obligation 1 makes the waiter the caller's. 2. It joined this queue.
            unsafe { update_waker(&self.waiters, |waiters| waiters, waiter, waker) };
        }
        if waiter.state() != WaiterState::Dismissed {
            return Poll::Pending;
        }
        waiter.settle();
        Poll::Ready(())
    }

    /// Takes a waiter out of the wait queue, if it has not left it already, and returns the
    /// notification that it was given and has not seen.
    ///
    /// # Safety
    /// 1. The caller owns the waiter, and it is in this wait queue (IN) or was dismissed from it
    ///    (DISMISSED).
    unsafe fn leave(&self, waiter: Pin<&Waiter<WaiterData>>) -> Notice {
        let mut waiters = self.waiters.lock();
        // SAFETY: 1. our obligation 1 says that the caller owns the waiter, and 2. that if it is
        // in a queue, then in this one.
        if let Some(waker) = unsafe { waiters.remove(waiter) } {
            self.end_waiting(&waiters);
            drop(waiters);
            // Last, because dropping a waker may panic, and everything else is done by now.
            drop(waker);
            return Notice::None;
        }
        drop(waiters);
        waiter.settle();
        // SAFETY: 1. the caller owns the waiter by our obligation 1, and `settle` made it OUT.
        // 2. The closure only reads a field.
        unsafe { waiter.with_data(|data| data.notice) }
    }

    /// Ends a wait: passes on a notification that the listener was given and has not seen.
    ///
    /// # Safety
    /// 1. The listener is from this `Notify`, and is given to no other.
    #[inline]
    pub(super) unsafe fn give_up(&self, listener: Pin<&Listener>) {
        if listener.waiter.state() != WaiterState::Out {
            // SAFETY: 1. our obligation 1 makes the listener this `Notify`'s. 2. Its state is not
            // OUT.
            unsafe { self.give_up_place(listener) };
        }
    }

    /// Leaves the wait queue and passes on an unseen notification for one.
    ///
    /// # Safety
    /// 1. The listener is from this `Notify`, and is given to no other.
    /// 2. The waiter is not OUT.
    #[cold]
    unsafe fn give_up_place(&self, listener: Pin<&Listener>) {
        // SAFETY: 1. the caller owns the waiter by our obligation 1, and by obligation 2 it is in
        // this queue or has left it.
        match unsafe { self.leave(listener.waiter()) } {
            Notice::One(end) if !weakened!("notify_drop_passes_on") => self.notify(end),
            _ => {}
        }
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: only for display.
        let now = self.word.load(Relaxed);
        f.debug_struct("Notify")
            .field("permit", &(now & PERMIT != 0))
            .field("waiting", &(now & WAITING != 0))
            .finish()
    }
}

impl Listener {
    fn waiter(self: Pin<&Self>) -> Pin<&Waiter<WaiterData>> {
        // SAFETY: the waiter is pinned with the listener: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.waiter) }
    }
}

#[cfg(test)]
mod models;
