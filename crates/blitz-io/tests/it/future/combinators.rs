//! Tests `future`: races, joins and selects over many futures.

use std::{
    future::{Future, IntoFuture, Ready, pending, poll_fn, ready},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use blitz_io::{
    future::{join_all, race, race_all, race_ok, select_all, try_join_all},
    task::{JoinHandle, yield_now},
};

use crate::support::{
    auto_traits::has,
    caught_panic::panic_of,
    drop_tally::{Tally, Token},
    event_log::Log,
    manual_poll::{now, once, poll_once},
    runtimes::{all_kinds, all_kinds_unpreempted},
    wakers::WakeCount,
    watchdog,
};

/// A future that completes when [`Flag::set`] is called, and counts its polls.
#[derive(Clone, Default)]
struct Flag(Arc<FlagState>);

#[derive(Default)]
struct FlagState {
    polls: AtomicUsize,
    /// True once the future is to complete, and the waker of the task that polls it.
    state: Mutex<(bool, Option<Waker>)>,
}

impl Flag {
    fn many(count: usize) -> Vec<Self> {
        (0..count).map(|_| Self::default()).collect()
    }

    fn set(&self) {
        let mut state = self.0.state.lock().unwrap();
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn polls(&self) -> usize {
        self.0.polls.load(Relaxed)
    }
}

impl Future for Flag {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.polls.fetch_add(1, Relaxed);
        let mut state = self.0.state.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A future that panics in its poll, or in its drop.
struct Bad {
    in_poll: bool,
    in_drop: bool,
}

impl Future for Bad {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        assert!(!self.in_poll, "this future panics on purpose");
        Poll::Pending
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        assert!(!self.in_drop, "this drop panics on purpose");
    }
}

fn panics<T>(f: impl FnOnce() -> T) -> String {
    panic_of(f).message
}

#[test]
fn the_first_of_a_tuple_wins_at_every_place() {
    for winner in 0..8 {
        let runner = |place| async move {
            if place != winner {
                pending::<()>().await;
            }
            place
        };
        let all = (runner(0), runner(1), runner(2), runner(3), runner(4), runner(5), runner(6));
        if winner < 7 {
            assert_eq!(now(race(all)), winner);
        }
        let (a, b, c, d) = (runner(winner), runner(8), runner(9), runner(10));
        assert_eq!(now(race((d, c, b, a))), winner);
    }
    assert_eq!(now(race((pending(), ready(2)))), 2);
    assert_eq!(now(race((pending(), pending(), ready(3)))), 3);
    let (p, q) = (pending::<u8>, pending::<u8>);
    assert_eq!(now(race((p(), q(), p(), q(), ready(5)))), 5);
    assert_eq!(now(race((p(), q(), p(), q(), p(), ready(6)))), 6);
    assert_eq!(now(race((p(), q(), p(), q(), p(), q(), p(), ready(8)))), 8);
}

#[test]
fn losers_are_dropped_before_the_output_is_handed_out() {
    let log = Log::default();
    let mut few =
        pin!(race((log.ready_at("a", 2, 1), log.ready_at("b", 9, 2), log.ready_at("c", 9, 3))));
    assert!(poll_once(&mut few).is_pending());
    log.take();
    assert_eq!(poll_once(&mut few), Poll::Ready(1));
    let drops: Vec<_> = log.take().into_iter().filter(|line| line.starts_with("drop")).collect();
    assert_eq!(drops, ["drop a", "drop b", "drop c"]);

    let mut many =
        pin!(race_all([log.ready_at("a", 9, 1), log.ready("b", 2), log.ready_at("c", 9, 3)]));
    assert_eq!(poll_once(&mut many), Poll::Ready(2));
    let drops: Vec<_> = log.take().into_iter().filter(|line| line.starts_with("drop")).collect();
    assert_eq!(drops, ["drop b", "drop a", "drop c"]);
}

#[test]
fn no_place_wins_every_tie() {
    let mut won = [0; 3];
    for _ in 0..300 {
        won[now(race((ready(0), ready(1), ready(2))))] += 1;
    }
    assert!(won.iter().all(|wins| *wins > 30), "{won:?}");
    let mut won = [0; 3];
    for _ in 0..300 {
        won[now(race_all((0..3).map(ready)))] += 1;
    }
    assert!(won.iter().all(|wins| *wins > 30), "{won:?}");
    let mut won = [0; 3];
    for _ in 0..300 {
        won[now(async { select_all((0..3).map(ready)).next().await }).unwrap().0] += 1;
    }
    assert!(won.iter().all(|wins| *wins > 30), "{won:?}");
}

#[test]
fn outputs_come_in_the_order_of_the_futures() {
    assert_eq!(now(join_all((0..100).map(ready))), (0..100).collect::<Vec<_>>());
    assert_eq!(now(join_all::<[Ready<u8>; 0]>([])), []);
    assert_eq!(now(try_join_all((0..3).map(|n| ready(Ok::<_, ()>(n))))), Ok(vec![0, 1, 2]));
    assert_eq!(now(try_join_all::<[Ready<Result<u8, ()>>; 0], _, _>([])), Ok(vec![]));
    let flags = Flag::many(3);
    let mut all = pin!(join_all(flags.iter().cloned().enumerate().map(async |(place, flag)| {
        flag.await;
        place
    })));
    for place in [2, 0, 1] {
        assert!(poll_once(&mut all).is_pending());
        flags[place].set();
    }
    assert_eq!(once(all), Poll::Ready(vec![0, 1, 2]));
}

#[test]
fn into_future_values_are_taken_too() {
    struct Later(u8);
    impl IntoFuture for Later {
        type Output = Result<u8, u8>;
        type IntoFuture = Ready<Result<u8, u8>>;
        fn into_future(self) -> Self::IntoFuture {
            ready(if self.0 == 0 { Err(self.0) } else { Ok(self.0) })
        }
    }
    assert_eq!(now(join_all([Later(1), Later(0)])), [Ok(1), Err(0)]);
    assert_eq!(now(try_join_all([Later(1), Later(0)])), Err(0));
    assert_eq!(now(race_all([Later(2)])), Ok(2));
    assert_eq!(now(race_ok([Later(0), Later(3)])), Ok(3));
    assert_eq!(now(async { select_all([Later(4)]).next().await }), Some((0, Ok(4))));
}

#[test]
fn the_first_error_ends_a_join_and_drops_the_rest() {
    let (tally, flag) = (Tally::new(), Flag::default());
    let step = |place: usize, token: Token, flag: Flag| async move {
        token.keep();
        match place {
            0 => Ok(token),
            1 => {
                flag.await;
                Err(place)
            }
            _ => pending().await,
        }
    };
    let mut all = pin!(try_join_all((0..4).map(|place| step(place, tally.token(), flag.clone()))));
    assert!(poll_once(&mut all).is_pending());
    flag.set();
    let Poll::Ready(Err(place)) = poll_once(&mut all) else { panic!("the second one fails") };
    assert_eq!(place, 1);
    tally.assert_all_dropped(4);
    assert!(panics(|| _ = once(all)).contains("polled after it is done"));
}

#[test]
fn the_first_success_ends_a_race_and_without_one_all_errors_come_in_order() {
    let flags = Flag::many(3);
    let runners = |succeeds: Option<usize>| {
        let runner = move |(place, flag): (usize, Flag)| async move {
            flag.await;
            if Some(place) == succeeds { Ok(place) } else { Err(place) }
        };
        flags.iter().cloned().enumerate().map(runner).collect::<Vec<_>>()
    };
    let mut race = pin!(race_ok(runners(Some(1))));
    assert!(poll_once(&mut race).is_pending());
    flags[2].set();
    assert!(poll_once(&mut race).is_pending(), "a failure does not end the race");
    flags[1].set();
    assert_eq!(once(race), Poll::Ready(Ok(1)));
    assert_eq!(flags[0].polls(), 1);
    flags[0].set();
    assert_eq!(now(race_ok(runners(None))), Err(vec![0, 1, 2]));
}

#[test]
fn a_race_of_nothing_is_refused() {
    assert!(panics(|| drop(race_all::<[Ready<u8>; 0]>([]))).contains("give it one at least"));
    assert!(
        panics(|| drop(race_ok::<[Ready<Result<u8, u8>>; 0], _, _>([])))
            .contains("give it one at least")
    );
    assert!(select_all::<[Ready<u8>; 0]>([]).is_empty());
    assert_eq!(now(async { select_all::<[Ready<u8>; 0]>([]).next().await }), None);
}

#[test]
fn only_those_that_were_woken_are_polled() {
    let flags = Flag::many(1000);
    let mut all = pin!(join_all(flags.iter().cloned()));
    assert!(poll_once(&mut all).is_pending());
    for (done, one) in flags.iter().enumerate().skip(1) {
        one.set();
        assert!(poll_once(&mut all).is_pending());
        assert_eq!(one.polls(), 2);
        assert_eq!(flags.iter().map(Flag::polls).sum::<usize>(), 1000 + done);
    }
    // A poll without a wake-up polls none of the futures.
    assert!(poll_once(&mut all).is_pending());
    assert_eq!(flags[0].polls(), 1);
    flags[0].set();
    assert!(poll_once(&mut all).is_ready());
    assert!(flags.iter().all(|one| one.polls() == 2));
}

#[test]
fn futures_woken_first_end_first() {
    let flags = Flag::many(5);
    let mut all = select_all(flags.iter().cloned());
    assert!(once(all.next()).is_pending());
    for place in [3, 1, 4] {
        flags[place].set();
    }
    assert_eq!(all.len(), 5);
    assert_eq!(now(all.next()), Some((3, ())));
    assert_eq!(now(all.next()), Some((1, ())));
    flags[0].set();
    assert_eq!(now(all.next()), Some((4, ())));
    assert_eq!(now(all.next()), Some((0, ())));
    assert!(once(all.next()).is_pending());
    assert_eq!(all.len(), 1);
    flags[2].set();
    assert_eq!(now(all.next()), Some((2, ())));
    assert_eq!((now(all.next()), all.is_empty()), (None, true));
}

#[test]
fn the_task_is_woken_once_for_many_and_by_its_newest_waker() {
    let flags = Flag::many(4);
    let mut all = pin!(join_all(flags.iter().cloned()));
    let (old, new) = (WakeCount::new(), WakeCount::new());
    for count in [&old, &new] {
        assert!(count.poll(&mut all).is_pending());
    }
    flags[..3].iter().for_each(Flag::set);
    assert_eq!((old.count(), new.count()), (0, 1));
    assert!(new.poll(&mut all).is_pending());
    flags[3].set();
    assert_eq!(new.count(), 2);
    assert!(new.poll(&mut all).is_ready());
}

#[test]
fn a_set_that_is_done_or_dropped_lets_the_task_go() {
    let flags = Flag::many(2);
    let task = WakeCount::new();
    let waker = task.waker();
    let mut all = Box::pin(select_all(flags.iter().cloned()));
    assert!(all.poll_next(&mut Context::from_waker(&waker)).is_pending());
    drop(all);
    drop(waker);
    assert_eq!(Arc::strong_count(&task), 1);
    // Wakers that outlive the set wake no task, and break nothing.
    flags.iter().for_each(Flag::set);
    assert_eq!(task.count(), 0);
}

#[test]
fn a_wait_that_is_dropped_loses_nothing() {
    let flags = Flag::many(3);
    let mut all = select_all(flags.iter().cloned());
    for place in [1, 0, 2] {
        // A `next` is dropped while it waits, and once without a poll.
        assert!(once(all.next()).is_pending());
        flags[place].set();
        drop(all.next());
        assert_eq!(now(all.next()), Some((place, ())));
    }
}

#[test]
fn a_future_that_wakes_itself_is_polled_again_after_the_others() {
    let log = Log::default();
    let yielder = |name: &'static str| {
        let (log, mut left) = (&log, 3);
        poll_fn(move |cx| {
            log.add(name);
            left -= 1;
            if left == 0 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    };
    let mut both = pin!(join_all([yielder("a"), yielder("b")]));
    while poll_once(&mut both).is_pending() {}
    assert_eq!(log.take(), ["a", "b", "a", "b", "a", "b"]);
}

#[test]
fn a_panic_in_one_comes_out_and_breaks_the_rest() {
    let tally = Tally::new();
    let mut all = Box::pin(join_all((0..3).map(|place| {
        let token = tally.token();
        async move {
            token.keep();
            Bad { in_poll: place == 1, in_drop: false }.await;
        }
    })));
    assert_eq!(panics(|| poll_once(&mut all)), "this future panics on purpose");
    assert!(panics(|| poll_once(&mut all)).contains("drop them all"));
    drop(all);
    tally.assert_all_dropped(3);
}

#[test]
fn a_panic_in_the_drop_of_a_loser_comes_out_when_all_were_dropped() {
    let (tally, flag) = (Tally::new(), Flag::default());
    let runner = |place: usize| {
        let (token, flag) = (tally.token(), flag.clone());
        async move {
            token.keep();
            match place {
                2 => flag.await,
                _ => Bad { in_poll: false, in_drop: place == 1 }.await,
            }
        }
    };
    let mut all = Box::pin(race_all((0..5).map(runner)));
    assert!(poll_once(&mut all).is_pending());
    flag.set();
    assert_eq!(panics(|| poll_once(&mut all)), "this drop panics on purpose");
    tally.assert_all_dropped(5);
    assert!(panics(|| poll_once(&mut all)).contains("polled after it is done"));
}

#[test]
fn a_future_is_dropped_as_soon_as_it_has_ended() {
    let (tally, flags) = (Tally::new(), Flag::many(2));
    let mut all = pin!(join_all(flags.iter().cloned().map(|flag| {
        let token = tally.token();
        async move {
            flag.await;
            drop(token);
        }
    })));
    assert!(poll_once(&mut all).is_pending());
    flags[1].set();
    assert!(poll_once(&mut all).is_pending());
    assert_eq!(tally.dropped(), 1);
    flags[0].set();
    assert!(once(all).is_ready());
    tally.assert_all_dropped(2);
}

#[test]
fn completed_futures_are_not_polled_again() {
    let mut all = pin!(join_all([ready(1)]));
    assert_eq!(poll_once(&mut all), Poll::Ready(vec![1]));
    assert!(panics(|| once(all)).contains("polled after it is done"));
    let mut first = pin!(race_all([ready(1)]));
    assert_eq!(poll_once(&mut first), Poll::Ready(1));
    assert!(panics(|| once(first)).contains("polled after it is done"));
    let mut few = pin!(race((ready(1), ready(1))));
    assert_eq!(poll_once(&mut few), Poll::Ready(1));
    assert!(panics(|| once(few)).contains("polled after it is done"));
    let mut ok = pin!(race_ok([ready(Ok::<_, ()>(1))]));
    assert_eq!(poll_once(&mut ok), Poll::Ready(Ok(1)));
    assert!(panics(|| once(ok)).contains("polled after it is done"));
}

#[test]
fn a_thousand_ready_futures_let_others_run_in_between() {
    let _watch = watchdog::start();
    for rt in all_kinds_unpreempted() {
        let polls = rt.block_on(rt.spawn(async {
            let (mut all, mut polls) = (pin!(join_all((0..1000).map(ready))), 0);
            let outputs = poll_fn(|cx| {
                polls += 1;
                all.as_mut().poll(cx)
            });
            assert_eq!(outputs.await.len(), 1000);
            polls
        }));
        assert_eq!(polls.unwrap(), 1000_usize.div_ceil(128));
    }
}

#[test]
fn without_budget_no_future_is_polled_in_vain() {
    let _watch = watchdog::start();
    for rt in all_kinds_unpreempted() {
        let polls = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<JoinHandle<()>> = (0..1000).map(|_| rt.spawn(async {})).collect();
        rt.block_on(async {
            while !tasks.iter().all(JoinHandle::is_finished) {
                yield_now().await;
            }
        });
        let counted = tasks.into_iter().map(|mut task| {
            let polls = polls.clone();
            poll_fn(move |cx| {
                polls.fetch_add(1, Relaxed);
                // A poll of a handle takes a unit of the budget, and is pending if none is left.
                Pin::new(&mut task).poll(cx)
            })
        });
        rt.block_on(rt.spawn(join_all(counted.collect::<Vec<_>>()))).unwrap();
        assert_eq!(polls.load(Relaxed), 1000);
    }
}

#[test]
fn tasks_that_end_on_other_threads_are_all_joined() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let sum: usize = rt.block_on(async {
            let tasks = (0..500).map(|number| {
                blitz_io::spawn(async move {
                    for _ in 0..number % 7 {
                        yield_now().await;
                    }
                    number
                })
            });
            let mut ended = select_all(tasks);
            let mut sum = 0;
            while let Some((place, output)) = ended.next().await {
                assert_eq!(output.unwrap(), place);
                sum += place;
            }
            sum
        });
        assert_eq!(sum, 499 * 500 / 2);
    }
}

#[test]
fn they_can_be_spawned_if_their_futures_can() {
    type Sent = Ready<Result<u8, u8>>;
    type Kept = Ready<Result<std::rc::Rc<u8>, u8>>;
    use blitz_io::future::{JoinAll, Next, Race, RaceAll, RaceOk, SelectAll, TryJoinAll};
    assert!(has!(JoinAll<Sent>: Send) && !has!(JoinAll<Kept>: Send));
    assert!(has!(TryJoinAll<Sent, u8>: Send) && !has!(TryJoinAll<Kept, u8>: Send));
    assert!(has!(RaceAll<Sent>: Send) && !has!(RaceAll<Kept>: Send));
    assert!(has!(RaceOk<Sent, u8>: Send) && !has!(RaceOk<Kept, u8>: Send));
    assert!(has!(SelectAll<Sent>: Send) && !has!(SelectAll<Kept>: Send));
    assert!(has!(Next<'static, Sent>: Send) && has!(SelectAll<Sent>: Sync));
    assert!(has!(<(Sent, Sent) as Race>::Future: Send));
    assert!(!has!(<(Kept, Kept) as Race>::Future: Send));
    assert!(has!(JoinAll<std::future::Pending<std::marker::PhantomPinned>>: Unpin));
}
