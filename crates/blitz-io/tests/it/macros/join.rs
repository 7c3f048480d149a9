//! Tests `join!` and `try_join!`, which poll all futures in turns.
//!
//! A program that denies warnings gets none from the macros, which this file checks by doing so.
#![deny(warnings)]

use std::{
    convert::Infallible,
    future::{Future, IntoFuture, Ready, pending, ready},
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll},
};

use blitz_io::{
    join,
    task::{JoinHandle, yield_now},
    try_join,
};

use crate::support::{
    event_log::Log,
    gate::Gate,
    manual_poll::{now, poll_once},
    runtimes::{all_kinds, one_thread},
    watchdog,
};

fn ok<T>(value: T) -> Result<T, ()> {
    Ok(value)
}

#[test]
#[allow(clippy::unit_cmp, reason = "the empty tuple is what is tested")]
fn outputs_come_in_a_tuple_of_any_length() {
    now(async {
        assert_eq!(join!(), ());
        assert_eq!(join!(biased;), ());
        assert_eq!(join!(async { 1 }), (1,));
        assert_eq!(join!(biased; async { 1 },), (1,));
        assert_eq!(join!(ready(1), ready("2"), ready('3')), (1, "2", '3'));
        assert_eq!(join!(biased; ready(1), ready("2"),), (1, "2"));
        assert_eq!(try_join!() as Result<_, ()>, Ok(()));
        assert_eq!(try_join!(biased;) as Result<_, ()>, Ok(()));
        assert_eq!(try_join!(ready(ok(1))), Ok((1,)));
        assert_eq!(try_join!(biased; ready(ok(1)), ready(Ok("2")),), Ok((1, "2")));
        // A variable may have the name of the mode.
        let biased = ready(1);
        assert_eq!(join!(biased, ready(2)), (1, 2));
    });
}

#[test]
fn a_hundred_futures_can_be_joined() {
    macro_rules! hundred {
        ($($ten:literal)*) => {
            now(async {
                join!($(
                    ready($ten), ready($ten), ready($ten), ready($ten), ready($ten),
                    ready($ten), ready($ten), ready($ten), ready($ten), ready($ten),
                )*);
            })
        };
    }
    hundred!(0 1 2 3 4 5 6 7 8 9);
}

#[test]
fn all_are_waited_for() {
    let (left, right) = (Gate::new(), Gate::new());
    let mut both = pin!(async { join!(left.opened(), right.opened()) });
    assert!(poll_once(&mut both).is_pending());
    right.open();
    assert!(poll_once(&mut both).is_pending());
    left.open();
    assert_eq!(poll_once(&mut both), Poll::Ready(((), ())));
}

#[test]
fn a_finished_future_is_dropped_and_not_polled_again() {
    let log = Log::default();
    let mut both = pin!(async { join!(biased; log.ready("a", 1), log.ready_at("b", 2, 2)) });
    assert!(poll_once(&mut both).is_pending());
    assert_eq!(log.take(), ["poll a", "drop a", "poll b"]);
    assert_eq!(poll_once(&mut both), Poll::Ready((1, 2)));
    assert_eq!(log.take(), ["poll b", "drop b"]);
}

/// Returns the names of three futures in the order of their polls, `polls` each.
macro_rules! order {
    ($polls:literal, $output:expr, $join:ident!($($biased:tt)*)) => {{
        let log = Log::default();
        let mut all = pin!(async {
            let future = |name| log.ready_at(name, $polls, $output);
            let _ = $join!($($biased)* future("1"), future("2"), future("3"));
        });
        while poll_once(&mut all).is_pending() {}
        let polls = log.take().into_iter();
        polls.filter_map(|line| line.strip_prefix("poll ").map(str::to_owned)).collect::<String>()
    }};
}

#[test]
fn another_one_is_polled_first_each_time() {
    assert_eq!(order!(4, 0, join!()), "123231312123");
    assert_eq!(order!(4, ok(0), try_join!()), "123231312123");
}

#[test]
fn biased_polls_from_the_left_each_time() {
    assert_eq!(order!(4, 0, join!(biased;)), "123123123123");
    assert_eq!(order!(4, ok(0), try_join!(biased;)), "123123123123");
}

/// Returns handles of tasks that have ended: awaiting one takes a unit of the budget, and no time.
async fn ended(count: usize) -> Vec<JoinHandle<()>> {
    let tasks: Vec<_> = (0..count).map(|_| blitz_io::spawn(async {})).collect();
    while !tasks.iter().all(JoinHandle::is_finished) {
        yield_now().await;
    }
    tasks
}

#[test]
fn a_future_that_uses_up_the_budget_does_not_starve_the_others() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let done = rt.block_on(rt.spawn(async {
            // Ten times the budget of one poll.
            let (many, few) = join!(ended(1_280), ended(2));
            let left = AtomicUsize::new(many.len());
            let greedy = async {
                for task in many {
                    task.await.unwrap();
                    left.fetch_sub(1, Relaxed);
                }
            };
            let modest = async {
                for task in few {
                    task.await.unwrap();
                }
                left.load(Relaxed)
            };
            join!(greedy, modest).1
        }));
        assert!(done.unwrap() > 0, "the modest one came last");
    }
}

#[test]
fn biased_leaves_those_at_the_right_what_is_left_of_the_budget() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let left = rt.block_on(rt.spawn(async {
        let (many, few) = (ended(1_280).await, ended(1).await);
        let left = AtomicUsize::new(many.len());
        let greedy = async {
            for task in many {
                task.await.unwrap();
                left.fetch_sub(1, Relaxed);
            }
        };
        let modest = async {
            for task in few {
                task.await.unwrap();
            }
            left.load(Relaxed)
        };
        join!(biased; greedy, modest).1
    }));
    assert_eq!(left.unwrap(), 0);
}

#[test]
fn an_error_ends_it_at_once_and_drops_the_others() {
    let log = Log::default();
    let mut all = pin!(async {
        let result = try_join!(
            biased;
            log.ready("done", Ok(1)),
            log.ready_at("fails", 2, Err::<(), _>("broken")),
            log.ready_at("waits", 3, Ok(3)),
        );
        log.add("result");
        result
    });
    assert!(poll_once(&mut all).is_pending());
    assert_eq!(log.take(), ["poll done", "drop done", "poll fails", "poll waits"]);
    assert_eq!(poll_once(&mut all), Poll::Ready(Err("broken")));
    assert_eq!(log.take(), ["poll fails", "drop fails", "drop waits", "result"]);
}

#[test]
fn dropped_before_its_end_it_drops_each_future_and_output_once() {
    let log = Log::default();
    let mut all = Box::pin(async {
        join!(log.ready("a", log.ready("output of a", ())), log.ready_at("b", 2, ()));
    });
    assert!(poll_once(&mut all).is_pending());
    log.take();
    drop(all);
    assert_eq!(log.take(), ["drop output of a", "drop b"]);
}

#[test]
fn whatever_becomes_a_future_may_be_joined() {
    struct Later;
    impl IntoFuture for Later {
        type Output = Result<u8, ()>;
        type IntoFuture = Ready<Self::Output>;

        fn into_future(self) -> Self::IntoFuture {
            ready(Ok(8))
        }
    }
    now(async {
        assert_eq!(join!(Later), (Ok(8),));
        assert_eq!(try_join!(Later), Ok((8,)));
        // A temporary lives as long as the wait.
        assert_eq!(join!(&mut ready(9)), (9,));
    });
}

#[test]
fn an_output_that_cannot_be_is_no_trouble() {
    now(async {
        let mut all = pin!(async { join!(pending::<Infallible>(), ready(1)) });
        assert!(poll_once(&mut all).is_pending());
        let mut all = pin!(async { join!(biased; ready(1), pending::<Infallible>()) });
        assert!(poll_once(&mut all).is_pending());
        let mut all = pin!(async { join!(pending::<Infallible>()) });
        assert!(poll_once(&mut all).is_pending());
        assert_eq!(try_join!(ready(Err::<Infallible, _>(1)), ready(Ok(2))), Err(1));
        assert_eq!(try_join!(ready(Err::<Infallible, _>(1))), Err(1));
        assert_eq!(try_join!(ready(Ok::<_, Infallible>(1)), ready(Ok(2))), Ok((1, 2)));
    });
}

#[test]
fn names_of_the_caller_are_its_own() {
    const COUNT: u32 = 2;
    let (future, futures, first) = (1, 2, 3);
    let sum = now(async {
        let (a, b) = join!(ready(COUNT), async { future + futures + first });
        a + b
    });
    assert_eq!(sum, 8);
}

#[test]
fn futures_that_point_into_themselves_stay_where_they_are() {
    /// A future that completes at the third poll, and reports whether it stayed at its address.
    #[derive(Default)]
    struct Fixed(Option<usize>, u32, std::marker::PhantomPinned);
    impl Future for Fixed {
        type Output = bool;

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<bool> {
            let here = &raw const *self as usize;
            // SAFETY: the pinned value is not moved through the reference.
            let this = unsafe { self.get_unchecked_mut() };
            this.1 += 1;
            let there = *this.0.get_or_insert(here);
            if this.1 < 3 { Poll::Pending } else { Poll::Ready(here == there) }
        }
    }
    let mut all = Box::pin(async { join!(Fixed::default(), Fixed::default()) });
    assert!(poll_once(&mut all).is_pending());
    assert!(poll_once(&mut all).is_pending());
    assert_eq!(poll_once(&mut all), Poll::Ready((true, true)));
}

#[test]
fn the_future_is_send_if_its_parts_are() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let task = rt.spawn(async {
        let later = || async {
            yield_now().await;
            ok(String::from("name"))
        };
        (join!(later(), later()), try_join!(later(), later()))
    });
    let (both, tried) = rt.block_on(task).unwrap();
    assert_eq!(both.0, both.1);
    assert_eq!(tried.unwrap().1, "name");
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn the_future_is_as_large_as_tokios() {
    let sizes = [
        size_of_val(&async {
            let a = ready(0i32);
            join!(a)
        }),
        size_of_val(&async {
            let a = ready(0i32);
            let b = ready(0i32);
            join!(a, b)
        }),
        size_of_val(&async {
            let a = ready(ok(0i32));
            try_join!(a)
        }),
        size_of_val(&async {
            let a = ready(ok(0i32));
            let b = ready(ok(0i32));
            try_join!(a, b)
        }),
    ];
    assert_eq!(sizes, [32, 48, 32, 48]);
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "it is of words of 64 bits")]
fn a_biased_future_is_as_large_as_tokios() {
    let sizes = [
        size_of_val(&async {
            let a = ready(0i32);
            join!(biased; a)
        }),
        size_of_val(&async {
            let a = ready(0i32);
            let b = ready(0i32);
            join!(biased; a, b)
        }),
        size_of_val(&async {
            let a = ready(ok(0i32));
            try_join!(biased; a)
        }),
        size_of_val(&async {
            let a = ready(ok(0i32));
            let b = ready(ok(0i32));
            try_join!(biased; a, b)
        }),
    ];
    assert_eq!(sizes, [24, 40, 24, 40]);
}
