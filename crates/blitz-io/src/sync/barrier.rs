//! A barrier at which tasks wait for each other, round after round.
//!
//! # Protocol
//! One lock guards all of the state: the number of tasks that have arrived, the number of the
//! round, and the wait queue (the queue).
//!
//! ```text
//! a task that arrives
//! B1 counts itself
//! B2 not the last of the round: joins the queue with the number of the round
//! B3 the last: begins the next round, and dismisses all of the rounds before, one
//!    wake list at a time, with the lock released in between; it is the leader
//! ```
//! A waiter that joins is of the current round, so round numbers never decrease along the
//! wait queue: tasks that arrive for the next round while B3 goes on are behind all that must
//! be dismissed, and B3 stops at the first of them. A leader may also dismiss the remaining
//! waiters of the previous round; that round's leader then finds none.
//!
//! # Invariants
//! - Every round has one leader: the task that found the count one short of full.
//! - A dropped future has arrived nevertheless: the count never decreases within a round.
//!
//! # Rejected
//! An atomic count beside the lock: all tasks but the last of a round take the lock anyway,
//! in order to wait.
//!
//! # Checked by
//! `two_rounds_of_two_have_one_leader_each`, `a_later_round_is_not_woken_by_a_wake_list`,
//! `a_waiter_that_is_dropped_has_arrived`, `a_round_publishes_what_was_done_before_it`,
//! `a_new_waker_against_the_last_to_arrive_is_woken`; weakened as `barrier_counts_once`,
//! `barrier_round_ends`, `barrier_wakes_batches`, `barrier_next_round`.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::engine::{
    prim::{store_lock::StoreLock, weakened},
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

/// Lets a number of tasks wait until all of them have reached the same point.
///
/// [`wait`](Self::wait) completes when as many tasks wait as the barrier was created for.
/// Then the barrier is ready for the next round. In each round exactly one task is reported
/// to be the leader.
///
/// A barrier allocates nothing, neither when it is created nor for waiting tasks.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use blitz_io::sync::Barrier;
///
/// # blitz_io::run(async {
/// let barrier = Arc::new(Barrier::new(10));
/// let tasks: Vec<_> = (0..10)
///     .map(|_| {
///         let barrier = barrier.clone();
///         blitz_io::spawn(async move { barrier.wait().await })
///     })
///     .collect();
/// let mut leaders = 0;
/// for task in tasks {
///     leaders += usize::from(task.await.unwrap().is_leader());
/// }
/// assert_eq!(leaders, 1);
/// # });
/// ```
pub struct Barrier {
    /// The number of tasks that complete a round; at least one.
    size: usize,
    round: StoreLock<Round>,
}

struct Round {
    number: usize,
    /// The number of tasks that have arrived in this round; less than `size`.
    arrived: usize,
    /// The wait queue; each waiter's data is the number of its round.
    waiters: WaitQueue<usize>,
}

/// Result of [`Barrier::wait`]: whether the task is the leader of its round.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let result = blitz_io::sync::Barrier::new(1).wait().await;
/// assert!(result.is_leader());
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct BarrierWaitResult(bool);

/// Future of [`Barrier::wait`]; its first poll is the arrival.
struct Arrival<'a> {
    barrier: &'a Barrier,
    waiter: Waiter<usize>,
}

impl Barrier {
    /// Creates a new barrier for `n` tasks.
    ///
    /// A barrier for 0 tasks behaves like one for a single task, which never waits, as in the
    /// standard library.
    ///
    /// # Examples
    ///
    /// ```
    /// let barrier = blitz_io::sync::Barrier::new(2);
    /// # blitz_io::run(async {
    /// let (one, other) = blitz_io::join!(barrier.wait(), barrier.wait());
    /// assert_ne!(one.is_leader(), other.is_leader());
    /// # });
    /// ```
    pub fn new(n: usize) -> Self {
        let round = Round { number: 0, arrived: 0, waiters: WaitQueue::new() };
        Self { size: n.max(1), round: StoreLock::new(round) }
    }

    /// Waits until all tasks of the round have arrived.
    ///
    /// The last task to arrive does not wait and is the leader. A completed wait consumes one
    /// unit of the task's budget, if there is one. A task without budget arrives nevertheless.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a future that was polled has arrived, and counts for its round even if
    /// it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::Barrier;
    ///
    /// # blitz_io::run(async {
    /// let barrier = Barrier::new(1);
    /// for _round in 0..3 {
    ///     assert!(barrier.wait().await.is_leader());
    /// }
    /// # });
    /// ```
    pub async fn wait(&self) -> BarrierWaitResult {
        Arrival { barrier: self, waiter: Waiter::new(0) }.await
    }

    /// Dismisses waiters of earlier rounds (B3); returns `true` if it stopped because the wake list
    /// is full.
    fn dismiss(round: &mut Round, wake_list: &mut WakeList) -> bool {
        while let Some(number) = round.waiters.first() {
            if *number == round.number && !weakened!("barrier_round_ends") {
                return false;
            }
            if wake_list.is_full() {
                return true;
            }
            wake_list.push(round.waiters.dismiss_first());
        }
        false
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrived = self.round.lock().arrived;
        f.debug_struct("Barrier").field("size", &self.size).field("arrived", &arrived).finish()
    }
}

impl BarrierWaitResult {
    /// Returns `true` if this task is the leader of the round.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let barrier = blitz_io::sync::Barrier::new(1);
    /// if barrier.wait().await.is_leader() {
    ///     // True for one task of each round.
    /// }
    /// # });
    /// ```
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl<'a> Arrival<'a> {
    fn waiter(self: Pin<&Self>) -> (&'a Barrier, Pin<&Waiter<usize>>) {
        let barrier = self.barrier;
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (barrier, unsafe { self.map_unchecked(|this| &this.waiter) })
    }

    /// Returns `true` if a wait that was polled without budget must be deferred to its task's
    /// next poll.
    ///
    /// That is so for a barrier of one task only, and only once, so that a loop over such
    /// barriers lets other tasks run. All other tasks arrive in spite of it, because tasks may
    /// wait for them, and futures polled beside them may use up the budget of every poll.
    #[cold]
    fn defer_once(self: Pin<&Self>) -> bool {
        let (barrier, waiter) = self.waiter();
        barrier.size == 1
            // SAFETY: 1. we own the waiter, and that of a barrier for one task is never in the
            // wait queue. 2. The closure only replaces the number.
            && unsafe { waiter.with_data(|put_off| std::mem::replace(put_off, 1)) } == 0
    }

    /// Arrives (B1 to B3); returns ready if this task is the leader.
    fn arrive(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (barrier, waiter) = self.waiter();
        // Cloning a waker runs user code, so it happens before the lock is taken.
        let waker = cx.waker().clone();
        let mut round = barrier.round.lock();
        if round.arrived + 1 < barrier.size {
            round.arrived += 1;
            let number = round.number;
            // SAFETY: 1. we own the waiter, and it is OUT. 2. The closure only stores the number.
            unsafe { waiter.with_data(|data| *data = number) };
            // SAFETY: 1. we own the waiter, and it is OUT. 2. `Drop` removes it from the queue.
            unsafe { round.waiters.join(waiter, waker) };
            return Poll::Pending;
        }
        round.arrived = usize::from(weakened!("barrier_counts_once"));
        if !weakened!("barrier_next_round") {
            round.number = round.number.wrapping_add(1);
        }
        let mut wake_list = WakeList::new();
        while Barrier::dismiss(&mut round, &mut wake_list) {
            drop(round);
            wake_list.wake_all();
            round = barrier.round.lock();
            if weakened!("barrier_wakes_batches") {
                break;
            }
        }
        drop(round);
        wake_list.wake_all();
        Poll::Ready(())
    }

    /// Polls a waiter that is in the wait queue, or was dismissed meanwhile; returns ready if the
    /// round is over.
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (barrier, waiter) = self.waiter();
        // SAFETY: 1. we own the waiter. 2. It joined this barrier's wait queue.
        let is_dismissed =
            unsafe { update_waker(&barrier.round, |round| &mut round.waiters, waiter, cx.waker()) };
        if is_dismissed { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Future for Arrival<'_> {
    type Output = BarrierWaitResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BarrierWaitResult> {
        let this = self.as_ref();
        let unit = budget::take();
        if unit.is_none() && this.defer_once() {
            ready!(budget::available(cx));
        }
        let polled = match this.waiter.state() {
            // A barrier of one task has no other task to wait for or to wake.
            WaiterState::Out if this.barrier.size == 1 => Poll::Ready(BarrierWaitResult(true)),
            WaiterState::Out => this.arrive(cx).map(|()| BarrierWaitResult(true)),
            WaiterState::In => this.go_on(cx).map(|()| BarrierWaitResult(false)),
            WaiterState::Dismissed => Poll::Ready(BarrierWaitResult(false)),
        };
        if polled.is_ready() {
            if let Some(unit) = unit {
                unit.spend();
            }
        } else {
            thread_context::waits_for(WaitReason::Barrier);
        }
        polled
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if self.waiter.state() != WaiterState::In {
            return;
        }
        // SAFETY: the future was pinned to join the queue, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        let (barrier, waiter) = this.waiter();
        // SAFETY: 1. we own the waiter. 2. It joined this barrier's wait queue.
        let waker = unsafe { barrier.round.lock().waiters.remove(waiter) };
        // The lock was released at the end of the statement above.
        drop(waker);
    }
}

#[cfg(test)]
mod models;
