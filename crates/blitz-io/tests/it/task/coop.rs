//! Tests budgets: a task whose operations are always ready lets others run.

use std::{
    cell::Cell,
    future::{Future, poll_fn, ready},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use blitz_io::{
    runtime::Runtime,
    task::{
        self,
        coop::{self, Coop, RestoreOnPending, Unconstrained},
        yield_now,
    },
};

use crate::support::{
    auto_traits::has,
    manual_poll::poll_once,
    runtimes::{all_kinds_unpreempted, one_thread, workers},
    watchdog,
};

/// The number of operations that one poll may complete.
const BUDGET: usize = 128;

/// Completes `operations` operations and returns the number of polls that took.
async fn polls_for<F: Future>(operations: usize, operation: impl Fn() -> F) -> usize {
    let mut polls = 0;
    let mut all = pin!(async {
        for _ in 0..operations {
            operation().await;
        }
    });
    poll_fn(|cx| {
        polls += 1;
        all.as_mut().poll(cx)
    })
    .await;
    polls
}

/// Runs a future as a task and as the future of `block_on`, on every kind of runtime.
fn everywhere<F>(fact: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    for rt in all_kinds_unpreempted() {
        rt.block_on(rt.spawn(fact())).unwrap();
        rt.block_on(fact());
        rt.handle().block_on(fact());
    }
}

#[test]
fn a_poll_completes_128_operations_and_no_more() {
    let _watch = watchdog::start();
    everywhere(|| async {
        assert_eq!(polls_for(BUDGET, task::consume_budget).await, 1);
        yield_now().await;
        assert_eq!(polls_for(BUDGET + 1, task::consume_budget).await, 2);
        yield_now().await;
        assert_eq!(polls_for(10 * BUDGET, coop::consume_budget).await, 10);
    });
}

#[test]
fn nothing_remains_after_128_operations_until_the_next_poll() {
    let _watch = watchdog::start();
    everywhere(|| async {
        assert!(coop::has_budget_remaining());
        for _ in 0..BUDGET {
            assert!(coop::has_budget_remaining());
            task::consume_budget().await;
        }
        assert!(!coop::has_budget_remaining());
        yield_now().await;
        assert!(coop::has_budget_remaining());
    });
}

#[test]
fn outside_of_a_runtime_there_is_no_limit() {
    let _watch = watchdog::start();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..10 * BUDGET {
        assert!(coop::has_budget_remaining());
        let Poll::Ready(unit) = coop::poll_proceed(&mut cx) else { panic!("a limit") };
        unit.made_progress();
        assert!(pin!(task::consume_budget()).poll(&mut cx).is_ready());
    }
}

#[test]
fn joining_what_has_ended_costs_a_unit() {
    let _watch = watchdog::start();
    for rt in [one_thread(), workers(1)] {
        let tasks: Vec<_> = (0..3 * BUDGET).map(|n| rt.spawn(async move { n })).collect();
        crate::support::runtimes::run_until(&rt, {
            let ends: Vec<_> = tasks.iter().map(|task| task.abort_handle()).collect();
            move || ends.iter().all(|end| end.is_finished())
        });
        let tasks = std::cell::RefCell::new(tasks);
        let next = || {
            let task = tasks.borrow_mut().pop().expect("enough of them");
            async { task.await.unwrap() }
        };
        assert_eq!(rt.block_on(polls_for(3 * BUDGET, next)), 3);
    }
}

#[test]
fn an_operation_that_is_not_ready_costs_nothing() {
    let _watch = watchdog::start();
    everywhere(|| {
        poll_fn(|cx| {
            for _ in 0..10 * BUDGET {
                drop(ready_unit(cx));
                assert!(
                    pin!(coop::cooperative(std::future::pending::<()>())).poll(cx).is_pending()
                );
            }
            assert!(coop::has_budget_remaining());
            Poll::Ready(())
        })
    });
}

fn ready_unit(cx: &mut Context<'_>) -> RestoreOnPending {
    match coop::poll_proceed(cx) {
        Poll::Ready(unit) => unit,
        Poll::Pending => panic!("there was budget"),
    }
}

#[test]
fn a_unit_counts_when_it_made_progress_and_goes_back_when_not() {
    let _watch = watchdog::start();
    everywhere(|| {
        poll_fn(|cx| {
            for _ in 0..BUDGET - 1 {
                ready_unit(cx).made_progress();
            }
            let last = ready_unit(cx);
            assert!(!coop::has_budget_remaining());
            drop(last);
            assert!(coop::has_budget_remaining());
            ready_unit(cx).made_progress();
            assert!(!coop::has_budget_remaining());
            Poll::Ready(())
        })
    });
}

#[test]
fn a_cooperative_future_is_not_polled_without_budget() {
    let _watch = watchdog::start();
    everywhere(|| async {
        assert_eq!(polls_for(10 * BUDGET, || coop::cooperative(ready(()))).await, 10);
        yield_now().await;
        for _ in 0..BUDGET {
            task::consume_budget().await;
        }
        let polled = AtomicUsize::new(0);
        let mut future = pin!(coop::cooperative(poll_fn(|_| {
            polled.fetch_add(1, Relaxed);
            Poll::Ready(7)
        })));
        let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        assert!(first.is_pending());
        assert_eq!(polled.load(Relaxed), 0);
        yield_now().await;
        assert_eq!(future.await, 7);
    });
}

#[test]
fn the_unconstrained_never_yields_and_costs_its_task_nothing() {
    let _watch = watchdog::start();
    everywhere(|| async {
        let free = || task::unconstrained(async { polls_for(1_000, task::consume_budget).await });
        assert_eq!(free().await, 1);
        assert_eq!(polls_for(BUDGET, task::consume_budget).await, 1, "nothing was taken");
        assert!(!coop::has_budget_remaining());
        assert_eq!(free().await, 1, "it needs none");
        assert!(!coop::has_budget_remaining(), "and gives none");
    });
}

#[test]
fn a_unit_of_the_unconstrained_gives_nothing_to_others() {
    let _watch = watchdog::start();
    everywhere(|| {
        poll_fn(|cx| {
            let mut free = pin!(task::unconstrained(poll_fn(coop::poll_proceed)));
            let Poll::Ready(unit) = free.as_mut().poll(cx) else { panic!("no limit there") };
            for _ in 0..BUDGET {
                ready_unit(cx).made_progress();
            }
            drop(unit);
            assert!(!coop::has_budget_remaining());
            Poll::Ready(())
        })
    });
}

/// Returns how often another task of `rt` ran while one completed `operations` in a row.
fn turns_of_another<F>(rt: &Runtime, operations: usize, operation: fn() -> F) -> usize
where
    F: Future + Send + 'static,
{
    let turns = Arc::new(AtomicUsize::new(0));
    rt.block_on(rt.spawn(async move {
        let seen = turns.clone();
        let other = task::spawn(async move {
            loop {
                seen.fetch_add(1, Relaxed);
                yield_now().await;
            }
        });
        for _ in 0..operations {
            operation().await;
        }
        other.abort();
        turns.load(Relaxed)
    }))
    .unwrap()
}

#[test]
fn a_task_that_uses_its_budget_up_lets_others_run() {
    let _watch = watchdog::start();
    for rt in [one_thread(), workers(1)] {
        // The first 128 operations complete before the other task has its first turn.
        assert_eq!(turns_of_another(&rt, 10 * BUDGET, task::consume_budget), 9);
        assert_eq!(turns_of_another(&rt, 10 * BUDGET, || coop::cooperative(ready(()))), 9);
        let free = || task::unconstrained(task::consume_budget());
        assert_eq!(turns_of_another(&rt, 10 * BUDGET, free), 0);
    }
}

#[test]
fn a_block_on_that_uses_its_budget_up_lets_tasks_run() {
    let _watch = watchdog::start();
    let rt = one_thread();
    rt.block_on(async {
        let task = task::spawn(async {});
        for _ in 0..BUDGET {
            assert!(!task.is_finished());
            task::consume_budget().await;
        }
        task::consume_budget().await;
        assert!(task.is_finished());
    });
}

#[test]
fn each_forced_yield_is_counted_once() {
    let _watch = watchdog::start();
    for rt in all_kinds_unpreempted() {
        let metrics = rt.metrics();
        let before = || metrics.budget_forced_yield_count();
        assert_eq!(before(), 0);
        rt.block_on(async { polls_for(BUDGET, task::consume_budget).await });
        assert_eq!(before(), 0, "one that used all and wanted no more was not forced");
        rt.block_on(async { polls_for(BUDGET + 1, task::consume_budget).await });
        assert_eq!(before(), 1);
        rt.handle().block_on(async { polls_for(BUDGET + 1, task::consume_budget).await });
        assert_eq!(before(), 2);
        rt.block_on(rt.spawn(async { polls_for(10 * BUDGET, task::consume_budget).await }))
            .unwrap();
        assert_eq!(before(), 11);
        rt.block_on(rt.spawn(async { yield_now().await })).unwrap();
        assert_eq!(before(), 11, "this one wanted to");
    }
}

#[test]
fn many_refusals_in_one_poll_are_one_forced_yield() {
    let _watch = watchdog::start();
    let rt = one_thread();
    let refused = Cell::new(0);
    rt.block_on(poll_fn(|cx| {
        if refused.get() > 0 {
            return Poll::Ready(());
        }
        while coop::poll_proceed(cx).map(|unit| unit.made_progress()).is_ready() {}
        for _ in 0..10 {
            assert!(coop::poll_proceed(cx).is_pending());
            assert!(coop::poll_budget_available(cx).is_pending());
            refused.set(refused.get() + 1);
        }
        Poll::Pending
    }));
    assert_eq!(refused.get(), 10);
    assert_eq!(rt.metrics().budget_forced_yield_count(), 1);
}

#[test]
fn a_refusal_wakes_the_waker_it_was_polled_with() {
    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let _watch = watchdog::start();
    everywhere(|| async {
        for _ in 0..BUDGET {
            task::consume_budget().await;
        }
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let mut refused = Box::pin(task::consume_budget());
        assert!(crate::support::manual_poll::poll_with(&mut refused, &waker).is_pending());
        assert_eq!(count.0.load(Relaxed), 1);
        assert!(poll_once(&mut refused).is_pending());
    });
}

#[test]
fn an_aborted_task_that_never_waits_ends_at_its_budget() {
    let _watch = watchdog::start();
    for rt in all_kinds_unpreempted() {
        let busy = rt.spawn(async {
            loop {
                task::consume_budget().await;
            }
        });
        rt.block_on(rt.spawn(async {})).unwrap();
        busy.abort();
        assert!(rt.block_on(busy).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_budget_does_not_leave_the_poll_that_panicked() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let task = rt.spawn(async {
        task::unconstrained(async { std::panic::resume_unwind(Box::new(())) }).await
    });
    rt.block_on(task).unwrap_err();
    let polls = rt.block_on(rt.spawn(async { polls_for(BUDGET + 1, task::consume_budget).await }));
    assert_eq!(polls.unwrap(), 2);
}

#[test]
fn the_marker_traits_are_tokios() {
    type Fut = std::future::Ready<u8>;
    assert!(!has!(RestoreOnPending: Send) && !has!(RestoreOnPending: Sync));
    assert!(has!(RestoreOnPending: Unpin));
    assert!(has!(RestoreOnPending: std::panic::UnwindSafe));
    assert!(!has!(RestoreOnPending: std::panic::RefUnwindSafe));
    assert!(has!(Coop<Fut>: Send) && has!(Coop<Fut>: Sync) && has!(Coop<Fut>: Unpin));
    assert!(!has!(Coop<std::future::Ready<std::rc::Rc<u8>>>: Send));
    assert!(has!(Unconstrained<Fut>: Send) && has!(Unconstrained<Fut>: Unpin));
    assert!(!has!(Unconstrained<std::marker::PhantomPinned>: Unpin));
}
