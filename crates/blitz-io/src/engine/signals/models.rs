//! Models of deliveries against threads that acquire notifiers, dispatch, listen and leave.

use std::task::{Context, Poll};

use super::{SignalListener, SignalRegistry, notifiers::Notifies};
use crate::engine::{
    prim::{Arc, AtomicUsize, Ordering::Relaxed, model, parker::Parker, thread},
    wait::{coalescer::Coalescer, test_waker::CountingWaker},
};

/// The descriptor of a model's notifier, on which a thread can wait for a notification.
struct ModelPipe(std::sync::Arc<Parker>);

impl Notifies for ModelPipe {
    fn notify(&self) {
        self.0.unpark();
    }
}

type Shared = Arc<SignalRegistry<ModelPipe>>;

const KIND: usize = 1;

fn registry() -> Shared {
    Arc::new(SignalRegistry::new())
}

fn notifier() -> (std::sync::Arc<Parker>, ModelPipe) {
    let parker = std::sync::Arc::new(Parker::new());
    (parker.clone(), ModelPipe(parker))
}

/// Runs a handler on a thread of its own.
fn deliverer(registry: &Shared) -> thread::JoinHandle<()> {
    let registry = registry.clone();
    thread::spawn(move || registry.deliver(KIND))
}

/// Does a runtime's part: acquires a notifier, and dispatches until `count` deliveries were
/// dispatched.
fn dispatch_until(registry: &SignalRegistry<ModelPipe>, count: u64) {
    let (parker, pipe) = notifier();
    let notifier = registry.acquire(|| Ok(pipe)).unwrap();
    registry.dispatch_all();
    while dispatched(registry) < count {
        parker.park();
        registry.dispatch_for(notifier);
    }
    registry.release(notifier);
}

fn dispatched(registry: &SignalRegistry<ModelPipe>) -> u64 {
    // Relaxed: a number, which orders nothing.
    registry.dispatched[KIND].load(Relaxed)
}

/// Waits until the listener sees a delivery; a lost wake-up would be a deadlock.
fn wait_for_delivery(listening: &mut SignalListener<'_, ModelPipe>) {
    let counter = CountingWaker::new();
    let waker = counter.waker();
    while listening.poll(&mut Context::from_waker(&waker)).is_pending() {
        counter.wait();
    }
}

#[test]
fn a_delivery_against_a_new_notifier_is_dispatched() {
    model(|| {
        let registry = registry();
        let handler = deliverer(&registry);
        dispatch_until(&registry, 1);
        handler.join().unwrap();
    });
}

#[test]
fn a_delivery_against_a_reset_is_dispatched() {
    model(|| {
        let registry = registry();
        let handlers = [deliverer(&registry), deliverer(&registry)];
        dispatch_until(&registry, 2);
        handlers.into_iter().for_each(|handler| handler.join().unwrap());
    });
}

#[test]
fn a_delivery_against_a_new_listener_is_seen() {
    model(|| {
        let registry = registry();
        let mut listening = registry.listen(KIND);
        let dispatcher = thread::spawn({
            let registry = registry.clone();
            move || {
                registry.deliver(KIND);
                registry.dispatch_all();
            }
        });
        wait_for_delivery(&mut listening);
        assert_eq!(dispatched(&registry), 1, "a new listener would see what is past");
        // One delivery is reported once.
        let waker = CountingWaker::new().waker();
        let again = listening.poll(&mut Context::from_waker(&waker));
        assert_eq!(again, Poll::Pending);
        dispatcher.join().unwrap();
    });
}

#[test]
fn two_dispatchers_wake_every_listener() {
    model(|| {
        let registry = registry();
        let mut listening = registry.listen(KIND);
        let dispatchers: [_; 2] = std::array::from_fn(|_| {
            let registry = registry.clone();
            thread::spawn(move || {
                registry.deliver(KIND);
                registry.dispatch_all();
            })
        });
        wait_for_delivery(&mut listening);
        dispatchers.into_iter().for_each(|dispatcher| dispatcher.join().unwrap());
        assert_eq!(dispatched(&registry), 2, "what was dispatched is never taken back");
        // So a new listener does not see deliveries that are long past.
        let mut late = registry.listen(KIND);
        let waker = CountingWaker::new().waker();
        assert!(late.poll(&mut Context::from_waker(&waker)).is_pending());
    });
}

#[test]
fn one_delivery_wakes_a_listener_once() {
    model(|| {
        let registry = registry();
        let mut listening = registry.listen(KIND);
        let counter = CountingWaker::new();
        let waker = counter.waker();
        assert!(listening.poll(&mut Context::from_waker(&waker)).is_pending());
        registry.deliver(KIND);
        registry.dispatch_all();
        assert!(listening.poll(&mut Context::from_waker(&waker)).is_ready());
        // The listener waits for the next delivery now; dispatching the first once more must not
        // wake it.
        assert!(listening.poll(&mut Context::from_waker(&waker)).is_pending());
        registry.dispatch_all();
        assert_eq!(counter.wake_count(), 1);
    });
}

#[test]
fn a_listener_that_leaves_against_a_delivery_is_dropped() {
    model(|| {
        let registry = registry();
        let counter = CountingWaker::new();
        let dispatcher = thread::spawn({
            let registry = registry.clone();
            move || {
                registry.deliver(KIND);
                registry.dispatch_all();
            }
        });
        let mut listening = registry.listen(KIND);
        let waker = counter.waker();
        let _ = listening.poll(&mut Context::from_waker(&waker));
        drop((listening, waker));
        dispatcher.join().unwrap();
        assert!(!registry.is_listened_to(KIND));
        assert_eq!(std::sync::Arc::strong_count(&counter), 1, "its waker was dropped");
    });
}

#[test]
fn a_notifier_that_is_reused_notifies_its_next_owner() {
    model(|| {
        let registry = registry();
        let (parker, pipe) = notifier();
        let first = registry.acquire(|| Ok(pipe)).unwrap();
        let handler = deliverer(&registry);
        registry.release(first);
        let second = registry.acquire(|| unreachable!("there is one to spare")).unwrap();
        assert!(std::ptr::eq(first, second));
        registry.dispatch_all();
        while dispatched(&registry) < 1 {
            parker.park();
            registry.dispatch_for(second);
        }
        handler.join().unwrap();
    });
}

#[test]
fn a_second_call_while_one_runs_is_served() {
    model(|| {
        let shared = Arc::new((Coalescer::new(), AtomicUsize::new(0), AtomicUsize::new(0)));
        let call = |shared: &(Coalescer, AtomicUsize, AtomicUsize)| {
            // Relaxed, all: the coalescer orders them.
            shared.1.fetch_add(1, Relaxed);
            shared.0.run(|| shared.2.store(shared.1.load(Relaxed), Relaxed));
        };
        let other = thread::spawn({
            let shared = shared.clone();
            move || call(&shared)
        });
        call(&shared);
        other.join().unwrap();
        assert_eq!(shared.2.load(Relaxed), 2, "a call was forgotten");
    });
}
