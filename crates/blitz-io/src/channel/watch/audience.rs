//! How many receivers there are, and who waits for the last of them to go.
//!
//! # Protocol
//! The word holds the count and a bit: somebody waits.
//!
//! ```text
//! a receiver goes                           who waits
//! G1 takes one off the word                 W1 locks the line
//! G2 it was not the last, or nobody         W2 sets the bit, by an exchange that finds
//!    waits: done                               a count above 0
//! G3 locks the line, dismisses all,         W3 joins the line
//!    clears the bit
//! ```
//! G1 and W2 change the same word: if G1 is first and was the last, W2 finds 0; if W2
//! is, G2 finds the bit, and G3 waits for the lock until W3 is done. A receiver that
//! comes meanwhile may make G3 dismiss too many: these look, and wait again.
//!
//! # Invariants
//! The bit is set exactly if the line is not empty, whenever the lock is free, and
//! changes only under the lock.
//!
//! # Checked by
//! `closed_against_the_last_receiver_is_never_left_waiting`,
//! `closed_against_subscribe_and_drop_ends`; weakened as `watch_closed_looks_again`,
//! `watch_last_receiver_wakes`.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use crate::{
    channel::standing::{spare_for, stand},
    engine::{
        prim::{
            AtomicUsize, Mutex, MutexGuard,
            Ordering::{AcqRel, Acquire, Relaxed},
            lock, weakened,
        },
        wait::{
            batch::Batch,
            line::{Line, Place, Waiter},
        },
        work::{
            current,
            task::{budget, moment::Wait},
        },
    },
};

const WAITING: usize = 1;
const ONE: usize = 2;

/// See the module.
pub(super) struct Audience {
    word: AtomicUsize,
    line: Mutex<Line<()>>,
}

impl Audience {
    pub(super) fn new(count: usize) -> Self {
        Self { word: AtomicUsize::new(count * ONE), line: Mutex::new(Line::new()) }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        // Acquire: who finds 0 sees what the receivers did. Pairs with the AcqRel in
        // `leave`.
        self.word.load(Acquire) / ONE
    }

    #[inline]
    pub(super) fn join(&self) {
        // Relaxed: a count.
        self.word.fetch_add(ONE, Relaxed);
    }

    /// G1 to G3.
    #[inline]
    pub(super) fn leave(&self) {
        // AcqRel: what each receiver did comes before what the last one wakes. Each pairs
        // with the last, and with the Acquire in `count`.
        let before = self.word.fetch_sub(ONE, AcqRel);
        if before == ONE + WAITING && !weakened!("watch_last_receiver_wakes") {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        let mut batch = Batch::new();
        loop {
            let mut line = lock(&self.line);
            while !line.is_empty() && !batch.is_full() {
                batch.push(line.dismiss_first());
            }
            let done = line.is_empty();
            self.clear_if_empty(&line);
            drop(line);
            batch.wake_all();
            // A receiver has come again: whoever is in line waits for that one to go.
            if done || self.count() > 0 {
                return;
            }
        }
    }

    /// Under the lock.
    fn clear_if_empty(&self, line: &Line<()>) {
        if line.is_empty() {
            // Relaxed: the bit says only whether the lock is worth taking.
            self.word.fetch_and(!WAITING, Relaxed);
        }
    }

    /// W1 and W2: the line, marked, if there is a receiver.
    fn enter(&self) -> Option<MutexGuard<'_, Line<()>>> {
        let line = lock(&self.line);
        // Acquire, here and below: who finds 0 sees what the receivers did. Pairs with the
        // AcqRel in `leave`.
        let mut now = self.word.load(Acquire);
        loop {
            if now < ONE && !weakened!("watch_closed_looks_again") {
                return None;
            }
            // Relaxed: who finds the bit locks the line next. An exchange also if the bit
            // is set: it finds the newest count. Acquire on failure: as above.
            match self.word.compare_exchange_weak(now, now | WAITING, Relaxed, Acquire) {
                Ok(_) => return Some(line),
                Err(found) => now = found,
            }
        }
    }
}

/// Waits until there is no receiver. `W` is what the audience is a part of.
pub(super) struct Gone<'a, W: AsRef<Audience>> {
    whole: &'a W,
    waiter: Waiter<()>,
}

impl<'a, W: AsRef<Audience>> Gone<'a, W> {
    pub(super) fn new(whole: &'a W) -> Self {
        Self { whole, waiter: Waiter::new(()) }
    }

    fn parts(self: Pin<&Self>) -> (&'a Audience, Pin<&Waiter<()>>) {
        let audience = self.whole.as_ref();
        // SAFETY: the waiter is pinned with the future: nothing moves it, and its
        // destructor runs in place.
        (audience, unsafe { self.map_unchecked(|this| &this.waiter) })
    }
}

impl<W: AsRef<Audience>> Future for Gone<'_, W> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let unit = ready!(budget::proceed(cx));
        let (audience, waiter) = self.as_ref().parts();
        let mut spare = spare_for(&waiter, cx.waker());
        loop {
            let Some(mut line) = audience.enter() else {
                unit.spend();
                return Poll::Ready(());
            };
            // SAFETY: 1. we own it, and `Drop` removes it. 2. This is its only line.
            if unsafe { stand(&mut line, waiter, (), cx.waker(), &mut spare) } {
                drop(line);
                current::waits_for(Wait::Close);
                return Poll::Pending;
            }
            audience.clear_if_empty(&line);
            drop(line);
            spare = Some(cx.waker().clone());
        }
    }
}

impl<W: AsRef<Audience>> Drop for Gone<'_, W> {
    fn drop(&mut self) {
        if self.waiter.place() != Place::In {
            return;
        }
        // SAFETY: it was pinned if it was ever polled, and is not moved from here on.
        let (audience, waiter) = unsafe { Pin::new_unchecked(&*self) }.parts();
        let mut line = lock(&audience.line);
        // SAFETY: 1. we own the waiter. 2. This is its only line.
        let waker = unsafe { line.remove(waiter) };
        audience.clear_if_empty(&line);
        drop(line);
        // Last: dropping it is a user's code.
        drop(waker);
    }
}
