//! Notifications without a message: to one who waits, or to all who do.
//!
//! # Protocol
//! The word holds a bit PERMIT, a bit WAITING for 'the line is not empty', and above
//! them the generation: how often all were notified.
//!
//! ```text
//! who waits                                  who notifies one
//! N1 created: notes the generation           O1 not WAITING: sets PERMIT, done
//! N2 another generation: done                O2 WAITING: locks the line
//! N3 PERMIT: takes it, done                  O3 the line is empty: sets PERMIT
//! N4 locks the line                          O4 dismisses the first, or the last, who is
//! N5 N2 and N3 once more                        of the current generation
//! N6 sets WAITING                            who notifies all
//! N7 joins the line                          A1 not WAITING: next generation, done
//!                                            A2 locks the line: next generation
//!                                            A3 dismisses all of an older generation, in
//!                                               batches, the lock let go between them
//! ```
//! N6 exchanges the same word as O1 and A1, so one comes first. If O1 or A1, N6 fails
//! and N5 sees it; if N6, they find WAITING and come to the lock behind N7.
//!
//! Whoever joins is of the current generation (N5, under the lock). So generations
//! never fall along the line, those who came after A2 stand behind all who are to be
//! dismissed, and A3 ends at the first of them. One who notifies one while A3 goes on
//! dismisses the older ones first: they have their notification already, and must not
//! take his.
//!
//! O1 and A1 exchange also where nothing changes: who takes a permit sees what all of
//! those did who set it. N1 acquires: who looks at a flag after it, and finds nothing,
//! is notified by whoever sets that flag and then notifies all.
//!
//! # Invariants
//! - WAITING is set exactly if the line is not empty, whenever the lock is free, and
//!   changes only under the lock.
//! - PERMIT and WAITING are not set together. While WAITING is set, the word changes
//!   only under the lock.
//! - A notification for one ends as a poll that is ready, as a permit, or with another
//!   waiter: who is dropped without having looked passes it on.
//!
//! # Rejected
//! Taking the line off whole to notify all: see `line.rs`. A count of generations of
//! each waiter's own, compared by size: a difference is enough. It is missed only if the
//! count comes round between the making of a future and its first poll: after 2^62 calls of
//! `notify_waiters`, or 2^30 where a word has 32 bits.
//!
//! # Checked by
//! `a_notification_against_a_waiter_is_not_lost`,
//! `a_notification_against_a_drop_is_passed_on`,
//! `a_second_notification_publishes_too`, `two_notifications_wake_two`,
//! `all_are_notified_who_were_created_before`,
//! `who_looks_after_its_creation_is_notified_or_sees`,
//! `one_against_all_against_a_drop_loses_nothing`,
//! `an_enabled_waiter_is_notified`, `a_batch_does_not_take_what_is_for_a_later_comer`,
//! `a_later_comer_is_not_woken_by_a_batch`, `a_new_waker_against_a_notification_is_woken`;
//! weakened as `notify_one_sees_waiting`, `notify_join_looks_again`,
//! `notify_drop_passes_on`, `notify_permit_release`, `notify_permit_acquire`,
//! `notify_set_again_publishes`, `notify_all_generation`, `notify_created_acquire`,
//! `notify_old_first`, `notify_batch_ends`, `notify_all_wakes_batches`.

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
        bolt::{Bolted, Opened},
        weakened,
    },
    wait::{
        batch::Batch,
        keep::keep_waker,
        line::{Line, Place, Waiter},
    },
    work::{
        current,
        task::{budget, moment::Wait},
    },
};

const PERMIT: usize = 1;
const WAITING: usize = 1 << 1;
const SHIFT: u32 = 2;
const GENERATION: usize = 1 << SHIFT;

/// Notifies a single task to wake up, or all that wait.
///
/// A `Notify` carries no value. It is a place where tasks wait until somebody says that
/// there is something to look at. Think of it as a semaphore that starts with no
/// permit and never has more than one: [`notify_one`] makes the permit, and
/// [`notified().await`](Self::notified) waits for it and takes it. If nobody waits the
/// permit is kept for the next one who does; a second one is not kept beside it.
///
/// [`notify_waiters`] is different: it notifies all who wait, and keeps nothing.
///
/// To notify while nobody waits, and to wait while there is a permit, is one exchange
/// on one word. Those who wait are served in the order in which they came.
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
/// // It does not matter who comes first.
/// notify.notify_one();
/// task.await.unwrap();
/// # });
/// ```
#[repr(align(64))] // A line to itself: two beside each other cost a quarter on two cores.
pub struct Notify {
    word: AtomicUsize,
    line: Bolted<Line<Entry>>,
}

/// One who waits: a part of its future, which is pinned with it.
pub(super) struct Listener {
    /// That of its creation.
    generation: usize,
    waiter: Waiter<Entry>,
}

/// What those who serve know of one who waits.
struct Entry {
    /// That of its creation.
    generation: usize,
    notice: Notice,
}

/// How one was notified.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notice {
    /// Not yet.
    None,
    /// Nor this one, whose task had no budget to take what was there: see `puts_off`.
    PutOff,
    /// By one that was for it alone.
    One(End),
    /// Together with all.
    All,
    /// It has looked.
    Seen,
}

/// From which end of the line one is notified.
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

    /// Creates a new `Notify`, also in a constant.
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
        Self { word: AtomicUsize::new(0), line: Bolted::new(Line::new()) }
    }

    /// The same; the model checker's words are not made in constants.
    #[cfg(blitz_loom)]
    pub fn const_new() -> Self {
        Self { word: AtomicUsize::new(0), line: Bolted::new(Line::new()) }
    }

    /// Waits for a notification.
    ///
    /// If there is a permit, the wait takes it and ends at once. Else it ends when it is
    /// its turn to be notified by [`notify_one`](Self::notify_one), or by the first
    /// [`notify_waiters`](Self::notify_waiters) after this call. It stands in line from
    /// its first poll on, or from [`Notified::enable`] on.
    ///
    /// A wait that completes takes one unit of the task's budget, if there is one. Without
    /// it one that need not wait is put off, once.
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped loses its place in the line. A notification that it was
    /// given and has not seen goes to the next one.
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

    /// Waits for a notification; the future owns its `Notify`.
    ///
    /// Otherwise as [`notified`](Self::notified).
    ///
    /// # Cancel safety
    ///
    /// As [`notified`](Self::notified).
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

    /// Notifies the one who has waited longest.
    ///
    /// If nobody waits, the permit is kept for the next one who does. At most one is
    /// kept.
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
    /// // Both made one permit.
    /// assert!(!std::pin::pin!(notify.notified()).enable());
    /// # });
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        self.notify(End::First);
    }

    /// Notifies the one who came last.
    ///
    /// Otherwise as [`notify_one`](Self::notify_one). Tasks that wait for work may like
    /// it: the last one to come has the warmest caches.
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

    /// Notifies all who wait now.
    ///
    /// These are all whose [`notified`](Self::notified) was called before, whether they
    /// have been polled or not. No permit is kept for those who come later.
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
    /// // Too late for this one.
    /// assert!(!std::pin::pin!(notify.notified()).enable());
    /// # });
    /// ```
    pub fn notify_waiters(&self) {
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        while now & WAITING == 0 {
            let next = now.wrapping_add(GENERATION);
            // A1. Release: who sees the generation sees what was done before. Pairs with
            // the Acquire in `listener`, `take` and `go_on`. Relaxed on failure: a better
            // guess.
            match self.word.compare_exchange_weak(now, next, Release, Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
        self.notify_all();
    }

    /// A2 and A3.
    #[cold]
    fn notify_all(&self) {
        let mut batch = Batch::new();
        let mut line = self.line.lock();
        if !weakened!("notify_all_generation") {
            // Release: as in A1.
            self.word.fetch_add(GENERATION, Release);
        }
        while self.dismiss_old(&mut line, &mut batch) {
            drop(line);
            batch.wake_all();
            if weakened!("notify_all_wakes_batches") {
                return;
            }
            line = self.line.lock();
        }
        drop(line);
        batch.wake_all();
    }

    /// Dismisses those of an older generation, until the batch is full: `true` then.
    fn dismiss_old(&self, line: &mut Line<Entry>, batch: &mut Batch) -> bool {
        // Relaxed: it changes only under the lock, which we hold, or if nobody waits.
        let now = generation(self.word.load(Relaxed));
        while let Some(entry) = line.first() {
            if entry.generation == now && !weakened!("notify_batch_ends") {
                return false;
            }
            if batch.is_full() {
                return true;
            }
            entry.notice = Notice::All;
            batch.push(line.dismiss_first());
            self.end_waiting(line);
        }
        false
    }

    /// Somebody has left, under the lock.
    fn end_waiting(&self, line: &Line<Entry>) {
        if line.is_empty() {
            // Relaxed: no permit is there to publish anything with, and an exchange
            // keeps what the generation publishes.
            self.word.fetch_and(!WAITING, Relaxed);
        }
    }

    #[inline]
    fn notify(&self, end: End) {
        let order = if weakened!("notify_permit_release") { Relaxed } else { Release };
        // Relaxed: a guess; the exchange below confirms it.
        let mut now = self.word.load(Relaxed);
        while now & WAITING == 0 || weakened!("notify_one_sees_waiting") {
            if now & PERMIT != 0 && weakened!("notify_set_again_publishes") {
                return;
            }
            // O1. Release: who takes the permit sees what was done before it was set, by
            // all who set it. Pairs with the Acquire in `take`. Relaxed on failure: a
            // better guess.
            match self.word.compare_exchange_weak(now, now | PERMIT, order, Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
        self.notify_in_line(end);
    }

    /// O2 to O4.
    fn notify_in_line(&self, end: End) {
        let mut line = self.line.lock();
        // Relaxed: as in `dismiss_old`.
        let now = generation(self.word.load(Relaxed));
        let is_old = |entry: &mut Entry| entry.generation != now;
        if line.first().is_some_and(is_old) && !weakened!("notify_old_first") {
            line = self.dismiss_all_old(line);
        }
        let first_or_last = match end {
            End::First => line.first(),
            End::Last => line.last(),
        };
        let Some(entry) = first_or_last else {
            // O3. Release: as in O1. Nobody can join meanwhile.
            self.word.fetch_or(PERMIT, Release);
            return;
        };
        entry.notice = Notice::One(end);
        let waker = match end {
            End::First => line.dismiss_first(),
            End::Last => line.dismiss_last(),
        };
        self.end_waiting(&line);
        drop(line);
        waker.wake();
    }

    /// Helps one who notifies all and has let the lock go. None is old when it comes back.
    #[cold]
    fn dismiss_all_old<'a>(&'a self, mut line: Opened<'a, Line<Entry>>) -> Opened<'a, Line<Entry>> {
        let mut batch = Batch::new();
        loop {
            let is_full = self.dismiss_old(&mut line, &mut batch);
            drop(line);
            batch.wake_all();
            line = self.line.lock();
            // While the lock was free more may have become old.
            // Relaxed: as in `dismiss_old`.
            let now = generation(self.word.load(Relaxed));
            if !is_full && line.first().is_none_or(|entry| entry.generation == now) {
                return line;
            }
        }
    }

    /// N1.
    #[inline]
    fn listener(&self) -> Listener {
        let order = if weakened!("notify_created_acquire") { Relaxed } else { Acquire };
        // Acquire: see the module's last remark on the protocol. Pairs with the Release
        // in `notify_waiters`.
        let generation = generation(self.word.load(order));
        let waiter = Waiter::new(Entry { generation, notice: Notice::None });
        Listener { generation, waiter }
    }

    /// N2 to N7, or what comes after; without a waker the wait is only enabled.
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
        match waiter.place() {
            // SAFETY: 1. and 2. by 1. and 2. 3. It is.
            Place::Out => ready!(unsafe { self.begin(listener, waker) }),
            // SAFETY: 1. and 2. by 1. and 2.
            Place::In => ready!(unsafe { self.go_on(listener, waker) }),
            Place::Left => waiter.settle(),
        }
        // SAFETY: 1. it is OUT by now. 2. It does not.
        unsafe { waiter.with_data(|entry| entry.notice = Notice::Seen) };
        Poll::Ready(())
    }

    /// [`listen`](Self::listen) for a task: with a unit of its budget, if there is one.
    ///
    /// # Safety
    /// 1. and 2. as there.
    #[inline]
    pub(super) unsafe fn poll(&self, listener: Pin<&Listener>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = budget::take();
        // SAFETY: 1. by 1.
        if unit.is_none() && unsafe { self.puts_off(listener) } {
            ready!(budget::available(cx));
        }
        // SAFETY: 1. and 2. by 1. and 2.
        let polled = unsafe { self.listen(listener, Some(cx.waker())) };
        if polled.is_ready() {
            if let Some(unit) = unit {
                unit.spend();
            }
        } else {
            current::waits_for(Wait::Notice);
        }
        polled
    }

    /// Whether one who comes without budget has to wait for its task's next turn. So it is
    /// if there is something to take at once: a loop over notifications lets others run.
    /// But only once, and not after it has waited in line: what is polled beside it may
    /// use up the budget of every poll, and would keep it from ever taking anything.
    ///
    /// # Safety
    /// 1. As `listen`.
    #[cold]
    unsafe fn puts_off(&self, listener: Pin<&Listener>) -> bool {
        let waiter = listener.waiter();
        // Relaxed: a look; whoever goes on looks again.
        let now = self.word.load(Relaxed);
        let is_ready = generation(now) != listener.generation || now & PERMIT != 0;
        if !is_ready || waiter.place() != Place::Out {
            return false;
        }
        let put_off = |entry: &mut Entry| {
            let first = entry.notice == Notice::None;
            if first {
                entry.notice = Notice::PutOff;
            }
            first
        };
        // SAFETY: 1. it is OUT, and the caller's by 1. 2. It does not.
        unsafe { waiter.with_data(put_off) }
    }

    /// N2 to N7.
    ///
    /// # Safety
    /// 1. and 2. as `listen`. 3. The waiter is OUT.
    #[inline]
    unsafe fn begin(&self, listener: Pin<&Listener>, waker: Option<&Waker>) -> Poll<()> {
        let waiter = listener.waiter();
        // SAFETY: 1. by 3. 2. It does not.
        let seen = unsafe { waiter.with_data(|entry| entry.notice == Notice::Seen) };
        if seen || self.take(listener.generation, 0) {
            return Poll::Ready(());
        }
        // A user's code, and so before the lock.
        let waker = waker.unwrap_or(Waker::noop()).clone();
        let mut line = self.line.lock();
        if self.take(listener.generation, WAITING) {
            // The lock first, then the waker.
            drop(line);
            drop(waker);
            return Poll::Ready(());
        }
        // SAFETY: 1. by 3. 2. `give_up` does, which is called by 2.
        unsafe { line.join(waiter, waker) };
        Poll::Pending
    }

    /// N2 and N3; if neither is so the word gets this mark.
    #[inline]
    fn take(&self, created: usize, mark: usize) -> bool {
        let order = if weakened!("notify_permit_acquire") { Relaxed } else { Acquire };
        // Acquire, here and below: what was done before the notification. Pairs with the
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

    /// In line, as far as we know. Ready: it is out of it now.
    ///
    /// # Safety
    /// 1. and 2. as `listen`.
    unsafe fn go_on(&self, listener: Pin<&Listener>, waker: Option<&Waker>) -> Poll<()> {
        let waiter = listener.waiter();
        // Acquire: as in `take`. One who notifies all has not come to us yet.
        if generation(self.word.load(Acquire)) != listener.generation {
            // SAFETY: 1. by 1.
            unsafe { self.leave(waiter) };
            return Poll::Ready(());
        }
        if let Some(waker) = waker {
            // SAFETY: 1. by 1. 2. It joined this line.
            unsafe { keep_waker(&self.line, |line| line, waiter, waker) };
        }
        if waiter.place() != Place::Left {
            return Poll::Pending;
        }
        waiter.settle();
        Poll::Ready(())
    }

    /// Out of the line, in whatever way; answers with a notification that was not seen.
    ///
    /// # Safety
    /// 1. The caller owns the waiter, and it is IN this line or has left it.
    unsafe fn leave(&self, waiter: Pin<&Waiter<Entry>>) -> Notice {
        let mut line = self.line.lock();
        // SAFETY: 1. and 2. by 1.
        if let Some(waker) = unsafe { line.remove(waiter) } {
            self.end_waiting(&line);
            drop(line);
            // Last: dropping it may panic, and everything is done by now.
            drop(waker);
            return Notice::None;
        }
        drop(line);
        waiter.settle();
        // SAFETY: 1. it is OUT. 2. It does not.
        unsafe { waiter.with_data(|entry| entry.notice) }
    }

    /// The listener ends: passes on what it was given and has not seen.
    ///
    /// # Safety
    /// 1. As `listen`.
    #[inline]
    pub(super) unsafe fn give_up(&self, listener: Pin<&Listener>) {
        if listener.waiter.place() != Place::Out {
            // SAFETY: 1. by 1., and it is not OUT.
            unsafe { self.give_up_place(listener) };
        }
    }

    /// # Safety
    /// 1. As `listen`. 2. The waiter is not OUT.
    #[cold]
    unsafe fn give_up_place(&self, listener: Pin<&Listener>) {
        // SAFETY: 1. by 1. and 2.
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
        // Relaxed: a look.
        let now = self.word.load(Relaxed);
        f.debug_struct("Notify")
            .field("permit", &(now & PERMIT != 0))
            .field("waiting", &(now & WAITING != 0))
            .finish()
    }
}

impl Listener {
    fn waiter(self: Pin<&Self>) -> Pin<&Waiter<Entry>> {
        // SAFETY: the waiter is pinned with the listener: nothing moves it, and its
        // destructor runs in place.
        unsafe { self.map_unchecked(|this| &this.waiter) }
    }
}

#[cfg(test)]
mod models;
