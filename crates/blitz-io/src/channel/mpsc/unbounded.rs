//! The unbounded mpsc channel: sending never waits.

use std::{
    fmt,
    future::poll_fn,
    ptr::NonNull,
    task::{Context, Poll},
};

use super::{
    blocks::{Blocks, Cursor},
    chan::{Chan, Owner, Queue, Strong, Weak},
    error::{SendError, TryRecvError},
    receiver_waker::ReceiverWaker,
    slot::Slot,
};
use crate::sync::blocking;

/// The queue of an unbounded channel, which is never full.
///
/// There are no permits, so closing the queue is the same as sealing it.
pub(super) struct Unbounded<T> {
    blocks: Blocks<T>,
    receiver: ReceiverWaker,
}

// SAFETY: the queue moves messages between threads, so `T: Send` suffices, and it hands out no
// reference to a message.
unsafe impl<T: Send> Send for Unbounded<T> {}
// SAFETY: a shared reference only moves messages in and out and hands out no reference to one,
// so `T: Send` suffices.
unsafe impl<T: Send> Sync for Unbounded<T> {}

// SAFETY: 1. the blocks go through their slots in the order of positions. 2. `push` claims a
// position and fills it, and waits only for a sender that is linking the next block. 3. After
// `seal` the blocks refuse claims.
unsafe impl<T> Queue<T> for Unbounded<T> {
    fn array(&self) -> (NonNull<Slot<T>>, usize) {
        (NonNull::dangling(), 0)
    }

    #[inline]
    unsafe fn slot(&self, cursor: &Cursor<T>) -> &Slot<T> {
        // SAFETY: 1. of `Blocks::slot`: by our obligation 1 the cursor was made with this queue,
        // and the receiver has not left.
        unsafe { self.blocks.slot(cursor) }
    }

    #[inline]
    unsafe fn advance(&self, cursor: &mut Cursor<T>) {
        // SAFETY: our obligations are those of `Blocks::advance`: 1. the cursor belongs to this
        // queue. 2. The message at the cursor was taken.
        unsafe { self.blocks.advance(cursor) };
    }

    #[inline]
    fn give_back(&self, _: usize) {}

    fn publish_returned(&self) {}

    fn len(&self, cursor: &Cursor<T>) -> usize {
        self.blocks.len(cursor)
    }

    fn is_over(&self, cursor: &Cursor<T>) -> bool {
        self.blocks.is_sealed() && self.blocks.len(cursor) == 0
    }

    fn is_closed(&self) -> bool {
        self.blocks.is_sealed()
    }

    fn close(&self) {
        self.blocks.seal();
    }

    fn seal(&self) {
        self.blocks.seal();
    }

    unsafe fn tail_slot(&self) -> &Slot<T> {
        // SAFETY: 1. of `Blocks::tail_slot`: by our obligation 1 no sender is sending and none
        // will.
        unsafe { self.blocks.tail_slot() }
    }

    #[inline]
    fn receiver(&self) -> &ReceiverWaker {
        &self.receiver
    }
}

/// Creates an unbounded channel, into which sending never waits.
///
/// If senders are faster than the receiver, the queue grows without limit. Where that can
/// happen, use the bounded [`channel`](super::channel).
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// blitz_io::run(async {
///     let (sender, mut receiver) = mpsc::unbounded_channel();
///     for n in 0..100 {
///         sender.send(n).unwrap();
///     }
///     drop(sender);
///     let mut sum = 0;
///     while let Some(n) = receiver.recv().await {
///         sum += n;
///     }
///     assert_eq!(sum, 4950);
/// });
/// ```
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    unbounded_from(0)
}

/// Creates an unbounded channel with `start` as the position of the first message.
pub(super) fn unbounded_from<T>(start: u64) -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (sender, receiver) = Chan::create(0, |_| {
        let (blocks, cursor) = Blocks::new(start);
        (Unbounded { blocks, receiver: ReceiverWaker::new() }, cursor)
    });
    (UnboundedSender { chan: sender }, UnboundedReceiver { chan: receiver })
}

/// Sends messages into an unbounded channel.
///
/// Created by [`unbounded_channel`]. Clone it to send from several tasks.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::unbounded_channel();
/// let other = sender.clone();
/// std::thread::spawn(move || other.send("hello"));
/// assert_eq!(receiver.blocking_recv(), Some("hello"));
/// assert!(!sender.is_closed());
/// ```
pub struct UnboundedSender<T> {
    chan: Strong<T, Unbounded<T>>,
}

/// Receives the messages of an unbounded channel.
///
/// Created by [`unbounded_channel`].
///
/// Dropping the receiver drops the queued messages; later sends fail.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::unbounded_channel();
/// sender.send(1).unwrap();
/// drop(sender);
/// assert_eq!(receiver.blocking_recv(), Some(1));
/// assert_eq!(receiver.blocking_recv(), None);
/// ```
pub struct UnboundedReceiver<T> {
    chan: Owner<T, Unbounded<T>>,
}

/// A sender that does not keep the channel open.
///
/// Created by [`UnboundedSender::downgrade`].
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::unbounded_channel();
/// let weak = sender.downgrade();
/// weak.upgrade().unwrap().send(1).unwrap();
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// assert_eq!(receiver.blocking_recv(), Some(1));
/// ```
pub struct WeakUnboundedSender<T> {
    chan: Weak<T, Unbounded<T>>,
}

impl<T> UnboundedReceiver<T> {
    /// Receives the next message, or returns `None` when no more can come.
    ///
    /// The channel ends when all senders were dropped, or after [`close`](Self::close), and all
    /// messages were received.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses no message.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// blitz_io::run(async {
    ///     let (sender, mut receiver) = mpsc::unbounded_channel();
    ///     blitz_io::spawn(async move { sender.send("hello") });
    ///     assert_eq!(receiver.recv().await, Some("hello"));
    ///     assert_eq!(receiver.recv().await, None);
    /// });
    /// ```
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|cx| self.chan.poll_recv(cx)).await
    }

    /// Receives up to `limit` messages into `buffer` and returns their number.
    ///
    /// Waits for the first message, then takes only those that are already queued. Returns zero
    /// when no more messages can come (where [`recv`](Self::recv) returns `None`), or if `limit`
    /// is zero.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses no message. Messages in `buffer` were received.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// blitz_io::run(async {
    ///     let (sender, mut receiver) = mpsc::unbounded_channel();
    ///     for n in 0..5 {
    ///         sender.send(n).unwrap();
    ///     }
    ///     let mut buffer = Vec::new();
    ///     assert_eq!(receiver.recv_many(&mut buffer, 3).await, 3);
    ///     assert_eq!(receiver.recv_many(&mut buffer, 3).await, 2);
    ///     assert_eq!(buffer, [0, 1, 2, 3, 4]);
    /// });
    /// ```
    pub async fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        poll_fn(|cx| self.chan.poll_recv_many(cx, buffer, limit)).await
    }

    /// Receives the next message if one is queued, without waiting.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] if no message is queued, [`TryRecvError::Disconnected`] if no
    /// more can come.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc::{self, error::TryRecvError};
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(7).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(7));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.chan.try_recv()
    }

    /// Receives the next message, blocking the thread until there is one.
    ///
    /// The counterpart of [`recv`](Self::recv) for code outside of asynchronous tasks. Returns
    /// `None` when no more messages can come.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// sender.send(7).unwrap();
    /// assert_eq!(thread.join().unwrap(), Some(7));
    /// ```
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        blocking::block_on(self.recv(), "use `recv` there")
    }

    /// Receives up to `limit` messages into `buffer`, blocking the thread until there is one.
    ///
    /// The counterpart of [`recv_many`](Self::recv_many) for code outside of asynchronous tasks.
    ///
    /// # Panics
    ///
    /// If called within an asynchronous context.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// sender.send(1).unwrap();
    /// sender.send(2).unwrap();
    /// let mut buffer = Vec::new();
    /// assert_eq!(receiver.blocking_recv_many(&mut buffer, 10), 2);
    /// assert_eq!(buffer, [1, 2]);
    /// ```
    #[track_caller]
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        blocking::block_on(self.recv_many(buffer, limit), "use `recv_many` there")
    }

    /// Closes the channel: later sends fail.
    ///
    /// Messages that were sent can still be received, so keep receiving until `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// sender.send(1).unwrap();
    /// receiver.close();
    /// assert!(sender.send(2).is_err());
    /// assert_eq!(receiver.blocking_recv(), Some(1));
    /// assert_eq!(receiver.blocking_recv(), None);
    /// ```
    pub fn close(&mut self) {
        self.chan.close();
    }

    /// Returns `true` if the channel was closed or all senders were dropped.
    ///
    /// Messages may still be queued.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::unbounded_channel::<u8>();
    /// assert!(!receiver.is_closed());
    /// drop(sender);
    /// assert!(receiver.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// Returns `true` if no message is queued.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::unbounded_channel();
    /// assert!(receiver.is_empty());
    /// sender.send(7).unwrap();
    /// assert!(!receiver.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of queued messages.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::unbounded_channel();
    /// sender.send(7).unwrap();
    /// assert_eq!(receiver.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// Polls for the next message, for hand-written futures.
    ///
    /// The counterpart of [`recv`](Self::recv). Only the waker of the most recent call is woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    ///
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(receiver.poll_recv(&mut cx).is_pending());
    /// sender.send(7).unwrap();
    /// assert_eq!(receiver.poll_recv(&mut cx), Poll::Ready(Some(7)));
    /// ```
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.chan.poll_recv(cx)
    }

    /// Polls for up to `limit` messages, for hand-written futures.
    ///
    /// The counterpart of [`recv_many`](Self::recv_many). Only the waker of the most recent call
    /// is woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    ///
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// let (mut cx, mut buffer) = (Context::from_waker(Waker::noop()), Vec::new());
    /// assert!(receiver.poll_recv_many(&mut cx, &mut buffer, 10).is_pending());
    /// sender.send(7).unwrap();
    /// assert_eq!(receiver.poll_recv_many(&mut cx, &mut buffer, 10), Poll::Ready(1));
    /// assert_eq!(buffer, [7]);
    /// ```
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.chan.poll_recv_many(cx, buffer, limit)
    }

    /// Returns the number of senders; weak senders do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::unbounded_channel::<u8>();
    /// let _other = sender.clone();
    /// assert_eq!(receiver.sender_strong_count(), 2);
    /// ```
    pub fn sender_strong_count(&self) -> usize {
        self.chan.strong_count()
    }

    /// Returns the number of weak senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::unbounded_channel::<u8>();
    /// let _weak = sender.downgrade();
    /// assert_eq!(receiver.sender_weak_count(), 1);
    /// ```
    pub fn sender_weak_count(&self) -> usize {
        self.chan.weak_count()
    }
}

impl<T> fmt::Debug for UnboundedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedReceiver")
            .field("len", &self.len())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T> UnboundedSender<T> {
    /// Sends a message without ever waiting.
    ///
    /// A successful send does not mean that the message will be received: the receiver may be
    /// dropped before.
    ///
    /// # Errors
    ///
    /// Returns the message in the error if the receiver was closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::unbounded_channel();
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// drop(receiver);
    /// assert_eq!(sender.send(2).unwrap_err().0, 2);
    /// ```
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let queue = &self.chan.queue;
        if queue.blocks.push(message).map_err(SendError)? {
            // SAFETY: 1. of `take`: the exchange in `push` removed AWAITED from the slot.
            if let Some(waker) = unsafe { queue.receiver.take() } {
                waker.wake();
            }
        }
        Ok(())
    }

    /// Waits until the receiver is closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// blitz_io::run(async {
    ///     let (sender, receiver) = mpsc::unbounded_channel::<u8>();
    ///     blitz_io::spawn(async move { drop(receiver) });
    ///     sender.closed().await;
    ///     assert!(sender.is_closed());
    /// });
    /// ```
    pub async fn closed(&self) {
        self.chan.closed::<T>().await;
    }

    /// Returns `true` if the receiver was closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::unbounded_channel::<u8>();
    /// assert!(!sender.is_closed());
    /// drop(receiver);
    /// assert!(sender.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.chan.queue.is_closed()
    }

    /// Returns `true` if both senders send into the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
    /// let (other, _receiver) = mpsc::unbounded_channel::<u8>();
    /// assert!(sender.same_channel(&sender.clone()));
    /// assert!(!sender.same_channel(&other));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        self.chan.same_channel(&other.chan)
    }

    /// Creates a sender that does not keep the channel open.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
    /// let weak = sender.downgrade();
    /// assert!(weak.upgrade().is_some_and(|other| other.same_channel(&sender)));
    /// ```
    #[must_use = "it makes a weak sender, and does nothing to this one"]
    pub fn downgrade(&self) -> WeakUnboundedSender<T> {
        WeakUnboundedSender { chan: self.chan.downgrade() }
    }

    /// Returns the number of senders; weak senders do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
    /// let _other = sender.clone();
    /// assert_eq!(sender.strong_count(), 2);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.chan.strong_count()
    }

    /// Returns the number of weak senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
    /// let _weak = sender.downgrade();
    /// assert_eq!(sender.weak_count(), 1);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.chan.weak_count()
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        Self { chan: self.chan.clone() }
    }
}

impl<T> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedSender").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl<T> WeakUnboundedSender<T> {
    /// Returns a sender, or `None` if all senders were dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
    /// let weak = sender.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(sender);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<UnboundedSender<T>> {
        Some(UnboundedSender { chan: self.chan.upgrade()? })
    }

    /// Returns the number of senders; weak senders do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
    /// assert_eq!(sender.downgrade().strong_count(), 1);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.chan.strong_count()
    }

    /// Returns the number of weak senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::unbounded_channel::<u8>();
    /// let weak = sender.downgrade();
    /// let _other = weak.clone();
    /// assert_eq!(weak.weak_count(), 2);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.chan.weak_count()
    }
}

impl<T> Clone for WeakUnboundedSender<T> {
    fn clone(&self) -> Self {
        Self { chan: self.chan.clone() }
    }
}

impl<T> fmt::Debug for WeakUnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakUnboundedSender").finish_non_exhaustive()
    }
}
