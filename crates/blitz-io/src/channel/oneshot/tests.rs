//! Tests of oneshot internals: sizes, drops, panics, threads.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use super::{
    Receiver, Sender, Slot, SlotReceiver, SlotSender, channel,
    core::Core,
    error::{RecvError, TryRecvError},
};
use crate::engine::{
    wait::test_waker::CountingWaker,
    work::task::budget::{self, Budget},
};

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A value that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("this value panics on purpose");
    }
}

/// A waker that panics when it is called.
struct Bad;

impl Wake for Bad {
    fn wake(self: Arc<Self>) {
        panic!("this waker panics on purpose");
    }
}

fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn a_channel_is_one_allocation_of_48_bytes() {
    assert_eq!(size_of::<Core<u64>>(), 48);
    assert_eq!(size_of::<Core<()>>(), 40);
    assert_eq!(size_of::<(Sender<u64>, Receiver<u64>)>(), 16);
    assert_eq!(size_of::<Option<Sender<u64>>>(), 8);
}

#[test]
fn halves_are_send_and_sync_as_their_value_is_send() {
    fn is<T: Send + Sync + Unpin>() {}
    // A `Cell` is `Send` and not `Sync`.
    type Value = std::cell::Cell<u32>;
    is::<(Sender<Value>, Receiver<Value>)>();
    is::<(Slot<Value>, SlotSender<'_, Value>, SlotReceiver<'_, Value>)>();
    is::<(RecvError, TryRecvError)>();
    fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    is_unwind_safe::<(RecvError, TryRecvError)>();
}

/// Evaluates to `true` if a concrete type implements a trait.
///
/// This works because an inherent constant takes precedence over one of a trait.
macro_rules! has {
    ($type:ty: $($bound:tt)+) => {{
        #[allow(dead_code, reason = "it is not used for every type")]
        trait Not {
            const HAS: bool = false;
        }
        impl<T> Not for Probe<T> {}
        struct Probe<T>(std::marker::PhantomData<T>);
        #[allow(dead_code, reason = "it is not there for every type")]
        impl<T: $($bound)+> Probe<T> {
            const HAS: bool = true;
        }
        <Probe<$type>>::HAS
    }};
}

#[test]
fn halves_of_a_value_that_stays_on_its_thread_stay_there() {
    type Value = std::rc::Rc<u32>;
    assert!(has!(Sender<u32>: Send), "the macro detects an implementation");
    assert!(!has!(Sender<Value>: Send) && !has!(Sender<Value>: Sync));
    assert!(!has!(Receiver<Value>: Send) && !has!(Receiver<Value>: Sync));
    assert!(!has!(SlotSender<'static, Value>: Send) && !has!(SlotSender<'static, Value>: Sync));
    assert!(!has!(SlotReceiver<'static, Value>: Send));
    assert!(!has!(Slot<Value>: Send) && !has!(Slot<Value>: Sync));
    // The same is true of Tokio's halves.
    assert!(!has!(Sender<u32>: UnwindSafe) && !has!(Sender<u32>: RefUnwindSafe));
    assert!(!has!(Receiver<u32>: UnwindSafe) && !has!(Receiver<u32>: RefUnwindSafe));
}

#[test]
#[should_panic(expected = "called after complete")]
fn a_receiver_that_has_completed_panics_when_polled() {
    let (tx, mut rx) = channel();
    tx.send(1).unwrap();
    assert_eq!(poll(&mut rx, Waker::noop()), Poll::Ready(Ok(1)));
    assert!(rx.is_terminated() && rx.is_empty());
    let _ = poll(&mut rx, Waker::noop());
}

#[test]
fn a_receiver_is_terminated_by_every_result_but_empty() {
    let (tx, mut rx) = channel::<u32>();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert!(!rx.is_terminated());
    drop(tx);
    assert!(!rx.is_terminated());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    assert!(rx.is_terminated());
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn the_same_waker_is_cloned_once_and_given_up_at_the_end() {
    let counter = CountingWaker::new();
    let waker = counter.waker();
    let (mut tx, mut rx) = channel::<u32>();
    for _ in 0..3 {
        assert!(poll(&mut rx, &waker).is_pending());
        assert!(tx.poll_closed(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(Arc::strong_count(&counter), 4);
    }
    rx.close();
    assert_eq!((Arc::strong_count(&counter), counter.wake_count()), (2, 1), "both wakers are gone");
    assert_eq!(tx.send(1), Err(1));
    assert_eq!(poll(&mut rx, &waker), Poll::Ready(Err(RecvError(()))));
}

#[test]
fn a_value_that_panics_when_dropped_leaves_nothing_behind() {
    let (tx, rx) = channel();
    assert!(tx.send(Bomb).is_ok());
    assert!(panics(|| drop(rx)));

    let mut slot = Slot::new();
    let (tx, rx) = slot.split();
    assert!(tx.send(Bomb).is_ok());
    std::mem::forget(rx);
    assert!(panics(|| _ = slot.split()), "what was left is dropped first");
    let (tx, rx) = slot.split();
    drop(rx);
    let bomb = tx.send(Bomb).expect_err("the receiver is gone");
    std::mem::forget(bomb);
}

#[test]
fn a_waker_that_panics_does_not_keep_the_value() {
    let (tx, mut rx) = channel();
    assert!(poll(&mut rx, &Waker::from(Arc::new(Bad))).is_pending());
    assert!(panics(|| _ = tx.send(5)));
    assert_eq!(rx.try_recv(), Ok(5));

    let (mut tx, rx) = channel::<u32>();
    let bad = Waker::from(Arc::new(Bad));
    assert!(tx.poll_closed(&mut Context::from_waker(&bad)).is_pending());
    assert!(panics(|| drop(rx)));
    assert_eq!(tx.send(5), Err(5));
}

#[test]
fn operations_take_budget_when_they_complete() {
    budget::with_budget(Budget::Remaining(2), || {
        let ((tx, mut rx), counter) = (channel(), CountingWaker::new());
        assert!(poll(&mut rx, &counter.waker()).is_pending(), "waiting takes none");
        tx.send(1).unwrap();
        assert_eq!(poll(&mut rx, Waker::noop()), Poll::Ready(Ok(1)));
        let (mut tx, rx) = channel::<u32>();
        drop(rx);
        assert!(tx.poll_closed(&mut Context::from_waker(Waker::noop())).is_ready());
        let (tx, mut rx) = channel();
        tx.send(2).unwrap();
        assert!(poll(&mut rx, &counter.waker()).is_pending(), "nothing is left");
        assert_eq!(counter.wake_count(), 2, "it is woken at once");
        assert_eq!(rx.try_recv(), Ok(2), "which takes none");
    });
}

#[cfg(feature = "rt-multi-thread")]
#[test]
fn blocking_inside_async_code_panics_and_drops_the_receiver() {
    let (tx, rx) = channel::<u32>();
    let panicked =
        crate::run(async { crate::spawn(async move { rx.blocking_recv() }).await.unwrap_err() });
    assert!(panicked.is_panic());
    assert!(tx.is_closed());
}

/// A waker that uses the channel when it is called.
struct Curious(std::sync::Mutex<Option<Receiver<u32>>>);

impl Wake for Curious {
    fn wake(self: Arc<Self>) {
        let mut rx = self.0.lock().unwrap().take().expect("woken once");
        assert_eq!(rx.try_recv(), Ok(9));
    }
}

#[test]
fn a_waker_may_receive_the_value_itself() {
    let (tx, mut rx) = channel();
    let curious = Arc::new(Curious(std::sync::Mutex::new(None)));
    assert!(poll(&mut rx, &curious.clone().into()).is_pending());
    *curious.0.lock().unwrap() = Some(rx);
    tx.send(9).unwrap();
    assert!(curious.0.lock().unwrap().is_none(), "it was woken");
}

#[test]
fn a_slot_drops_what_was_not_received() {
    let value = Arc::new(());
    let mut slot = Slot::new();
    let (tx, rx) = slot.split();
    tx.send(value.clone()).unwrap();
    drop(rx);
    assert_eq!(Arc::strong_count(&value), 1, "dropped by its receiver");
    let (tx, rx) = slot.split();
    tx.send(value.clone()).unwrap();
    std::mem::forget(rx);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(slot);
    assert_eq!(Arc::strong_count(&value), 1, "dropped by the slot");
}

#[test]
fn a_value_taken_from_a_slot_is_not_dropped_again() {
    let value = Arc::new(());
    let mut slot = Slot::new();
    for _ in 0..3 {
        let (tx, mut rx) = slot.split();
        tx.send(value.clone()).unwrap();
        let taken = rx.try_recv().unwrap();
        assert_eq!(Arc::strong_count(&value), 2);
        drop((rx, taken));
    }
    drop(slot);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn threads_hand_over_every_value_once() {
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };
    let (work, jobs) = std::sync::mpsc::sync_channel::<Sender<Arc<usize>>>(16);
    let sender = std::thread::spawn(move || {
        for (n, tx) in jobs.into_iter().enumerate() {
            let _ = tx.send(Arc::new(n));
        }
    });
    for n in 0..ROUNDS {
        let (tx, mut rx) = channel();
        work.send(tx).unwrap();
        match n % 4 {
            0 => assert_eq!(*rx.blocking_recv().unwrap(), n),
            1 => drop(rx),
            2 => rx.close(),
            _ => loop {
                match rx.try_recv() {
                    Ok(value) => break assert_eq!((*value, Arc::strong_count(&value)), (n, 1)),
                    Err(error) => assert_eq!(error, TryRecvError::Empty),
                }
                std::thread::yield_now();
            },
        }
    }
    drop(work);
    sender.join().unwrap();
}
