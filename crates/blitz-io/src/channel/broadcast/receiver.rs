//! The receiving half of a broadcast channel: a position in the buffer.

use std::{
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{
    error::{RecvError, TryRecvError},
    shared::{Ahead, Shared},
};
use crate::{
    channel::enqueue::{enqueue, spare_for},
    engine::{
        prim::{Arc, discard, is_panicking, weakened},
        wait::wait_queue::{Waiter, WaiterState},
        work::{
            task::{budget, timestamp::WaitReason},
            thread_context,
        },
    },
    sync::blocking,
};

/// The receiving half of a broadcast channel, which sees every value that is sent while it
/// lives.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::broadcast;
///
/// let (sender, mut receiver) = broadcast::channel(8);
/// sender.send("hello").unwrap();
/// assert_eq!(receiver.try_recv(), Ok("hello"));
/// ```
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The position of the next value to receive.
    next: u64,
}

impl<T> Receiver<T> {
    /// Creates a receiver that the tail already counts.
    pub(super) fn counted(shared: Arc<Shared<T>>, next: u64) -> Self {
        Self { shared, next }
    }

    /// Adds a receiver, which sees the values that are sent from now on.
    #[track_caller]
    pub(super) fn join(shared: &Arc<Shared<T>>) -> Self {
        let mut tail = shared.tail();
        let Some(count) = tail.receivers.checked_add(1) else {
            drop(tail);
            panic!("max receivers: a channel counts up to u32::MAX of them; drop some");
        };
        tail.receivers = count;
        let next = tail.position;
        drop(tail);
        Self::counted(shared.clone(), next)
    }

    /// Returns the number of values that were sent and that this receiver has not seen.
    ///
    /// Some of them may be overwritten already, so this can be more than the capacity.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, mut receiver) = broadcast::channel(8);
    /// sender.send(1).unwrap();
    /// sender.send(2).unwrap();
    /// assert_eq!(receiver.len(), 2);
    /// receiver.try_recv().unwrap();
    /// assert_eq!(receiver.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.tail().position.wrapping_sub(self.next) as usize
    }

    /// Returns `true` if this receiver has seen every value.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, receiver) = broadcast::channel(8);
    /// assert!(receiver.is_empty());
    /// sender.send(1).unwrap();
    /// assert!(!receiver.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if both receivers belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, receiver) = broadcast::channel::<u8>(8);
    /// assert!(receiver.same_channel(&sender.subscribe()));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the number of strong senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, receiver) = broadcast::channel::<u8>(8);
    /// let _another = sender.clone();
    /// assert_eq!(receiver.sender_strong_count(), 2);
    /// ```
    pub fn sender_strong_count(&self) -> usize {
        self.shared.strong_count()
    }

    /// Returns the number of weak senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, receiver) = broadcast::channel::<u8>(8);
    /// let _weak = sender.downgrade();
    /// assert_eq!(receiver.sender_weak_count(), 1);
    /// ```
    pub fn sender_weak_count(&self) -> usize {
        self.shared.weak_count()
    }

    /// Returns `true` if the last sender was dropped.
    ///
    /// There may still be values to receive.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, mut receiver) = broadcast::channel(8);
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert!(receiver.is_closed());
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared.strong_count() == 0
    }

    /// Passes every value that this receiver has not seen.
    ///
    /// If dropping values on its behalf panicked, returns the first panic.
    fn pass_all(&self, until: u64) -> Result<(), Box<dyn std::any::Any + Send>> {
        let behind = until.wrapping_sub(self.next).min(self.shared.capacity());
        let mut outcome = Ok(());
        for ahead in 0..behind {
            let position = until.wrapping_sub(behind).wrapping_add(ahead);
            let slot = self.shared.slot(position);
            let passed = catch_unwind(AssertUnwindSafe(|| {
                if let Some(locked) = slot.at(position, &self.shared.bucket) {
                    locked.pass();
                }
            }));
            match (passed, &outcome) {
                (Err(payload), Ok(())) => outcome = Err(payload),
                (Err(payload), Err(_)) => discard(payload),
                (Ok(()), _) => {}
            }
        }
        outcome
    }
}

impl<T: Clone> Receiver<T> {
    /// Creates another receiver of the same channel, which sees the values that are sent from
    /// now on.
    ///
    /// Values that this receiver has not seen yet are not delivered to the new one.
    ///
    /// # Panics
    ///
    /// If there are `u32::MAX` receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, mut first) = broadcast::channel(8);
    /// sender.send(1).unwrap();
    /// let mut second = first.resubscribe();
    /// sender.send(2).unwrap();
    /// assert_eq!(first.try_recv(), Ok(1));
    /// assert_eq!(second.try_recv(), Ok(2));
    /// ```
    #[track_caller]
    pub fn resubscribe(&self) -> Self {
        Self::join(&self.shared)
    }

    /// Waits for the next value and returns it.
    ///
    /// # Errors
    ///
    /// [`RecvError::Lagged`] if values were overwritten that this receiver has not seen; the
    /// next call returns the oldest one that is still stored. [`RecvError::Closed`] once every
    /// value was seen and the last sender was dropped.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses no value, because a receiver advances only when
    /// `recv` completes.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::{self, error::RecvError};
    ///
    /// # blitz_io::run(async {
    /// let (sender, mut receiver) = broadcast::channel(8);
    /// blitz_io::spawn(async move { sender.send("hello").unwrap() });
    /// assert_eq!(receiver.recv().await, Ok("hello"));
    /// assert_eq!(receiver.recv().await, Err(RecvError::Closed));
    /// # });
    /// ```
    #[inline]
    pub fn recv(&mut self) -> impl Future<Output = Result<T, RecvError>> {
        Recv { receiver: self, waiter: Waiter::new(0) }
    }

    /// Receives the next value if it was sent, without waiting.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] where [`recv`](Self::recv) would wait. Otherwise
    /// [`TryRecvError::Lagged`] and [`TryRecvError::Closed`], as in `recv`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast::{self, error::TryRecvError};
    ///
    /// let (sender, mut receiver) = broadcast::channel(8);
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        loop {
            if let Some(value) = self.take() {
                return Ok(value);
            }
            // The value at this position may have been sent since the check above, so check again.
            if let Some(error) = self.why_not() {
                return Err(error);
            }
        }
    }

    /// Receives the next value, blocking the thread until there is one.
    ///
    /// The counterpart of [`recv`](Self::recv) for code outside of asynchronous tasks.
    ///
    /// # Errors
    ///
    /// [`RecvError::Lagged`] or [`RecvError::Closed`], as in [`recv`](Self::recv).
    ///
    /// # Panics
    ///
    /// If called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::broadcast;
    ///
    /// let (sender, mut receiver) = broadcast::channel(8);
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// sender.send("hello").unwrap();
    /// assert_eq!(thread.join().unwrap(), Ok("hello"));
    /// ```
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        blocking::block_on(self.recv(), "await `recv` there")
    }

    /// Returns the value at this receiver's position, if it is stored there.
    #[inline]
    fn take(&mut self) -> Option<T> {
        let locked = self.shared.slot(self.next).at(self.next, &self.shared.bucket)?;
        // The position moves first, so that a value with a `clone` that panics counts as seen.
        self.next = self.next.wrapping_add(1);
        Some(locked.see())
    }

    /// Returns why there is no value at this receiver's position, or `None` if there is one.
    #[cold]
    fn why_not(&mut self) -> Option<TryRecvError> {
        let ahead = self.shared.ahead(&self.shared.tail(), self.next);
        match ahead {
            Ahead::Value => None,
            Ahead::Nothing => Some(TryRecvError::Empty),
            Ahead::Closed => Some(TryRecvError::Closed),
            Ahead::Lagged(count) => Some(TryRecvError::Lagged(self.skip(count))),
        }
    }

    /// Skips `count` values that were overwritten, and returns `count`.
    fn skip(&mut self, count: u64) -> u64 {
        self.next = self.next.wrapping_add(count);
        count
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut tail = self.shared.tail();
        tail.receivers -= 1;
        let (until, last) = (tail.position, tail.receivers == 0);
        drop(tail);
        let outcome = self.pass_all(until);
        if last && !weakened!("broadcast_last_receiver_wakes") {
            self.shared.wake_closers(self.shared.tail());
        }
        match outcome {
            Ok(()) => {}
            Err(payload) if is_panicking() => discard(payload),
            Err(payload) => resume_unwind(payload),
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("broadcast::Receiver")
    }
}

/// Future of [`Receiver::recv`].
struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
    /// The waiter in the wait queue of receivers; its data is the awaited position.
    waiter: Waiter<u64>,
}

impl<T> Recv<'_, T> {
    #[inline]
    fn parts(self: Pin<&mut Self>) -> (&mut Receiver<T>, Pin<&Waiter<u64>>) {
        // SAFETY: nothing is moved out of the future: the waiter is pinned with it, and the
        // reference to the receiver is not structurally pinned.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: the waiter is pinned with the future, which is pinned.
        (this.receiver, unsafe { Pin::new_unchecked(&this.waiter) })
    }
}

impl<T: Clone> Recv<'_, T> {
    /// Joins the wait queue, unless there is a value, a lag or a close to return by now.
    #[cold]
    fn wait(self: Pin<&mut Self>, cx: &Context<'_>) -> Poll<Result<T, RecvError>> {
        let (receiver, waiter) = self.parts();
        let mut spare = spare_for(&waiter, cx.waker());
        loop {
            let shared = &*receiver.shared;
            if weakened!("broadcast_empty_looks_again") && spare.is_some() {
                let waiters = &mut shared.tail().waiters;
                // SAFETY: 1. of `enqueue`: we own the waiter, and `Drop` removes it. 2. This is
                // the only wait queue that it joins.
                let _ = unsafe { enqueue(waiters, waiter, receiver.next, cx.waker(), &mut spare) };
                return Poll::Pending;
            }
            let mut tail = shared.tail();
            match shared.ahead(&tail, receiver.next) {
                Ahead::Closed => return Poll::Ready(Err(RecvError::Closed)),
                Ahead::Lagged(count) => {
                    drop(tail);
                    return Poll::Ready(Err(RecvError::Lagged(receiver.skip(count))));
                }
                Ahead::Value => {
                    drop(tail);
                    match receiver.take() {
                        Some(value) => return Poll::Ready(Ok(value)),
                        // The value was overwritten after the lock was released.
                        None => continue,
                    }
                }
                Ahead::Nothing => {}
            }
            let waiters = &mut tail.waiters;
            // SAFETY: 1. of `enqueue`: we own the waiter, and `Drop` removes it. 2. This is the
            // only wait queue that it joins.
            if unsafe { enqueue(waiters, waiter, receiver.next, cx.waker(), &mut spare) } {
                drop(tail);
                thread_context::waits_for(WaitReason::Message);
                return Poll::Pending;
            }
            drop(tail);
            spare = Some(cx.waker().clone());
        }
    }
}

impl<T: Clone> Future for Recv<'_, T> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let unit = ready!(budget::poll_proceed(cx));
        let polled = match self.as_mut().parts().0.take() {
            Some(value) => Poll::Ready(Ok(value)),
            None => self.wait(cx),
        };
        if polled.is_ready() {
            unit.spend();
        }
        polled
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.state() == WaiterState::In {
            // SAFETY: the future was pinned if it was ever polled, and is not moved from here
            // on.
            leave(unsafe { Pin::new_unchecked(self) });
        }
    }
}

/// Removes the future from the wait queue.
#[cold]
fn leave<T>(recv: Pin<&mut Recv<'_, T>>) {
    let (receiver, waiter) = recv.parts();
    // SAFETY: 1. of `remove`: we own the waiter. 2. This is the only wait queue that it joins.
    let waker = unsafe { receiver.shared.tail().waiters.remove(waiter) };
    // The lock was released at the end of the statement above.
    drop(waker);
}
