//! Timers against the threads that fire them, under every interleaving.

use std::{
    pin::Pin,
    sync::Arc as StdArc,
    task::{Poll, Waker},
};

use super::{Clock, Timer, TimerShutdown, Timers, TimersRef};
use crate::engine::{
    prim::{
        Arc, AtomicBool,
        Ordering::{Relaxed, SeqCst},
        fence, model,
        parker::Parker,
        thread,
    },
    wait::test_waker::{CountingWaker, block_on},
};

/// Deadlines in different slots.
const SOON: u64 = 1_000_000;
const LATER: u64 = 5_000_000_000;

fn timers() -> (Arc<Timers>, Arc<TimersRef>) {
    let timers = Timers::new(1, Clock::new(false));
    let timers_ref = Timers::refs(&timers)[0].clone();
    (timers, timers_ref)
}

fn timer(timers_ref: &Arc<TimersRef>) -> Pin<Box<Timer>> {
    Box::pin(Timer::new(timers_ref.clone()))
}

/// Stands for a thread that holds core `wheel`.
fn core(wheel: usize) -> impl FnOnce(&Timers) -> (Option<usize>, ()) {
    move |_| (Some(wheel), ())
}

/// Stands for a thread that holds no core.
fn outside(_: &Timers) -> (Option<usize>, ()) {
    (None, ())
}

/// Polls a timer in the wheel of the only core.
fn poll(
    timer: &mut Pin<Box<Timer>>,
    waker: &Waker,
    deadline: u64,
) -> Poll<Result<(), TimerShutdown>> {
    timer.as_mut().poll(waker, deadline, core(0))
}

fn armed(
    timers_ref: &Arc<TimersRef>,
    counter: &StdArc<CountingWaker>,
    deadline: u64,
) -> Pin<Box<Timer>> {
    let mut timer = timer(timers_ref);
    assert!(poll(&mut timer, &counter.waker(), deadline).is_pending());
    timer
}

fn firing(timers: &Arc<Timers>, wheel: usize, now: u64) -> thread::JoinHandle<usize> {
    let timers = timers.clone();
    thread::spawn(move || timers.fire(wheel, now))
}

#[test]
fn fire_against_cancel_wakes_or_forgets() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let timer = armed(&timers_ref, &counter, SOON);
        let fires = firing(&timers, 0, SOON);
        drop(timer);
        let fired = fires.join().unwrap();
        assert_eq!((counter.wake_count(), StdArc::strong_count(&counter)), (fired, 1));
        assert_eq!(timers.next(0), None);
    });
}

#[test]
fn a_new_waker_against_fire_is_woken() {
    model(|| {
        let ((timers, timers_ref), old, new) =
            (timers(), CountingWaker::new(), CountingWaker::new());
        let mut timer = armed(&timers_ref, &old, SOON);
        let fires = firing(&timers, 0, SOON);
        // A lost wake-up would be a deadlock.
        while poll(&mut timer, &new.waker(), SOON).is_pending() {
            new.wait();
        }
        assert_eq!(fires.join().unwrap(), 1);
        assert_eq!(old.wake_count() + new.wake_count(), 1, "an entry fires once");
    });
}

#[test]
fn two_threads_that_fire_wake_each_once_and_see_the_rest() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let all = [SOON, SOON, LATER].map(|deadline| armed(&timers_ref, &counter, deadline));
        let fires = firing(&timers, 0, SOON);
        let fired = timers.fire(0, SOON);
        assert_eq!(fired + fires.join().unwrap(), 2);
        assert_eq!(counter.wake_count(), 2);
        assert_eq!(timers.next(0), Some(LATER), "a thread must check the rest");
        assert_eq!(timers.fire(0, LATER), 1);
        assert!(all.iter().all(|timer| timer.is_fired()));
    });
}

#[test]
fn a_full_wake_list_against_a_cancellation_fires_the_rest() {
    model(|| {
        let ((timers, timers_ref), counters) =
            (timers(), [CountingWaker::new(), CountingWaker::new(), CountingWaker::new()]);
        let [first, second, third] =
            counters.each_ref().map(|counter| armed(&timers_ref, counter, SOON));
        let fires = firing(&timers, 0, SOON);
        drop(third);
        fires.join().unwrap();
        assert!(first.is_fired() && second.is_fired());
        assert_eq!((counters[0].wake_count(), counters[1].wake_count()), (1, 1));
        assert!(counters[2].wake_count() <= 1);
        assert!(counters.iter().all(|counter| StdArc::strong_count(counter) == 1));
    });
}

#[test]
fn reset_against_fire_is_not_lost() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let mut timer = armed(&timers_ref, &counter, SOON);
        let fires = firing(&timers, 0, SOON);
        timer.as_mut().reset(LATER, core(0));
        assert!(!timer.is_fired(), "it waits for the new deadline");
        fires.join().unwrap();
        assert!(!timer.is_fired(), "nor for the old one any more");
        assert_eq!(timers.fire(0, LATER), 1);
        assert!(timer.is_fired());
        assert_eq!(counter.wake_count(), 1);
    });
}

#[test]
fn a_timer_that_moves_to_another_wheel_fires_once() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let mut timer = armed(&timers_ref, &counter, SOON);
        let fires = [firing(&timers, 0, SOON), firing(&timers, 1, LATER)];
        timer.as_mut().reset(LATER, outside);
        fires.into_iter().for_each(|fires| assert!(fires.join().unwrap() <= 1));
        timers.fire_all(LATER);
        assert!(timer.is_fired());
        assert_eq!((counter.wake_count(), StdArc::strong_count(&counter)), (1, 1));
    });
}

#[test]
fn arm_against_shutdown_ends() {
    model(|| {
        let (timers, timers_ref) = timers();
        let ends = thread::spawn({
            let timers = timers.clone();
            move || timers.shutdown()
        });
        let mut timer = timer(&timers_ref);
        // A forgotten timer would be a deadlock.
        let ended = block_on(std::future::poll_fn(|cx| poll(&mut timer, cx.waker(), SOON)));
        assert_eq!(ended, Err(TimerShutdown));
        ends.join().unwrap();
    });
}

#[test]
fn fire_against_shutdown_wakes_once() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let mut timer = armed(&timers_ref, &counter, SOON);
        let fires = firing(&timers, 0, SOON);
        timers.shutdown();
        let fired = fires.join().unwrap();
        assert_eq!(counter.wake_count(), 1);
        let expected = if fired == 1 { Ok(()) } else { Err(TimerShutdown) };
        assert_eq!(poll(&mut timer, &counter.waker(), SOON), Poll::Ready(expected));
    });
}

/// The owner sees by the clock that its deadline has passed, while another thread fires the timer
/// or does not get to it.
#[test]
fn a_timer_that_is_over_against_fire_wakes_once() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let mut timer = armed(&timers_ref, &counter, SOON);
        let fires = firing(&timers, 0, SOON);
        timer.as_mut().fire_now();
        assert!(timer.is_fired());
        // The timer belongs to its owner at once, and can be armed again.
        timer.as_mut().reset(LATER, core(0));
        fires.join().unwrap();
        assert!(!timer.is_fired(), "it waits for the new deadline");
        assert_eq!(
            (counter.wake_count(), StdArc::strong_count(&counter)),
            (1, 1),
            "one of them wakes"
        );
        assert_eq!((timers.next(0), timers.fire(0, LATER)), (Some(LATER), 1));
    });
}

#[test]
fn a_timer_that_is_over_against_shutdown_wakes_once() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let mut timer = armed(&timers_ref, &counter, SOON);
        let ends = thread::spawn({
            let timers = timers.clone();
            move || timers.shutdown()
        });
        timer.as_mut().fire_now();
        assert_eq!(poll(&mut timer, &counter.waker(), SOON), Poll::Ready(Ok(())), "it was over");
        ends.join().unwrap();
        assert_eq!((counter.wake_count(), StdArc::strong_count(&counter)), (1, 1));
    });
}

/// A thread fires the wheel of a late core, which arms another timer just then.
#[test]
fn a_timer_armed_against_fire_is_checked() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let first = armed(&timers_ref, &counter, SOON);
        let fires = firing(&timers, 0, SOON);
        let second = armed(&timers_ref, &counter, LATER);
        assert_eq!(fires.join().unwrap(), 1);
        assert_eq!(timers.next(0), Some(LATER), "no thread would check the second");
        assert_eq!(timers.fire(0, LATER), 1);
        assert!(first.is_fired() && second.is_fired());
    });
}

/// The last timer of a wheel is cancelled by another thread, while its core arms one.
#[test]
fn a_timer_armed_against_a_cancellation_is_checked() {
    model(|| {
        let ((timers, timers_ref), counter) = (timers(), CountingWaker::new());
        let first = armed(&timers_ref, &counter, SOON);
        let cancels = thread::spawn(move || drop(first));
        let second = armed(&timers_ref, &counter, LATER);
        cancels.join().unwrap();
        let next = timers.next(0).expect("no thread would check the second");
        // The timer that was cancelled may have left an earlier time.
        assert!(next <= LATER);
        assert_eq!(timers.fire(0, LATER), 1);
        assert!(second.is_fired());
    });
}

/// A thread that sleeps for the wheel of threads without a core, as a pool's thread would.
struct Sleeper {
    asleep: AtomicBool,
    parker: Parker,
}

impl Sleeper {
    /// Fires until a timer was woken; sleeps for ever if there is nothing to fire.
    fn serve(&self, timers: &Timers) {
        loop {
            // Relaxed: S1; the fence below orders it before the read of `next`.
            self.asleep.store(true, Relaxed);
            // SeqCst: S2. Pairs with the fence of the thread that arms, I2.
            fence(SeqCst);
            match timers.next(timers.outside()) {
                Some(next) => {
                    timers.fire(timers.outside(), next);
                    return;
                }
                // If this is a deadlock, the sleeper was never woken.
                None => self.parker.park(),
            }
        }
    }
}

#[test]
fn a_timer_armed_from_outside_wakes_the_sleeper() {
    model(|| {
        let (timers, timers_ref) = timers();
        let sleeper = Arc::new(Sleeper { asleep: AtomicBool::new(false), parker: Parker::new() });
        timers.set_alarm(Box::new({
            let sleeper = sleeper.clone();
            move |_| {
                // Relaxed: I3; `Timers` has fenced.
                if sleeper.asleep.swap(false, Relaxed) {
                    sleeper.parker.unpark();
                }
            }
        }));
        let serves = thread::spawn({
            let timers = timers.clone();
            move || sleeper.serve(&timers)
        });
        let mut timer = timer(&timers_ref);
        let poll = |cx: &mut std::task::Context<'_>| timer.as_mut().poll(cx.waker(), SOON, outside);
        assert_eq!(block_on(std::future::poll_fn(poll)), Ok(()));
        serves.join().unwrap();
    });
}
