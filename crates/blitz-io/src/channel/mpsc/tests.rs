//! Tests of mpsc internals: sizes, drops, panics, position wrap-around, and heavy traffic.

use std::{
    cell::Cell,
    collections::VecDeque,
    future::Future,
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker},
    thread,
};

use proptest::prelude::*;

use super::{
    OwnedPermit, Permit, PermitIterator, Receiver, Sender, UnboundedReceiver, UnboundedSender,
    WeakSender, WeakUnboundedSender,
    blocks::BLOCK,
    bounded::Bounded,
    chan::Chan,
    channel,
    error::{SendError, TryRecvError, TrySendError},
    slot::Slot,
    unbounded::unbounded_from,
    unbounded_channel,
};
use crate::engine::{
    wait::test_waker::{CountingWaker, block_on},
    work::task::budget::{Budget, with_budget},
};

/// A capacity above the longest array, so that the channel has blocks.
const LONG: usize = 5_000;

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A message that counts its drops, and may run a closure when it is dropped.
struct Counted {
    drops: Arc<AtomicUsize>,
    then: Option<Box<dyn FnOnce() + Send>>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
        if let Some(then) = self.then.take() {
            then();
        }
    }
}

fn counted(drops: &Arc<AtomicUsize>) -> Counted {
    Counted { drops: drops.clone(), then: None }
}

fn counted_then(drops: &Arc<AtomicUsize>, then: impl FnOnce() + Send + 'static) -> Counted {
    Counted { drops: drops.clone(), then: Some(Box::new(then)) }
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn a_channel_for_one_is_small() {
    // The header and the slot are one allocation.
    let (whole, _) = Chan::<Bounded<u64>>::layout::<u64>(1);
    assert!(whole.size() <= 256, "{whole:?}");
    assert_eq!(size_of::<Slot<u64>>(), 16);
    assert_eq!(size_of::<Option<Sender<u64>>>(), size_of::<usize>());
}

#[test]
fn the_largest_capacity_is_accepted() {
    let (sender, mut receiver) = channel(usize::MAX >> 3);
    assert_eq!(sender.capacity(), usize::MAX >> 3);
    for n in 0..100 {
        sender.try_send(n).unwrap();
    }
    assert_eq!((sender.capacity(), receiver.len()), ((usize::MAX >> 3) - 100, 100));
    for n in 0..100 {
        assert_eq!(receiver.try_recv(), Ok(n));
    }
    assert_eq!((sender.capacity(), sender.max_capacity()), (usize::MAX >> 3, usize::MAX >> 3));
    let permits = sender.try_reserve_many(usize::MAX >> 3).unwrap();
    assert_eq!((permits.len(), sender.capacity()), (usize::MAX >> 3, 0));
    assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
    drop(permits);
    assert_eq!(sender.capacity(), usize::MAX >> 3);
}

#[test]
#[should_panic(expected = "mpsc bounded channel requires buffer > 0")]
fn a_capacity_of_zero_is_refused() {
    channel::<u8>(0);
}

#[test]
#[should_panic(expected = "a semaphore may not have more than MAX_PERMITS permits")]
fn a_capacity_beyond_the_largest_is_refused() {
    channel::<u8>((usize::MAX >> 3) + 1);
}

#[test]
fn messages_of_no_size_are_counted() {
    let (sender, mut receiver) = channel(3);
    for _ in 0..10 {
        for _ in 0..3 {
            sender.try_send(()).unwrap();
        }
        assert_eq!(sender.try_send(()), Err(TrySendError::Full(())));
        assert_eq!(receiver.len(), 3);
        for _ in 0..3 {
            assert_eq!(receiver.try_recv(), Ok(()));
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    }
}

#[test]
fn large_messages_do_not_allocate_a_large_array() {
    let (sender, mut receiver) = channel::<[u8; 10_000]>(1000);
    sender.try_send([7; 10_000]).unwrap();
    assert!(receiver.try_recv().is_ok_and(|message| message[9_999] == 7));
    assert_eq!(sender.capacity(), 1000);
}

#[test]
fn positions_wrap_round() {
    // The position has 62 bits; these channels start a few blocks before it wraps.
    for before in 0..3 * BLOCK as u64 {
        let (sender, mut receiver) = unbounded_from((1 << 62) - before);
        assert_eq!((receiver.len(), receiver.is_empty()), (0, true));
        for n in 0..4 * BLOCK {
            sender.send(n).unwrap();
            assert_eq!(receiver.len(), n + 1);
        }
        receiver.close();
        assert_eq!(sender.send(0), Err(SendError(0)));
        for n in 0..4 * BLOCK {
            assert_eq!(receiver.try_recv(), Ok(n), "{before} before the end");
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    }
}

#[test]
fn a_queue_that_wraps_round_loses_nothing() {
    let (sender, receiver) = unbounded_from((1 << 62) - 10_000);
    count_all(4, 10_000, receiver, move |n| {
        sender.send(n).unwrap();
    });
}

/// Sends `each` numbers from each of `threads` threads by calling `send`.
///
/// Asserts that each number arrives once, and those of one thread in order.
fn count_all(
    threads: usize,
    each: usize,
    mut receiver: UnboundedReceiver<usize>,
    send: impl Fn(usize) + Clone + Send + 'static,
) {
    let senders: Vec<_> = (0..threads)
        .map(|thread| {
            let send = send.clone();
            thread::spawn(move || (0..each).for_each(|n| send(thread * each + n)))
        })
        .collect();
    drop(send);
    let mut next = vec![0; threads];
    while let Some(number) = block_on(receiver.recv()) {
        assert_eq!(number % each, next[number / each], "out of order");
        next[number / each] += 1;
    }
    assert!(next.iter().all(|&count| count == each), "{next:?}");
    senders.into_iter().for_each(|sender| sender.join().unwrap());
}

#[test]
fn an_unbounded_channel_delivers_each_message_once() {
    let (sender, receiver) = unbounded_channel();
    count_all(3, 20_000, receiver, move |n| sender.send(n).unwrap());
}

/// Checks delivery like `count_all`, in all the ways in which a bounded channel can be sent
/// into.
fn count_bounded(capacity: usize, threads: usize, each: usize, many: bool) {
    let (sender, mut receiver) = channel(capacity);
    let senders: Vec<_> = (0..threads)
        .map(|thread| {
            let sender = sender.clone();
            thread::spawn(move || {
                for n in 0..each {
                    let number = thread * each + n;
                    match n % 4 {
                        0 => block_on(sender.send(number)).unwrap(),
                        1 => block_on(sender.reserve()).unwrap().send(number),
                        2 => {
                            let sent = sender.try_send(number);
                            sent.or_else(|e| block_on(sender.send(e.into_inner()))).unwrap();
                        }
                        _ => {
                            let want = 1 + n % capacity.min(3);
                            let mut permits = block_on(sender.reserve_many(want)).unwrap();
                            permits.next().unwrap().send(number);
                        }
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let (mut next, mut buffer) = (vec![0; threads], Vec::new());
    loop {
        let count = if many {
            block_on(receiver.recv_many(&mut buffer, 7))
        } else {
            let message = block_on(receiver.recv());
            buffer.extend(message);
            buffer.len()
        };
        if count == 0 {
            break;
        }
        assert_eq!(count, buffer.len());
        for number in buffer.drain(..) {
            assert_eq!(number % each, next[number / each], "out of order");
            next[number / each] += 1;
        }
    }
    assert!(next.iter().all(|&count| count == each), "{next:?}");
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert_eq!(receiver.capacity(), capacity, "a permit was lost, or made");
}

#[test]
fn a_bounded_channel_delivers_each_message_once() {
    for capacity in [1, 2, 3, 64] {
        count_bounded(capacity, 3, 3_000, false);
        count_bounded(capacity, 3, 3_000, true);
    }
}

#[test]
fn a_long_channel_delivers_each_message_once() {
    count_bounded(LONG, 3, 5_000, false);
    count_bounded(LONG, 2, 5_000, true);
}

#[test]
fn a_receiver_that_leaves_in_the_middle_drops_each_message_once() {
    for capacity in [Some(1), Some(5), Some(LONG), None] {
        let (drops, sent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (bounded, unbounded) = match capacity {
            Some(capacity) => (Some(channel(capacity)), None),
            None => (None, Some(unbounded_channel())),
        };
        let (tx, rx) = bounded.unzip();
        let (utx, urx) = unbounded.unzip();
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let (tx, utx): (Option<Sender<Counted>>, Option<UnboundedSender<Counted>>) =
                    (tx.clone(), utx.clone());
                let (drops, sent) = (drops.clone(), sent.clone());
                thread::spawn(move || {
                    loop {
                        sent.fetch_add(1, SeqCst);
                        let message = counted(&drops);
                        let open = match (&tx, &utx) {
                            (Some(tx), _) => block_on(tx.send(message)).is_ok(),
                            (_, Some(utx)) => utx.send(message).is_ok(),
                            _ => unreachable!("one of them is there"),
                        };
                        if !open {
                            return;
                        }
                    }
                })
            })
            .collect();
        let (mut rx, mut urx): (Option<Receiver<Counted>>, Option<UnboundedReceiver<Counted>>) =
            (rx, urx);
        for _ in 0..500 {
            rx.iter_mut().for_each(|rx| drop(block_on(rx.recv())));
            urx.iter_mut().for_each(|urx| drop(block_on(urx.recv())));
        }
        drop((rx, urx));
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        // The senders still exist, and nothing is left in the channel for them to drop.
        assert_eq!(drops.load(SeqCst), sent.load(SeqCst), "{capacity:?}");
        drop((tx, utx));
        assert_eq!(drops.load(SeqCst), sent.load(SeqCst), "{capacity:?}");
    }
}

#[test]
fn a_message_sent_by_permit_after_the_receiver_left_is_dropped_at_once() {
    for capacity in [2, LONG] {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(capacity);
        let (permit, owned) = (sender.try_reserve().unwrap(), sender.clone().try_reserve_owned());
        drop(receiver);
        permit.send(counted(&drops));
        assert_eq!(drops.load(SeqCst), 1);
        let other = owned.unwrap().send(counted(&drops));
        assert_eq!((drops.load(SeqCst), other.capacity()), (2, capacity));
    }
}

#[test]
fn a_granted_send_into_a_channel_that_lost_its_receiver_gives_the_message_back() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = channel(1);
    sender.try_send(counted(&drops)).unwrap();
    let mut waiting = pin!(sender.send(counted(&drops)));
    assert!(poll(waiting.as_mut()).is_pending());
    assert!(receiver.try_recv().is_ok(), "its room goes to the waiter");
    drop(receiver);
    assert_eq!(drops.load(SeqCst), 1);
    let Poll::Ready(Err(SendError(message))) = poll(waiting) else { panic!("it was lost") };
    drop(message);
    assert_eq!((drops.load(SeqCst), sender.capacity()), (2, 1));
}

#[test]
fn a_message_that_panics_when_dropped_keeps_no_other_from_it() {
    for capacity in [10, LONG] {
        let drops = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = channel(capacity);
        for n in 0..5 {
            let message = match n {
                2 => counted_then(&drops, || panic!("this message panics on purpose")),
                _ => counted(&drops),
            };
            sender.try_send(message).unwrap_or_else(|_| panic!("it has room"));
        }
        assert!(catch_unwind(AssertUnwindSafe(|| drop(receiver))).is_err());
        assert_eq!((drops.load(SeqCst), sender.capacity()), (5, capacity));
        assert!(sender.is_closed());
        assert_eq!(sender.chan_handles(), 1, "the receiver let go of the channel");
    }
}

#[test]
fn a_message_may_use_its_channel_when_it_is_dropped() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = channel(4);
    let (again, other) = (sender.clone(), drops.clone());
    let weak = sender.downgrade();
    let message = counted_then(&drops, move || {
        assert!(again.is_closed());
        assert!(again.try_send(counted(&other)).is_err());
        // This drops the last sender, which is in a message of its own channel.
        drop(again);
        assert!(weak.upgrade().is_none());
    });
    sender.try_send(message).unwrap_or_else(|_| panic!("it has room"));
    drop(sender);
    drop(receiver);
    assert_eq!(drops.load(SeqCst), 2);
}

#[test]
fn a_future_that_is_dropped_drops_its_message_and_passes_the_room_on() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = channel(1);
    sender.try_send(counted(&drops)).unwrap_or_else(|_| panic!("it has room"));
    let counter = CountingWaker::new();
    let waker = counter.waker();
    let mut first = Box::pin(sender.send(counted(&drops)));
    let mut second = Box::pin(sender.send(counted(&drops)));
    assert!(poll(first.as_mut()).is_pending());
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(receiver.try_recv());
    assert_eq!((drops.load(SeqCst), counter.wake_count()), (1, 0));
    drop(first);
    assert_eq!((drops.load(SeqCst), counter.wake_count()), (2, 1), "the room went to the second");
    assert!(poll(second.as_mut()).is_ready());
    assert_eq!(receiver.len(), 1);
}

#[test]
#[should_panic(expected = "`send` was polled after it was done")]
fn a_send_that_is_polled_again_takes_no_position() {
    let (sender, _receiver) = channel(2);
    let mut sending = pin!(sender.send(1));
    assert!(poll(sending.as_mut()).is_ready());
    let _ = poll(sending);
}

#[test]
fn the_last_permit_of_a_closed_channel_wakes_the_receiver() {
    let (sender, mut receiver) = channel::<u8>(2);
    let (counter, permits) = (CountingWaker::new(), sender.try_reserve_many(2).unwrap());
    let permits: Vec<Permit<'_, u8>> = permits.collect();
    receiver.close();
    let waker = counter.waker();
    let mut cx = Context::from_waker(&waker);
    assert!(receiver.poll_recv(&mut cx).is_pending());
    let mut permits = permits.into_iter();
    drop(permits.next());
    assert_eq!(counter.wake_count(), 0, "one may still send");
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    drop(permits.next());
    assert_eq!(counter.wake_count(), 1);
    assert_eq!(receiver.poll_recv(&mut cx), Poll::Ready(None));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn operations_take_budget_and_refusals_do_not() {
    let (sender, mut receiver) = unbounded_channel();
    (0..300).for_each(|n| sender.send(n).unwrap());
    let mut cx = Context::from_waker(Waker::noop());
    let received = with_budget(Budget::per_poll(), || {
        (0..300).take_while(|_| receiver.poll_recv(&mut cx).is_ready()).count()
    });
    assert_eq!(received, 128);
    assert_eq!(receiver.len(), 172, "a refused sender takes nothing");
    let (sender, mut receiver) = channel(200);
    let sent = with_budget(Budget::per_poll(), || {
        (0..200).take_while(|&n| poll(pin!(sender.send(n))).is_ready()).count()
    });
    assert_eq!((sent, receiver.len()), (128, 128));
    let mut buffer = Vec::new();
    with_budget(Budget::Remaining(1), || {
        assert!(receiver.poll_recv_many(&mut cx, &mut buffer, 100).is_ready(), "one for all");
        assert!(receiver.poll_recv_many(&mut cx, &mut buffer, 100).is_pending());
    });
    assert_eq!(buffer.len(), 100);
}

#[test]
fn a_message_need_not_be_shared_between_threads() {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    fn is_send<T: Send>(_: &T) {}
    let (sender, receiver) = channel::<Cell<u8>>(1);
    is_send_and_sync(&sender);
    is_send_and_sync(&receiver);
    is_send_and_sync(&sender.downgrade());
    is_send(&sender.send(Cell::new(0)));
    is_send_and_sync(&sender.reserve());
    is_send_and_sync(&sender.closed());
    let (sender, receiver) = channel::<u8>(1);
    is_send_and_sync(&sender.send(0));
    is_send_and_sync(&receiver);
}

#[test]
fn handles_may_be_moved_and_kept_through_a_panic() {
    fn holds<T: Unpin + UnwindSafe + RefUnwindSafe>() {}
    type Odd = (Cell<u8>, std::marker::PhantomPinned);
    holds::<Sender<Odd>>();
    holds::<Receiver<Odd>>();
    holds::<WeakSender<Odd>>();
    holds::<Permit<'_, Odd>>();
    holds::<PermitIterator<'_, Odd>>();
    holds::<OwnedPermit<Odd>>();
    holds::<UnboundedSender<Odd>>();
    holds::<UnboundedReceiver<Odd>>();
    holds::<WeakUnboundedSender<Odd>>();
}

#[test]
fn a_receive_that_is_dropped_loses_no_message() {
    for capacity in [1, LONG] {
        let (sender, mut receiver) = channel(capacity);
        {
            let mut receiving = pin!(receiver.recv());
            assert!(poll(receiving.as_mut()).is_pending());
            sender.try_send(1).unwrap();
        }
        assert_eq!(receiver.try_recv(), Ok(1));
        let mut buffer = Vec::new();
        {
            let mut receiving = pin!(receiver.recv_many(&mut buffer, 3));
            assert!(poll(receiving.as_mut()).is_pending());
            sender.try_send(2).unwrap();
        }
        assert!(buffer.is_empty());
        assert_eq!(receiver.try_recv(), Ok(2));
    }
}

#[test]
fn a_waker_that_panics_loses_nothing() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("this waker panics on purpose");
        }
    }
    let bad = Waker::from(Arc::new(Bad));
    let (sender, mut receiver) = channel(1);
    assert!(receiver.poll_recv(&mut Context::from_waker(&bad)).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| sender.try_send(1))).is_err(), "it is woken");
    assert_eq!(receiver.try_recv(), Ok(1), "and the message was sent");
    let permit = sender.try_reserve().unwrap();
    receiver.close();
    assert!(receiver.poll_recv(&mut Context::from_waker(&bad)).is_pending());
    drop(permit);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    let (sender, mut receiver) = unbounded_channel::<u8>();
    assert!(receiver.poll_recv(&mut Context::from_waker(&bad)).is_pending());
    drop(sender);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

/// The data of a waker that uses the channel it waits for: cloning it receives a message, and
/// dropping it records how many are left.
struct Meddler {
    receiver: Mutex<Receiver<u8>>,
    seen: Mutex<Vec<usize>>,
}

impl Meddler {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(Self::cloned, |_| {}, |_| {}, Self::dropped);

    /// Creates a waker that uses this data.
    ///
    /// # Safety
    /// 1. The data outlives the waker, and all clones of it.
    unsafe fn waker(&self) -> Waker {
        let data = std::ptr::from_ref(self).cast();
        // SAFETY: the functions keep the waker contract: by our obligation 1 the data outlives
        // all clones, so there is nothing to count.
        unsafe { Waker::from_raw(RawWaker::new(data, &Self::VTABLE)) }
    }

    fn cloned(data: *const ()) -> RawWaker {
        // SAFETY: by obligation 1 of `waker` the data outlives the waker.
        let this = unsafe { &*data.cast::<Self>() };
        assert!(this.receiver.lock().unwrap().try_recv().is_ok());
        RawWaker::new(data, &Self::VTABLE)
    }

    fn dropped(data: *const ()) {
        // SAFETY: by obligation 1 of `waker` the data outlives the waker.
        let this = unsafe { &*data.cast::<Self>() };
        let left = this.receiver.lock().unwrap().len();
        this.seen.lock().unwrap().push(left);
    }
}

/// If one were claimed, a receiver that is used there would wait forever for its message.
#[test]
fn no_position_is_claimed_while_a_waker_is_dropped() {
    let (sender, receiver) = channel(1);
    sender.try_send(1).unwrap();
    let meddler = Meddler { receiver: Mutex::new(receiver), seen: Mutex::default() };
    // SAFETY: 1. of `waker`: `meddler` is declared before the waker and the future, so it
    // outlives both, and the future keeps no waker once it has completed.
    let waker = unsafe { meddler.waker() };
    let mut sending = pin!(sender.send(2));
    let polled = sending.as_mut().poll(&mut Context::from_waker(&waker));
    assert_eq!(polled, Poll::Ready(Ok(())), "the clone of the waker made room");
    let seen = meddler.seen.lock().unwrap().clone();
    assert_eq!(seen, [0], "a position was claimed, and its message was not there");
    let received = meddler.receiver.lock().unwrap().try_recv();
    assert_eq!(received, Ok(2));
}

/// A step of the test below; the number selects among the futures that wait.
#[derive(Debug, Clone, Copy)]
enum Step {
    Send,
    TrySend,
    Reserve,
    ReserveMany(usize),
    Receive,
    ReceiveMany(usize),
    PollWaiting(usize),
    DropWaiting(usize),
    UsePermit(usize),
    DropPermit(usize),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Send),
        3 => Just(Step::TrySend),
        2 => Just(Step::Reserve),
        2 => (0usize..4).prop_map(Step::ReserveMany),
        8 => Just(Step::Receive),
        2 => (0usize..4).prop_map(Step::ReceiveMany),
        4 => (0usize..8).prop_map(Step::PollWaiting),
        2 => (0usize..8).prop_map(Step::DropWaiting),
        3 => (0usize..8).prop_map(Step::UsePermit),
        2 => (0usize..8).prop_map(Step::DropPermit),
        1 => Just(Step::Close),
    ]
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Vec<Permit<'a, usize>>, ()>> + 'a>>;

/// A waiting future: the permits that it wants, those still missing, and its message.
struct Member<'a> {
    future: Waiting<'a>,
    wanted: usize,
    missing: usize,
    message: Option<usize>,
    refused: bool,
}

/// The simple model: the number of free permits, and a list of messages.
#[derive(Default)]
struct Simple {
    free: usize,
    queued: VecDeque<usize>,
    closed: bool,
}

impl Simple {
    /// Gives permits to the waiting futures, in order.
    fn give(&mut self, members: &mut [Member<'_>], mut count: usize) {
        for member in members.iter_mut().filter(|member| !member.refused) {
            let part = count.min(member.missing);
            member.missing -= part;
            count -= part;
        }
        self.free += count;
    }
}

fn behave(capacity: usize, steps: Vec<Step>) {
    let (sender, mut receiver) = channel(capacity);
    let mut simple = Simple { free: capacity, ..Simple::default() };
    let (mut members, mut permits): (Vec<Member<'_>>, Vec<Permit<'_, usize>>) = Default::default();
    let mut cx = Context::from_waker(Waker::noop());
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Send | Step::Reserve | Step::ReserveMany(_) => {
                let (message, wanted) = match step {
                    Step::Send => (Some(number), 1),
                    Step::Reserve => (None, 1),
                    Step::ReserveMany(wanted) => (None, wanted),
                    _ => unreachable!("these three"),
                };
                let sender = &sender;
                let mut future: Waiting<'_> = Box::pin(async move {
                    match step {
                        Step::Send => sender.send(number).await.map(|()| vec![]).map_err(drop),
                        Step::Reserve => sender.reserve().await.map(|one| vec![one]).map_err(drop),
                        _ => sender.reserve_many(wanted).await.map(Iterator::collect).map_err(drop),
                    }
                });
                let polled = poll(future.as_mut());
                if simple.closed || wanted > capacity {
                    assert!(matches!(polled, Poll::Ready(Err(()))));
                } else if simple.free >= wanted {
                    let Poll::Ready(Ok(got)) = polled else { panic!("there was room") };
                    simple.free -= wanted;
                    permits.extend(got);
                    simple.queued.extend(message);
                } else {
                    assert!(polled.is_pending());
                    let missing = wanted - std::mem::take(&mut simple.free);
                    members.push(Member { future, wanted, missing, message, refused: false });
                }
            }
            Step::TrySend => match sender.try_send(number) {
                Ok(()) => {
                    assert!(!simple.closed && simple.free > 0);
                    simple.free -= 1;
                    simple.queued.push_back(number);
                }
                Err(TrySendError::Closed(_)) => assert!(simple.closed),
                Err(TrySendError::Full(_)) => assert!(!simple.closed && simple.free == 0),
            },
            Step::Receive => match receiver.poll_recv(&mut cx) {
                Poll::Ready(Some(message)) => {
                    assert_eq!(Some(message), simple.queued.pop_front());
                    simple.give(&mut members, 1);
                }
                Poll::Ready(None) => assert!(simple.closed && simple.free == capacity),
                Poll::Pending => {
                    assert!(
                        simple.queued.is_empty() && !(simple.closed && simple.free == capacity)
                    );
                }
            },
            Step::ReceiveMany(limit) => {
                let mut buffer = Vec::new();
                let polled = receiver.poll_recv_many(&mut cx, &mut buffer, limit);
                let count = limit.min(simple.queued.len());
                let expected: Vec<_> = simple.queued.drain(..count).collect();
                assert_eq!(buffer, expected);
                let over = simple.closed && simple.free == capacity;
                assert_eq!(polled.is_pending(), limit > 0 && count == 0 && !over);
                simple.give(&mut members, count);
            }
            Step::PollWaiting(at) if at < members.len() => {
                let member = &mut members[at];
                match poll(member.future.as_mut()) {
                    Poll::Pending => assert!(member.missing > 0 && !member.refused),
                    Poll::Ready(Err(())) => {
                        assert!(member.refused);
                        let member = members.remove(at);
                        simple.give(&mut members, member.wanted - member.missing);
                    }
                    Poll::Ready(Ok(got)) => {
                        assert!(member.missing == 0 && !member.refused);
                        permits.extend(got);
                        simple.queued.extend(member.message);
                        drop(members.remove(at));
                    }
                }
            }
            Step::DropWaiting(at) if at < members.len() => {
                let member = members.remove(at);
                drop(member.future);
                simple.give(&mut members, member.wanted - member.missing);
            }
            Step::UsePermit(at) if at < permits.len() => {
                permits.remove(at).send(number);
                simple.queued.push_back(number);
            }
            Step::DropPermit(at) if at < permits.len() => {
                drop(permits.remove(at));
                simple.give(&mut members, 1);
            }
            Step::Close => {
                receiver.close();
                simple.closed = true;
                // Each future keeps its permits until it is polled or dropped.
                members.iter_mut().for_each(|member| member.refused = true);
            }
            _ => {}
        }
        assert_eq!(receiver.len(), simple.queued.len());
        assert_eq!((sender.capacity(), sender.is_closed()), (simple.free, simple.closed));
    }
    drop((members, permits));
    drop(sender);
    while let Ok(message) = receiver.try_recv() {
        assert_eq!(Some(message), simple.queued.pop_front());
    }
    assert!(simple.queued.is_empty());
    assert_eq!(receiver.capacity(), capacity, "a permit was lost, or made");
}

proptest! {
    #[test]
    fn a_bounded_channel_behaves_as_a_simple_model(
        capacity in prop_oneof![1usize..5, Just(LONG)],
        steps in prop::collection::vec(step(), 0..120),
    ) {
        behave(capacity, steps);
    }
}
