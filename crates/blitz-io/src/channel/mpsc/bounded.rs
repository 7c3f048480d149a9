//! The bounded mpsc channel: senders wait while it is full.

use std::{
    fmt,
    future::poll_fn,
    iter::FusedIterator,
    mem::ManuallyDrop,
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, ready},
};

#[cfg(feature = "time")]
use std::time::Duration;

#[cfg(feature = "time")]
use super::error::SendTimeoutError;
use super::{
    blocks::{Blocks, Cursor},
    chan::{Chan, Owner, Queue, Strong, Weak},
    error::{SendError, TryRecvError, TrySendError},
    receiver_waker::ReceiverWaker,
    send_permits::{BoundedQueue, Reserve, ReserveRequest, Reserved, SendPermits, TryReserveError},
    slot::Slot,
};
use crate::{engine::wait::permits::MAX, sync::blocking};

/// The longest capacity that is stored in an array; longer channels allocate blocks as they fill.
///
/// The number was picked, not measured: capacities that programs choose for backpressure are
/// below it. A model uses two, so that it covers both arrays and blocks.
const LONGEST_ARRAY: usize = if cfg!(blitz_loom) { 2 } else { 1024 };

/// The most memory that an array allocates up front, unless it has no more slots than one block.
///
/// A message in a block costs one more atomic exchange (9 of the 203 instructions of a
/// `try_send` and a `try_recv`). With the previous limit of 64 KiB, creating `channel::<[u64;
/// 7]>(1000)` cost six times as much, and 10,000 empty channels took 615 MiB instead of 25. With
/// 4 KiB, 128 messages of 24 bytes still fit an array.
const LARGEST_ARRAY: usize = 4 * 1024;

/// The queue of a bounded channel: message storage, permits and the receiver's waker.
///
/// The store and the words of [`SendPermits`] that each message needs fill one cache line.
#[repr(C)]
pub(super) struct Bounded<T> {
    store: Store<T>,
    pub(super) permits: SendPermits,
    receiver: ReceiverWaker,
}

enum Store<T> {
    /// An array of slots, one per unit of capacity, allocated behind the channel's header.
    Array(NonNull<Slot<T>>),
    Blocks(Blocks<T>),
}

// SAFETY: the queue moves messages between threads, so `T: Send` suffices, and it hands out no
// reference to a message.
unsafe impl<T: Send> Send for Bounded<T> {}
// SAFETY: a shared reference only moves messages in and out and hands out no reference to one,
// so `T: Send` suffices.
unsafe impl<T: Send> Sync for Bounded<T> {}

impl<T> Bounded<T> {
    fn is_array(capacity: usize) -> bool {
        let size = capacity.saturating_mul(size_of::<Slot<T>>());
        capacity <= LONGEST_ARRAY && (size <= LARGEST_ARRAY || capacity <= super::blocks::BLOCK)
    }

    fn new(capacity: usize, slots: NonNull<Slot<T>>) -> (Self, Cursor<T>) {
        let is_array = Self::is_array(capacity);
        let permits = SendPermits::new(capacity, is_array);
        if is_array {
            let cursor = Cursor { head: 0, block: std::ptr::null_mut() };
            return (
                Self { permits, store: Store::Array(slots), receiver: ReceiverWaker::new() },
                cursor,
            );
        }
        let (blocks, cursor) = Blocks::new(0);
        (Self { permits, store: Store::Blocks(blocks), receiver: ReceiverWaker::new() }, cursor)
    }

    /// Returns the slot of a position in the array.
    ///
    /// # Safety
    /// 1. The slots belong to this queue, and the position came from its permits.
    #[inline]
    unsafe fn slot_at(&self, slots: NonNull<Slot<T>>, position: u64) -> &Slot<T> {
        // SAFETY: by our obligation 1 the position is one of these permits', so its index is below
        // the capacity. There are as many slots as the capacity, and they live as long as the
        // header, which is borrowed.
        unsafe { slots.add(self.permits.slot_index(position)).as_ref() }
    }

    /// Sends a message with the permit (and perhaps the position) of `reserved`, and wakes the
    /// receiver.
    ///
    /// If the receiver is gone, releases the permit and returns the message.
    #[inline]
    fn put(&self, reserved: Reserved, value: T) -> Result<(), T> {
        let awaited = match &self.store {
            Store::Array(slots) => {
                let position = match reserved {
                    Reserved::Position(position) => Some(position),
                    Reserved::Permit => self.permits.claim(),
                };
                match position {
                    // SAFETY: 1. of `slot_at`: the slots are this queue's, and the position came
                    // from its permits. 1. of `put`: the position was claimed above and is used
                    // once. 2. of `put`: nothing touches the slot after the call.
                    Some(at) => Ok(unsafe { Slot::put(self.slot_at(*slots, at), value) }),
                    None => Err(value),
                }
            }
            Store::Blocks(blocks) => blocks.push(value),
        };
        match awaited {
            Ok(false) => Ok(()),
            Ok(true) => {
                // SAFETY: 1. of `take`: the exchange in `put` removed AWAITED from the slot.
                if let Some(waker) = unsafe { self.receiver.take() } {
                    waker.wake();
                }
                Ok(())
            }
            Err(value) => self.refuse(value),
        }
    }

    #[cold]
    fn refuse(&self, value: T) -> Result<(), T> {
        self.release(1);
        Err(value)
    }

    /// Sends a message with a permit that the caller holds; drops it if the receiver is gone.
    #[inline]
    fn put_with_permit(&self, value: T) {
        drop(self.put(Reserved::Permit, value));
    }
}

impl<T> BoundedQueue for Bounded<T> {
    #[inline]
    fn permits(&self) -> &SendPermits {
        &self.permits
    }

    #[cold]
    fn wake_receiver(&self) {
        // SAFETY: 1. of `wake_receiver`: the channel is closed and every permit is free, so no
        // sender is sending and none will.
        unsafe { super::chan::wake_receiver(self) };
    }
}

// SAFETY: 1. the array and the blocks both go through their slots in the order of positions. 2.
// `put` claims a position and fills it, and nothing in between can wait. 3. After `seal`, the
// permits refuse claims in an array, and the blocks refuse their own.
unsafe impl<T> Queue<T> for Bounded<T> {
    fn array(&self) -> (NonNull<Slot<T>>, usize) {
        match &self.store {
            Store::Array(slots) => (*slots, self.permits.capacity()),
            Store::Blocks(_) => (NonNull::dangling(), 0),
        }
    }

    #[inline]
    unsafe fn slot(&self, cursor: &Cursor<T>) -> &Slot<T> {
        match &self.store {
            // SAFETY: 1. of `slot_at`: the slots are this queue's, and the head is a position of
            // its array.
            Store::Array(slots) => unsafe { self.slot_at(*slots, cursor.head) },
            // SAFETY: 1. of `Blocks::slot`: by our obligation 1 the cursor was made with this
            // queue, and the receiver has not left.
            Store::Blocks(blocks) => unsafe { blocks.slot(cursor) },
        }
    }

    #[inline]
    unsafe fn advance(&self, cursor: &mut Cursor<T>) {
        match &self.store {
            Store::Array(_) => cursor.head = self.permits.after(cursor.head),
            // SAFETY: our obligations are those of `Blocks::advance`: 1. the cursor belongs to
            // this queue. 2. The message at the cursor was taken.
            Store::Blocks(blocks) => unsafe { blocks.advance(cursor) },
        }
    }

    #[inline]
    fn give_back(&self, count: usize) {
        self.permits.taken(count);
    }

    fn publish_returned(&self) {
        self.permits.collect_own();
    }

    fn len(&self, cursor: &Cursor<T>) -> usize {
        match &self.store {
            Store::Array(_) => self.permits.distance(cursor.head),
            Store::Blocks(blocks) => blocks.len(cursor),
        }
    }

    fn is_over(&self, _: &Cursor<T>) -> bool {
        self.permits.is_over()
    }

    fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }

    fn close(&self) {
        self.permits.close();
    }

    fn seal(&self) {
        match &self.store {
            Store::Array(_) => self.permits.seal(),
            Store::Blocks(blocks) => blocks.seal(),
        }
    }

    unsafe fn tail_slot(&self) -> &Slot<T> {
        let position = self.permits.touch();
        match &self.store {
            // SAFETY: 1. of `slot_at`: the slots are this queue's, and `touch` returned a position
            // of its array.
            Store::Array(slots) => unsafe { self.slot_at(*slots, position) },
            // SAFETY: 1. of `Blocks::tail_slot`: by our obligation 1 no sender is sending and
            // none will.
            Store::Blocks(blocks) => unsafe { blocks.tail_slot() },
        }
    }

    #[inline]
    fn receiver(&self) -> &ReceiverWaker {
        &self.receiver
    }
}

/// Creates a bounded channel with a capacity of `buffer` messages.
///
/// A message takes one unit of capacity when it is sent, or when its permit is reserved. The
/// capacity is free again when the message is received.
///
/// # Panics
///
/// If `buffer` is zero, or larger than the maximum number of semaphore permits (`usize::MAX >>
/// 3`).
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// blitz_io::run(async {
///     let (sender, mut receiver) = mpsc::channel(2);
///     blitz_io::spawn(async move {
///         for n in 0..10 {
///             // Waits while two messages are queued.
///             sender.send(n).await.unwrap();
///         }
///     });
///     let mut expected = 0;
///     while let Some(n) = receiver.recv().await {
///         assert_eq!(n, expected);
///         expected += 1;
///     }
///     assert_eq!(expected, 10);
/// });
/// ```
#[track_caller]
pub fn channel<T>(buffer: usize) -> (Sender<T>, Receiver<T>) {
    assert!(buffer > 0, "mpsc bounded channel requires buffer > 0: pass at least 1");
    assert!(
        buffer <= MAX,
        "a semaphore may not have more than MAX_PERMITS permits ({MAX}): use a smaller buffer"
    );
    let slots = if Bounded::<T>::is_array(buffer) { buffer } else { 0 };
    let (sender, receiver) = Chan::create(slots, |slots| Bounded::new(buffer, slots));
    (Sender { chan: sender }, Receiver { chan: receiver })
}

/// Sends messages into a bounded channel.
///
/// Created by [`channel`]. Clone it to send from several tasks.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// blitz_io::run(async {
///     let (sender, mut receiver) = mpsc::channel(1);
///     let other = sender.clone();
///     blitz_io::spawn(async move { other.send("hello").await });
///     assert_eq!(receiver.recv().await, Some("hello"));
///     assert!(!sender.is_closed());
/// });
/// ```
pub struct Sender<T> {
    chan: Strong<T, Bounded<T>>,
}

/// Receives the messages of a bounded channel.
///
/// Created by [`channel`].
///
/// Dropping the receiver drops the queued messages; later sends fail.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::channel(4);
/// sender.try_send(1).unwrap();
/// sender.try_send(2).unwrap();
/// drop(sender);
/// assert_eq!(receiver.blocking_recv(), Some(1));
/// assert_eq!(receiver.blocking_recv(), Some(2));
/// assert_eq!(receiver.blocking_recv(), None);
/// ```
pub struct Receiver<T> {
    chan: Owner<T, Bounded<T>>,
}

/// A sender that does not keep the channel open.
///
/// Created by [`Sender::downgrade`].
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::channel(1);
/// let weak = sender.downgrade();
/// weak.upgrade().unwrap().try_send(1).unwrap();
/// drop(sender);
/// assert!(weak.upgrade().is_none());
/// assert_eq!(receiver.blocking_recv(), Some(1));
/// assert_eq!(receiver.blocking_recv(), None);
/// ```
pub struct WeakSender<T> {
    chan: Weak<T, Bounded<T>>,
}

/// Reserved capacity for one message.
///
/// Created by [`Sender::reserve`] and [`Sender::try_reserve`].
///
/// Dropping the permit releases the capacity.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// blitz_io::run(async {
///     let (sender, mut receiver) = mpsc::channel(1);
///     let permit = sender.reserve().await.unwrap();
///     assert_eq!(sender.capacity(), 0);
///     permit.send(7);
///     assert_eq!(receiver.recv().await, Some(7));
/// });
/// ```
pub struct Permit<'a, T> {
    chan: &'a Strong<T, Bounded<T>>,
}

/// Reserved capacity for one message, together with the sender.
///
/// Created by [`Sender::reserve_owned`] and [`Sender::try_reserve_owned`].
///
/// Dropping the permit releases the capacity and drops the sender.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// blitz_io::run(async {
///     let (sender, mut receiver) = mpsc::channel(1);
///     let permit = sender.reserve_owned().await.unwrap();
///     let sender = permit.send(7);
///     assert_eq!(receiver.recv().await, Some(7));
///     assert_eq!(sender.capacity(), 1);
/// });
/// ```
pub struct OwnedPermit<T> {
    sender: Sender<T>,
}

/// An iterator over [`Permit`]s that were reserved together.
///
/// Created by [`Sender::reserve_many`] and [`Sender::try_reserve_many`].
///
/// Dropping the iterator releases the permits that it has not yielded.
///
/// # Examples
///
/// ```
/// use blitz_io::sync::mpsc;
///
/// blitz_io::run(async {
///     let (sender, mut receiver) = mpsc::channel(3);
///     for (n, permit) in sender.reserve_many(3).await.unwrap().enumerate() {
///         permit.send(n);
///     }
///     assert_eq!(receiver.len(), 3);
///     assert_eq!(receiver.recv().await, Some(0));
/// });
/// ```
pub struct PermitIterator<'a, T> {
    chan: &'a Strong<T, Bounded<T>>,
    remaining: usize,
}

impl<T> Receiver<T> {
    /// Receives the next message, or returns `None` when no more can come.
    ///
    /// The channel ends when all senders were dropped, or after [`close`](Self::close), and all
    /// messages were received. After a close, senders that hold a permit may still send, so
    /// `recv` waits until these permits are used or dropped.
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
    ///     let (sender, mut receiver) = mpsc::channel(8);
    ///     blitz_io::spawn(async move { sender.send("hello").await });
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
    ///     let (sender, mut receiver) = mpsc::channel(8);
    ///     for n in 0..5 {
    ///         sender.send(n).await.unwrap();
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
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.try_send(7).unwrap();
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
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// blitz_io::run(async { sender.send(7).await }).unwrap();
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
    /// let (sender, mut receiver) = mpsc::channel(2);
    /// sender.try_send(1).unwrap();
    /// sender.try_send(2).unwrap();
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
    /// Messages that were sent can still be received, and senders that hold a permit may still
    /// send. So keep receiving until `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(2);
    /// sender.try_send(1).unwrap();
    /// let permit = sender.try_reserve().unwrap();
    /// receiver.close();
    /// assert!(sender.try_send(2).is_err());
    /// permit.send(3);
    /// assert_eq!(receiver.blocking_recv(), Some(1));
    /// assert_eq!(receiver.blocking_recv(), Some(3));
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
    /// let (sender, receiver) = mpsc::channel::<u8>(1);
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
    /// let (sender, receiver) = mpsc::channel(1);
    /// assert!(receiver.is_empty());
    /// sender.try_send(7).unwrap();
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
    /// let (sender, receiver) = mpsc::channel(2);
    /// sender.try_send(7).unwrap();
    /// assert_eq!(receiver.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// Returns how many more messages the channel has capacity for.
    ///
    /// Queued messages and reserved permits count as used capacity.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(2);
    /// sender.try_send(7).unwrap();
    /// assert_eq!(receiver.capacity(), 1);
    /// receiver.blocking_recv();
    /// assert_eq!(receiver.capacity(), 2);
    /// ```
    pub fn capacity(&self) -> usize {
        self.chan.queue.free()
    }

    /// Returns the capacity of the channel when it is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (_sender, receiver) = mpsc::channel::<u8>(2);
    /// assert_eq!(receiver.max_capacity(), 2);
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.chan.queue.permits.capacity()
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
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(receiver.poll_recv(&mut cx).is_pending());
    /// sender.try_send(7).unwrap();
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
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let (mut cx, mut buffer) = (Context::from_waker(Waker::noop()), Vec::new());
    /// assert!(receiver.poll_recv_many(&mut cx, &mut buffer, 10).is_pending());
    /// sender.try_send(7).unwrap();
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
    /// let (sender, receiver) = mpsc::channel::<u8>(1);
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
    /// let (sender, receiver) = mpsc::channel::<u8>(1);
    /// let _weak = sender.downgrade();
    /// assert_eq!(receiver.sender_weak_count(), 1);
    /// ```
    pub fn sender_weak_count(&self) -> usize {
        self.chan.weak_count()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .field("max_capacity", &self.max_capacity())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T> Sender<T> {
    /// Sends a message, waiting while the channel is full.
    ///
    /// Waiting senders are served in the order in which they began to wait.
    ///
    /// A successful send does not mean that the message will be received: the receiver may be
    /// dropped before.
    ///
    /// # Errors
    ///
    /// Returns the message in the error if the receiver was closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, the message was not sent and is dropped
    /// with it; the place in the wait queue is lost. To keep the message,
    /// [`reserve`](Self::reserve) first.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// blitz_io::run(async {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     sender.send(1).await.unwrap();
    ///     assert_eq!(receiver.recv().await, Some(1));
    ///     drop(receiver);
    ///     assert_eq!(sender.send(2).await.unwrap_err().0, 2);
    /// });
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> impl Future<Output = Result<(), SendError<T>>> + use<'_, T> {
        let queue = &self.chan.queue;
        Sending { queue, acquire: Reserve::new(queue, ReserveRequest::Send), value: Some(value) }
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
    ///     let (sender, receiver) = mpsc::channel::<u8>(1);
    ///     blitz_io::spawn(async move { drop(receiver) });
    ///     sender.closed().await;
    ///     assert!(sender.is_closed());
    /// });
    /// ```
    pub async fn closed(&self) {
        self.chan.closed::<T>().await;
    }

    /// Sends a message if the channel has free capacity and no sender is waiting for it.
    ///
    /// # Errors
    ///
    /// Returns the message in the error: [`TrySendError::Full`] if there is no capacity now, or
    /// [`TrySendError::Closed`] if the receiver was closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc::{self, error::TrySendError};
    ///
    /// let (sender, _receiver) = mpsc::channel(1);
    /// assert_eq!(sender.try_send(1), Ok(()));
    /// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    /// ```
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let queue = &self.chan.queue;
        match queue.try_reserve(ReserveRequest::Send) {
            Ok(reserved) => queue.put(reserved, message).map_err(TrySendError::Closed),
            Err(TryReserveError::Closed) => Err(TrySendError::Closed(message)),
            Err(TryReserveError::Full) => Err(TrySendError::Full(message)),
        }
    }

    /// Sends a message, waiting for capacity for at most `timeout`.
    ///
    /// Otherwise behaves like [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// Returns the message in the error, if there was no capacity in time, or the receiver was
    /// closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, the message is dropped with it and the
    /// place in the wait queue is lost, as with [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// If this thread is not within a runtime with timers; see
    /// [`timeout`](crate::time::timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{
    ///     sync::mpsc::{self, error::SendTimeoutError},
    ///     time::Duration,
    /// };
    ///
    /// # let runtime = blitz_io::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let (sender, receiver) = mpsc::channel(1);
    /// let time = Duration::from_millis(1);
    /// assert_eq!(sender.send_timeout(1, time).await, Ok(()));
    /// assert_eq!(sender.send_timeout(2, time).await, Err(SendTimeoutError::Timeout(2)));
    /// drop(receiver);
    /// assert_eq!(sender.send_timeout(3, time).await, Err(SendTimeoutError::Closed(3)));
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "time")]
    pub async fn send_timeout(
        &self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        match crate::time::timeout(timeout, self.reserve()).await {
            Ok(Ok(permit)) => {
                permit.send(value);
                Ok(())
            }
            Ok(Err(_)) => Err(SendTimeoutError::Closed(value)),
            Err(_) => Err(SendTimeoutError::Timeout(value)),
        }
    }

    /// Sends a message, blocking the thread while the channel is full.
    ///
    /// The counterpart of [`send`](Self::send) for code outside of asynchronous tasks.
    ///
    /// # Errors
    ///
    /// Returns the message in the error if the receiver was closed or dropped.
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
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let thread = std::thread::spawn(move || sender.blocking_send(7));
    /// assert_eq!(blitz_io::run(receiver.recv()), Some(7));
    /// thread.join().unwrap().unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        blocking::block_on(self.send(value), "use `send` there")
    }

    /// Returns `true` if the receiver was closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, receiver) = mpsc::channel::<u8>(1);
    /// assert!(!sender.is_closed());
    /// drop(receiver);
    /// assert!(sender.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.chan.queue.is_closed()
    }

    /// Waits for capacity for one message and reserves it.
    ///
    /// # Errors
    ///
    /// If the receiver was closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future reserves nothing; the place in the wait queue is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// blitz_io::run(async {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     let permit = sender.reserve().await.unwrap();
    ///     assert!(sender.try_send(1).is_err());
    ///     permit.send(2);
    ///     assert_eq!(receiver.recv().await, Some(2));
    /// });
    /// ```
    pub async fn reserve(&self) -> Result<Permit<'_, T>, SendError<()>> {
        self.acquire(1).await?;
        Ok(Permit { chan: &self.chan })
    }

    /// Waits for capacity for `n` messages and reserves it.
    ///
    /// # Errors
    ///
    /// If the receiver was closed or dropped, or if `n` is more than
    /// [`max_capacity`](Self::max_capacity).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future reserves nothing; the place in the wait queue is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// blitz_io::run(async {
    ///     let (sender, mut receiver) = mpsc::channel(2);
    ///     let mut permits = sender.reserve_many(2).await.unwrap();
    ///     permits.next().unwrap().send(1);
    ///     drop(permits);
    ///     assert_eq!(receiver.recv().await, Some(1));
    ///     assert_eq!(sender.capacity(), 2);
    ///     assert!(sender.reserve_many(3).await.is_err());
    /// });
    /// ```
    pub async fn reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, SendError<()>> {
        if n > self.max_capacity() {
            return Err(SendError(()));
        }
        self.acquire(n).await?;
        Ok(PermitIterator { chan: &self.chan, remaining: n })
    }

    /// Waits for capacity for one message and moves the sender into the permit.
    ///
    /// The counterpart of [`reserve`](Self::reserve) for a permit that borrows nothing.
    ///
    /// # Errors
    ///
    /// If the receiver was closed or dropped. The sender is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future reserves nothing and drops the sender; the place in the wait queue is
    /// lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// blitz_io::run(async {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     let permit = sender.reserve_owned().await.unwrap();
    ///     blitz_io::spawn(async move { permit.send(7) });
    ///     assert_eq!(receiver.recv().await, Some(7));
    /// });
    /// ```
    pub async fn reserve_owned(self) -> Result<OwnedPermit<T>, SendError<()>> {
        self.acquire(1).await?;
        Ok(OwnedPermit { sender: self })
    }

    async fn acquire(&self, count: usize) -> Result<(), SendError<()>> {
        match Reserve::new(&self.chan.queue, ReserveRequest::Permits(count)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(SendError(())),
        }
    }

    /// Reserves capacity for `count` messages if it is free now.
    #[inline]
    fn try_acquire(&self, count: usize) -> Result<(), TrySendError<()>> {
        match self.chan.queue.try_reserve(ReserveRequest::Permits(count)) {
            Ok(_) => Ok(()),
            Err(TryReserveError::Closed) => Err(TrySendError::Closed(())),
            Err(TryReserveError::Full) => Err(TrySendError::Full(())),
        }
    }

    /// Reserves capacity for one message if it is free and no sender is waiting for it.
    ///
    /// # Errors
    ///
    /// [`TrySendError::Full`] if there is no capacity now, or [`TrySendError::Closed`] if the
    /// receiver was closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc::{self, error::TrySendError};
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let permit = sender.try_reserve().unwrap();
    /// assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Full(()));
    /// permit.send(7);
    /// assert_eq!(receiver.blocking_recv(), Some(7));
    /// ```
    #[inline]
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.try_acquire(1)?;
        Ok(Permit { chan: &self.chan })
    }

    /// Reserves capacity for `n` messages if it is free and no sender is waiting for it.
    ///
    /// # Errors
    ///
    /// [`TrySendError::Full`] if there is not enough capacity now (or ever, if `n` is more than
    /// [`max_capacity`](Self::max_capacity)), or [`TrySendError::Closed`] if the receiver was
    /// closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc::{self, error::TrySendError};
    ///
    /// let (sender, receiver) = mpsc::channel(3);
    /// for permit in sender.try_reserve_many(2).unwrap() {
    ///     permit.send(7);
    /// }
    /// assert_eq!(receiver.len(), 2);
    /// assert_eq!(sender.try_reserve_many(2).unwrap_err(), TrySendError::Full(()));
    /// ```
    pub fn try_reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        if n > self.max_capacity() {
            return Err(TrySendError::Full(()));
        }
        self.try_acquire(n)?;
        Ok(PermitIterator { chan: &self.chan, remaining: n })
    }

    /// Reserves capacity for one message if it is free, and moves the sender into the permit.
    ///
    /// The counterpart of [`try_reserve`](Self::try_reserve) for a permit that borrows nothing.
    ///
    /// # Errors
    ///
    /// Returns the sender in the error: [`TrySendError::Full`] if there is no capacity now, or
    /// [`TrySendError::Closed`] if the receiver was closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let permit = sender.clone().try_reserve_owned().unwrap();
    /// let sender = sender.try_reserve_owned().unwrap_err().into_inner();
    /// permit.send(7);
    /// assert_eq!(receiver.blocking_recv(), Some(7));
    /// assert_eq!(sender.capacity(), 1);
    /// ```
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        match self.try_acquire(1) {
            Ok(()) => Ok(OwnedPermit { sender: self }),
            Err(TrySendError::Full(())) => Err(TrySendError::Full(self)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(self)),
        }
    }

    /// Returns `true` if both senders send into the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
    /// let (other, _receiver) = mpsc::channel::<u8>(1);
    /// assert!(sender.same_channel(&sender.clone()));
    /// assert!(!sender.same_channel(&other));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        self.chan.same_channel(&other.chan)
    }

    /// Returns how many more messages the channel has capacity for.
    ///
    /// Queued messages and reserved permits count as used capacity.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel(2);
    /// sender.try_send(7).unwrap();
    /// assert_eq!(sender.capacity(), 1);
    /// ```
    pub fn capacity(&self) -> usize {
        self.chan.queue.free()
    }

    /// Creates a sender that does not keep the channel open.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
    /// let weak = sender.downgrade();
    /// assert!(weak.upgrade().is_some_and(|other| other.same_channel(&sender)));
    /// ```
    #[must_use = "it makes a weak sender, and does nothing to this one"]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender { chan: self.chan.downgrade() }
    }

    /// Returns the capacity of the channel when it is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(2);
    /// assert_eq!(sender.max_capacity(), 2);
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.chan.queue.permits.capacity()
    }

    /// Returns the number of senders; weak senders do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
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
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
    /// let _weak = sender.downgrade();
    /// assert_eq!(sender.weak_count(), 1);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.chan.weak_count()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { chan: self.chan.clone() }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("capacity", &self.capacity())
            .field("max_capacity", &self.max_capacity())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T> WeakSender<T> {
    /// Returns a sender, or `None` if all senders were dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
    /// let weak = sender.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(sender);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<Sender<T>> {
        Some(Sender { chan: self.chan.upgrade()? })
    }

    /// Returns the number of senders; weak senders do not count.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
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
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
    /// let weak = sender.downgrade();
    /// let _other = weak.clone();
    /// assert_eq!(weak.weak_count(), 2);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.chan.weak_count()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self { chan: self.chan.clone() }
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

impl<T> Permit<'_, T> {
    /// Sends a message with the reserved capacity.
    ///
    /// Works after a close, too. If the receiver was dropped, the message is dropped as well.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// sender.try_reserve().unwrap().send(7);
    /// assert_eq!(receiver.try_recv(), Ok(7));
    /// ```
    #[inline]
    pub fn send(self, value: T) {
        // The message takes over the permit's capacity, so the permit must not release it.
        let permit = ManuallyDrop::new(self);
        permit.chan.queue.put_with_permit(value);
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.chan.queue.release(1);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        self.remaining = self.remaining.checked_sub(1)?;
        Some(Permit { chan: self.chan })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}
impl<T> FusedIterator for PermitIterator<'_, T> {}

impl<T> Drop for PermitIterator<'_, T> {
    fn drop(&mut self) {
        self.chan.queue.release(self.remaining);
    }
}

impl<T> fmt::Debug for PermitIterator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitIterator").field("capacity", &self.remaining).finish_non_exhaustive()
    }
}

impl<T> OwnedPermit<T> {
    /// Sends a message with the reserved capacity and returns the sender.
    ///
    /// Works after a close, too. If the receiver was dropped, the message is dropped as well.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let sender = sender.try_reserve_owned().unwrap().send(7);
    /// assert_eq!(receiver.try_recv(), Ok(7));
    /// assert_eq!(sender.capacity(), 1);
    /// ```
    pub fn send(self, value: T) -> Sender<T> {
        let sender = self.into_sender();
        sender.chan.queue.put_with_permit(value);
        sender
    }

    /// Releases the reserved capacity and returns the sender.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
    /// let permit = sender.try_reserve_owned().unwrap();
    /// let sender = permit.release();
    /// assert_eq!(sender.capacity(), 1);
    /// ```
    pub fn release(self) -> Sender<T> {
        let sender = self.into_sender();
        sender.chan.queue.release(1);
        sender
    }

    /// Returns the sender; the caller must use or release the reserved capacity.
    fn into_sender(self) -> Sender<T> {
        let permit = ManuallyDrop::new(self);
        // SAFETY: `permit` is never dropped, so the sender is moved out exactly once.
        unsafe { std::ptr::read(&permit.sender) }
    }

    /// Returns `true` if both permits send into the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(2);
    /// let first = sender.clone().try_reserve_owned().unwrap();
    /// let second = sender.try_reserve_owned().unwrap();
    /// assert!(first.same_channel(&second));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        self.same_channel_as_sender(&other.sender)
    }

    /// Returns `true` if `sender` sends into the same channel as this permit.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::sync::mpsc;
    ///
    /// let (sender, _receiver) = mpsc::channel::<u8>(1);
    /// let permit = sender.clone().try_reserve_owned().unwrap();
    /// assert!(permit.same_channel_as_sender(&sender));
    /// ```
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.sender.same_channel(sender)
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        // The `sender` field is dropped after this.
        self.sender.chan.queue.release(1);
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").field("sender", &self.sender).finish()
    }
}

pin_project_lite::pin_project! {
    /// Future of [`Sender::send`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    struct Sending<'a, T> {
        queue: &'a Bounded<T>,
        #[pin]
        acquire: Reserve<'a, Bounded<T>>,
        // `Some` until the future completes.
        value: Option<T>,
    }
}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // Checked before the poll can claim a position, because a claimed position must be used.
        assert!(this.value.is_some(), "`send` was polled after it was done: await it once");
        let reserved = ready!(this.acquire.poll(cx));
        let Some(value) = this.value.take() else { unreachable!("it was there") };
        Poll::Ready(match reserved {
            Ok(reserved) => this.queue.put(reserved, value).map_err(SendError),
            Err(_) => Err(SendError(value)),
        })
    }
}

#[cfg(all(test, not(blitz_loom)))]
impl<T> Sender<T> {
    /// Returns the word that counts the handles of the channel.
    pub(super) fn chan_handles(&self) -> usize {
        self.chan.handles()
    }
}
