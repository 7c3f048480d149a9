//! Models of deliveries against threads that put up bells, hear, listen and leave.

use std::task::{Context, Poll};

use super::{Hall, Listening, bells::Rings};
use crate::engine::{
    prim::{Arc, AtomicUsize, Ordering::Relaxed, model, parker::Parker, thread},
    wait::{bell::Bell as Wakes, gate::Gate},
};

/// A bell on whose next ring a thread can wait.
struct Rung(std::sync::Arc<Parker>);

impl Rings for Rung {
    fn ring(&self) {
        self.0.unpark();
    }
}

type Shared = Arc<Hall<Rung>>;

const KIND: usize = 1;

fn hall() -> Shared {
    Arc::new(Hall::new())
}

fn bell() -> (std::sync::Arc<Parker>, Rung) {
    let parker = std::sync::Arc::new(Parker::new());
    (parker.clone(), Rung(parker))
}

/// Runs a handler on a thread of its own.
fn deliverer(hall: &Shared) -> thread::JoinHandle<()> {
    let hall = hall.clone();
    thread::spawn(move || hall.deliver(KIND))
}

/// Does a runtime's part: puts a bell up, and hears until `count` deliveries were dispatched.
fn hear_until(hall: &Hall<Rung>, count: u64) {
    let (parker, rung) = bell();
    let bell = hall.put_up(|| Ok(rung)).unwrap();
    hall.tell_all();
    while told(hall) < count {
        parker.park();
        hall.hear(bell);
    }
    hall.take_down(bell);
}

fn told(hall: &Hall<Rung>) -> u64 {
    // Relaxed: a number, which orders nothing.
    hall.told[KIND].load(Relaxed)
}

/// Waits until the listener sees a delivery; a lost wake-up would be a deadlock.
fn until_told(listening: &mut Listening<'_, Rung>) {
    let wakes = Wakes::new();
    let waker = wakes.waker();
    while listening.poll(&mut Context::from_waker(&waker)).is_pending() {
        wakes.listen();
    }
}

#[test]
fn a_delivery_against_a_new_bell_is_heard() {
    model(|| {
        let hall = hall();
        let handler = deliverer(&hall);
        hear_until(&hall, 1);
        handler.join().unwrap();
    });
}

#[test]
fn a_delivery_against_a_bell_being_heard_is_heard() {
    model(|| {
        let hall = hall();
        let handlers = [deliverer(&hall), deliverer(&hall)];
        hear_until(&hall, 2);
        handlers.into_iter().for_each(|handler| handler.join().unwrap());
    });
}

#[test]
fn a_delivery_against_a_new_listener_is_seen() {
    model(|| {
        let hall = hall();
        let mut listening = hall.listen(KIND);
        let hears = thread::spawn({
            let hall = hall.clone();
            move || {
                hall.deliver(KIND);
                hall.tell_all();
            }
        });
        until_told(&mut listening);
        assert_eq!(told(&hall), 1, "a newcomer would be told of what is past");
        // One delivery is reported once.
        let waker = Wakes::new().waker();
        let again = listening.poll(&mut Context::from_waker(&waker));
        assert_eq!(again, Poll::Pending);
        hears.join().unwrap();
    });
}

#[test]
fn two_who_hear_tell_everybody() {
    model(|| {
        let hall = hall();
        let mut listening = hall.listen(KIND);
        let tellers: [_; 2] = std::array::from_fn(|_| {
            let hall = hall.clone();
            thread::spawn(move || {
                hall.deliver(KIND);
                hall.tell_all();
            })
        });
        until_told(&mut listening);
        tellers.into_iter().for_each(|teller| teller.join().unwrap());
        assert_eq!(told(&hall), 2, "what was told is never taken back");
        // So a new listener does not see deliveries that are long past.
        let mut late = hall.listen(KIND);
        let waker = Wakes::new().waker();
        assert!(late.poll(&mut Context::from_waker(&waker)).is_pending());
    });
}

#[test]
fn one_delivery_wakes_a_listener_once() {
    model(|| {
        let hall = hall();
        let mut listening = hall.listen(KIND);
        let wakes = Wakes::new();
        let waker = wakes.waker();
        assert!(listening.poll(&mut Context::from_waker(&waker)).is_pending());
        hall.deliver(KIND);
        hall.tell_all();
        assert!(listening.poll(&mut Context::from_waker(&waker)).is_ready());
        // The listener waits for the next delivery now; hearing another bell for the first must not
        // wake it.
        assert!(listening.poll(&mut Context::from_waker(&waker)).is_pending());
        hall.tell_all();
        assert_eq!(wakes.rung(), 1);
    });
}

#[test]
fn a_listener_that_leaves_against_a_delivery_is_let_go() {
    model(|| {
        let hall = hall();
        let wakes = Wakes::new();
        let teller = thread::spawn({
            let hall = hall.clone();
            move || {
                hall.deliver(KIND);
                hall.tell_all();
            }
        });
        let mut listening = hall.listen(KIND);
        let waker = wakes.waker();
        let _ = listening.poll(&mut Context::from_waker(&waker));
        drop((listening, waker));
        teller.join().unwrap();
        assert!(!hall.is_listened_to(KIND));
        assert_eq!(std::sync::Arc::strong_count(&wakes), 1, "its waker was dropped");
    });
}

#[test]
fn a_bell_that_is_given_on_is_heard_by_the_next() {
    model(|| {
        let hall = hall();
        let (parker, rung) = bell();
        let first = hall.put_up(|| Ok(rung)).unwrap();
        let handler = deliverer(&hall);
        hall.take_down(first);
        let second = hall.put_up(|| unreachable!("there is one to spare")).unwrap();
        assert!(std::ptr::eq(first, second));
        hall.tell_all();
        while told(&hall) < 1 {
            parker.park();
            hall.hear(second);
        }
        handler.join().unwrap();
    });
}

#[test]
fn a_second_call_while_one_hears_is_heard() {
    model(|| {
        let shared = Arc::new((Gate::new(), AtomicUsize::new(0), AtomicUsize::new(0)));
        let call = |shared: &(Gate, AtomicUsize, AtomicUsize)| {
            // Relaxed, all: the gate orders them.
            shared.1.fetch_add(1, Relaxed);
            shared.0.pass(|| shared.2.store(shared.1.load(Relaxed), Relaxed));
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
