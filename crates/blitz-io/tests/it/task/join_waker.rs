//! Tests the wakers with which a join handle is polled: they are kept, replaced and dropped, and
//! never trusted.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Poll, RawWaker, RawWakerVTable, Waker},
};

use blitz_io::task::JoinHandle;

use crate::support::{
    drop_tally::Tally,
    gate::Gate,
    manual_poll::{poll_once, poll_with},
    runtimes::workers,
    wakers::counted,
    watchdog,
};

fn waiting(rt: &blitz_io::runtime::Runtime, gate: &Arc<Gate>) -> JoinHandle<u32> {
    let opened = gate.opened();
    let task = rt.spawn(async move {
        opened.await;
        11
    });
    watchdog::until(|| gate.waiting() == 1);
    task
}

#[test]
fn the_last_waker_is_woken_once_and_the_ones_before_not() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let mut task = waiting(&rt, &gate);
    let ((one, first), (two, second)) = (counted(), counted());
    assert!(poll_with(&mut task, &first).is_pending());
    assert!(poll_with(&mut task, &first).is_pending());
    assert!(poll_with(&mut task, &second).is_pending());
    gate.open();
    watchdog::until(|| two.count() == 1);
    assert!(matches!(poll_once(&mut task), Poll::Ready(Ok(11))));
    drop(rt);
    assert_eq!((one.count(), two.count()), (0, 1));
}

#[test]
fn a_replaced_waker_is_let_go_at_once_and_the_last_with_the_handle() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let mut task = waiting(&rt, &gate);
    let ((one, first), (two, second)) = (counted(), counted());
    drop(poll_with(&mut task, &first));
    drop(poll_with(&mut task, &second));
    drop(first);
    assert_eq!(Arc::strong_count(&one), 1, "the replaced waker is kept");
    drop(second);
    drop(task);
    watchdog::until(|| Arc::strong_count(&two) == 1);
    assert_eq!(two.count(), 0);
    gate.open();
    drop(rt);
    assert_eq!(two.count(), 0, "a handle that is gone was woken");
}

#[test]
fn a_waker_is_let_go_when_the_runtime_ends() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let mut task = rt.spawn(std::future::pending::<()>());
    let (count, waker) = counted();
    assert!(poll_with(&mut task, &waker).is_pending());
    drop(waker);
    drop(rt);
    assert_eq!(count.count(), 1, "the end of the runtime ends the wait");
    assert!(matches!(poll_once(&mut task), Poll::Ready(Err(error)) if error.is_cancelled()));
    drop(task);
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn no_completion_is_missed_while_wakers_change() {
    let _watch = watchdog::start();
    let rt = workers(1);
    for round in 0..1_000 {
        let gate = Gate::new();
        let mut task = waiting(&rt, &gate);
        let opener = rt.spawn({
            let gate = gate.clone();
            async move { gate.open() }
        });
        let mut last;
        let mut polls = 0;
        // Polls with new wakers each time while the task completes; after that only the last waker
        // may be needed.
        loop {
            let (count, waker) = counted();
            last = count;
            if poll_with(&mut task, &waker).is_ready() {
                break;
            }
            polls += 1;
            if polls == round % 7 + 1 {
                watchdog::until(|| last.count() == 1);
                assert!(poll_once(&mut task).is_ready());
                break;
            }
        }
        rt.block_on(opener).unwrap();
    }
}

#[test]
fn two_threads_may_poll_one_handle_in_turn() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let mut task = waiting(&rt, &gate);
    let mut task = std::thread::spawn(move || {
        assert!(poll_once(&mut task).is_pending());
        task
    })
    .join()
    .unwrap();
    gate.open();
    assert_eq!(rt.block_on(&mut task).unwrap(), 11);
}

/// The function of a waker that panics.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Bad {
    Clone,
    Wake,
    Drop,
}

struct Panicking {
    bad: Bad,
    /// The number of panics that are left: a waker that panics in every drop could not be dropped.
    left: AtomicUsize,
    panicked: Arc<AtomicUsize>,
}

impl Panicking {
    fn reached(&self, here: Bad) {
        if self.bad == here && self.left.load(Relaxed) > 0 {
            self.left.fetch_sub(1, Relaxed);
            self.panicked.fetch_add(1, Relaxed);
            panic!("a waker panics in its {here:?}");
        }
    }
}

static PANICKING: RawWakerVTable = {
    /// # Safety
    /// `data` must come from `Arc::into_raw` of an `Arc<Panicking>` that is alive.
    unsafe fn borrow<'a>(data: *const ()) -> &'a Panicking {
        // SAFETY: the caller guarantees that `data` points to a live `Panicking`.
        unsafe { &*data.cast::<Panicking>() }
    }
    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: a waker calls this with the data that it was created with, a live `Arc`.
        unsafe {
            borrow(data).reached(Bad::Clone);
            Arc::increment_strong_count(data.cast::<Panicking>());
        }
        RawWaker::new(data, &PANICKING)
    }
    unsafe fn wake(data: *const ()) {
        // SAFETY: a waker calls this with the data that it was created with, and waking by value
        // gives up its reference, which `from_raw` takes over.
        unsafe {
            let arc = Arc::from_raw(data.cast::<Panicking>());
            arc.reached(Bad::Wake);
        }
    }
    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: a waker calls this with the data that it was created with, a live `Arc`.
        unsafe { borrow(data).reached(Bad::Wake) }
    }
    unsafe fn drop(data: *const ()) {
        // SAFETY: a waker calls this with the data that it was created with, and a drop gives up
        // its reference, which `from_raw` takes over.
        unsafe {
            let arc = Arc::from_raw(data.cast::<Panicking>());
            arc.reached(Bad::Drop);
        }
    }
    RawWakerVTable::new(clone, wake, wake_by_ref, drop)
};

/// Returns a waker that panics once in `bad`, the number of its panics so far, and a weak reference
/// to its memory.
fn panicking(bad: Bad) -> (Waker, Arc<AtomicUsize>, std::sync::Weak<Panicking>) {
    let panicked = Arc::new(AtomicUsize::new(0));
    let data = Arc::new(Panicking { bad, left: AtomicUsize::new(1), panicked: panicked.clone() });
    let weak = Arc::downgrade(&data);
    let raw = RawWaker::new(Arc::into_raw(data).cast(), &PANICKING);
    // SAFETY: the functions of the vtable treat the data as the `Arc` that it is.
    (unsafe { Waker::from_raw(raw) }, panicked, weak)
}

#[test]
fn a_waker_that_panics_when_woken_harms_neither_worker_nor_output() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let mut task = waiting(&rt, &gate);
    let (waker, panicked, memory) = panicking(Bad::Wake);
    assert!(poll_with(&mut task, &waker).is_pending());
    drop(waker);
    gate.open();
    watchdog::until(|| panicked.load(Relaxed) == 1);
    assert_eq!(rt.block_on(&mut task).unwrap(), 11);
    assert_eq!(rt.block_on(rt.spawn(async { 2 })).unwrap(), 2, "the worker goes on");
    drop((task, rt));
    assert_eq!(memory.strong_count(), 0, "the waker leaked");
}

#[test]
fn a_waker_that_panics_when_cloned_panics_in_the_poll_and_harms_nothing() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let mut task = waiting(&rt, &gate);
    let (waker, panicked, memory) = panicking(Bad::Clone);
    assert!(catch_unwind(AssertUnwindSafe(|| poll_with(&mut task, &waker))).is_err());
    assert_eq!(panicked.load(Relaxed), 1);
    assert!(poll_with(&mut task, &waker).is_pending(), "the second time it clones");
    drop(waker);
    gate.open();
    assert_eq!(rt.block_on(&mut task).unwrap(), 11);
    drop((task, rt));
    assert_eq!(memory.strong_count(), 0, "the waker leaked");
}

#[test]
fn a_waker_that_panics_when_replaced_harms_nothing() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let mut task = waiting(&rt, &gate);
    let (waker, panicked, memory) = panicking(Bad::Drop);
    assert!(poll_with(&mut task, &waker).is_pending());
    // Leaked, so that only the task's copy can panic.
    let own = std::mem::ManuallyDrop::new(waker);
    let (count, next) = counted();
    let _ = catch_unwind(AssertUnwindSafe(|| poll_with(&mut task, &next)));
    assert_eq!(panicked.load(Relaxed), 1, "the replaced waker is dropped by the poll");
    assert!(poll_with(&mut task, &next).is_pending());
    gate.open();
    watchdog::until(|| count.count() == 1);
    assert!(matches!(poll_once(&mut task), Poll::Ready(Ok(11))));
    drop((task, rt));
    assert_eq!(memory.strong_count(), 1, "only ours is left");
    drop(std::mem::ManuallyDrop::into_inner(own));
}

#[test]
fn a_waker_that_panics_when_let_go_with_its_handle_harms_nothing() {
    let _watch = watchdog::start();
    for completed in [false, true] {
        let rt = workers(1);
        let (gate, tally) = (Gate::new(), Tally::new());
        let (opened, token) = (gate.opened(), tally.token());
        let mut task = rt.spawn(async move {
            opened.await;
            token
        });
        let (waker, panicked, memory) = panicking(Bad::Drop);
        assert!(poll_with(&mut task, &waker).is_pending());
        let own = std::mem::ManuallyDrop::new(waker);
        if completed {
            gate.open();
            watchdog::until(|| task.is_finished());
        }
        let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
        gate.open();
        // A waker that was woken by value has no drop left in which to panic.
        watchdog::until(|| completed || panicked.load(Relaxed) == 1);
        assert_eq!(rt.block_on(rt.spawn(async { 2 })).unwrap(), 2, "the worker goes on");
        drop(rt);
        tally.assert_all_dropped(1);
        assert_eq!(memory.strong_count(), 1, "only ours is left");
        memory.upgrade().unwrap().left.store(0, Relaxed);
        drop(std::mem::ManuallyDrop::into_inner(own));
    }
}

#[test]
fn a_waker_that_panics_when_woken_by_an_abort_or_a_shutdown_harms_nothing() {
    let _watch = watchdog::start();
    for shutdown in [false, true] {
        let rt = workers(1);
        let tally = Tally::new();
        let token = tally.token();
        let mut task = rt.spawn(async move {
            std::future::pending::<()>().await;
            token.keep();
        });
        let (waker, panicked, memory) = panicking(Bad::Wake);
        assert!(poll_with(&mut task, &waker).is_pending());
        drop(waker);
        let mut rt = Some(rt);
        if shutdown {
            rt = None;
        } else {
            task.abort();
        }
        watchdog::until(|| panicked.load(Relaxed) == 1 && task.is_finished());
        assert!(matches!(poll_once(&mut task), Poll::Ready(Err(error)) if error.is_cancelled()));
        if let Some(rt) = &rt {
            assert_eq!(rt.block_on(rt.spawn(async { 2 })).unwrap(), 2, "the worker goes on");
        }
        drop((task, rt));
        tally.assert_all_dropped(1);
        assert_eq!(memory.strong_count(), 0, "the waker leaked");
    }
}
