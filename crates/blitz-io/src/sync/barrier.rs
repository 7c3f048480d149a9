//! A barrier: tasks wait for each other, round after round.
//!
//! # Protocol
//! Everything is under one lock: a count of those who have arrived, the number of the
//! round, and the line of those who wait.
//!
//! ```text
//! who arrives
//! B1 counts itself
//! B2 not the last of the round: joins the line with the number of the round
//! B3 the last: begins the next round, and dismisses all of the rounds before, in
//!    batches, the lock let go between them; it leads
//! ```
//! Whoever joins is of the current round, so rounds never fall along the line: those
//! who arrive for the next one while B3 goes on stand behind all who are to be
//! dismissed, and B3 ends at the first of them. A leader may also dismiss what is left
//! of the round before: that one's leader then finds nothing to do.
//!
//! # Invariants
//! - Every round has one leader: the one who found the count one short of full.
//! - One who is dropped has arrived all the same: the count never falls within a round.
//!
//! # Rejected
//! A word for the count, beside the lock: all but the last of a round take the lock
//! anyway, to wait.
//!
//! # Checked by
//! `two_rounds_of_two_have_one_leader_each`, `a_later_round_is_not_woken_by_a_batch`,
//! `one_who_is_dropped_has_arrived`, `a_round_publishes_what_was_done_before_it`,
//! `a_new_waker_against_the_last_to_arrive_is_woken`;
//! weakened as `barrier_counts_once`, `barrier_round_ends`, `barrier_wakes_batches`,
//! `barrier_next_round`.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::engine::{
    prim::{bolt::Bolted, weakened},
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

/// A barrier lets several tasks begin something together.
///
/// [`wait`](Self::wait) ends when as many tasks wait as the barrier is for. Then it is
/// ready for the next round. One of a round, and only one, is told that it leads.
///
/// A barrier allocates nothing, neither when it is made nor for those who wait.
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
    /// How many make a round; at least one.
    size: usize,
    round: Bolted<Round>,
}

struct Round {
    number: usize,
    /// Fewer than `size`.
    arrived: usize,
    /// With the number of the round.
    line: Line<usize>,
}

/// What [`Barrier::wait`] answers: whether the caller leads.
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

/// One who arrives at its first poll, and waits.
struct Arrival<'a> {
    barrier: &'a Barrier,
    waiter: Waiter<usize>,
}

impl Barrier {
    /// Creates a new barrier for `n` tasks.
    ///
    /// A barrier for none is one for a single task, which never waits: as the standard
    /// library's.
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
        let round = Round { number: 0, arrived: 0, line: Line::new() };
        Self { size: n.max(1), round: Bolted::new(round) }
    }

    /// Waits until all of the round are here.
    ///
    /// The last one to come does not wait, and is the one that leads. A wait that
    /// completes takes one unit of the task's budget, if there is one. A task arrives also
    /// without it.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: one that was polled has arrived, and counts for its round even
    /// if it is dropped.
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

    /// B3: dismisses those of earlier rounds, until the batch is full: `true` then.
    fn dismiss(round: &mut Round, batch: &mut Batch) -> bool {
        while let Some(number) = round.line.first() {
            if *number == round.number && !weakened!("barrier_round_ends") {
                return false;
            }
            if batch.is_full() {
                return true;
            }
            batch.push(round.line.dismiss_first());
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
    /// Returns `true` if this task leads the round.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let barrier = blitz_io::sync::Barrier::new(1);
    /// if barrier.wait().await.is_leader() {
    ///     // Once a round.
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

    /// Whether one who comes without budget has to wait for its task's next turn. That is
    /// one alone, and only once: a loop over such barriers lets others run. All others
    /// arrive: somebody waits for them, and what is polled beside them may use up the
    /// budget of every poll.
    #[cold]
    fn puts_off(self: Pin<&Self>) -> bool {
        let (barrier, waiter) = self.waiter();
        barrier.size == 1
            // SAFETY: 1. we own the waiter, and one alone is never in line. 2. It does not.
            && unsafe { waiter.with_data(|put_off| std::mem::replace(put_off, 1)) } == 0
    }

    /// B1 to B3. Ready: it leads.
    fn arrive(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (barrier, waiter) = self.waiter();
        // A user's code, and so before the lock.
        let waker = cx.waker().clone();
        let mut round = barrier.round.lock();
        if round.arrived + 1 < barrier.size {
            round.arrived += 1;
            let number = round.number;
            // SAFETY: 1. we own the waiter, and it is OUT. 2. It does not.
            unsafe { waiter.with_data(|data| *data = number) };
            // SAFETY: 1. as above. 2. `Drop` does.
            unsafe { round.line.join(waiter, waker) };
            return Poll::Pending;
        }
        round.arrived = usize::from(weakened!("barrier_counts_once"));
        if !weakened!("barrier_next_round") {
            round.number = round.number.wrapping_add(1);
        }
        let mut batch = Batch::new();
        while Barrier::dismiss(&mut round, &mut batch) {
            drop(round);
            batch.wake_all();
            round = barrier.round.lock();
            if weakened!("barrier_wakes_batches") {
                break;
            }
        }
        drop(round);
        batch.wake_all();
        Poll::Ready(())
    }

    /// In line, as far as we know. Ready: the round is over.
    fn go_on(self: Pin<&Self>, cx: &Context<'_>) -> Poll<()> {
        let (barrier, waiter) = self.waiter();
        // SAFETY: 1. we own it. 2. It joined this line.
        let left =
            unsafe { keep_waker(&barrier.round, |round| &mut round.line, waiter, cx.waker()) };
        if left { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Future for Arrival<'_> {
    type Output = BarrierWaitResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BarrierWaitResult> {
        let this = self.as_ref();
        let unit = budget::take();
        if unit.is_none() && this.puts_off() {
            ready!(budget::available(cx));
        }
        let polled = match this.waiter.place() {
            // One alone has nobody to wait for, and nobody to tell.
            Place::Out if this.barrier.size == 1 => Poll::Ready(BarrierWaitResult(true)),
            Place::Out => this.arrive(cx).map(|()| BarrierWaitResult(true)),
            Place::In => this.go_on(cx).map(|()| BarrierWaitResult(false)),
            Place::Left => Poll::Ready(BarrierWaitResult(false)),
        };
        if polled.is_ready() {
            if let Some(unit) = unit {
                unit.spend();
            }
        } else {
            current::waits_for(Wait::Barrier);
        }
        polled
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if self.waiter.place() != Place::In {
            return;
        }
        // SAFETY: it was pinned, and is not moved from here on.
        let this = unsafe { Pin::new_unchecked(&*self) };
        let (barrier, waiter) = this.waiter();
        // SAFETY: 1. we own the waiter. 2. It joined this line.
        let waker = unsafe { barrier.round.lock().line.remove(waiter) };
        // The lock was let go at the end of the statement above.
        drop(waker);
    }
}

#[cfg(test)]
mod models;
