//! Ends join sets, trackers and scopes in every way.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    thread,
};

use blitz_io::task::{self, JoinSet, TaskTracker, yield_now};

use crate::{
    ON_PURPOSE, Scenario, panics,
    support::{
        gate::Gate,
        manual_poll::poll_once,
        runtimes::{all_kinds, run_until, workers},
    },
    tasks::for_ever,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("a join set, joined one by one", set_joined),
    ("a join set, shut down", set_shut_down),
    ("a join set, dropped in every state of its tasks", set_dropped),
    ("a join set, detached", set_detached),
    ("a join set, join_all with and without a panic", set_join_all),
    ("a join set whose runtime is gone", set_after_the_end),
    ("a join set that is polled and left", set_left),
    ("a tracker, waited for", tracker_waited),
    ("a tracker, left with tasks and waiters", tracker_left),
    ("a scope that completes", scope_completes),
    ("a scope whose child or body panics", scope_panics),
    ("a scope that is dropped", scope_dropped),
    ("a scope whose runtime is gone", scope_after_the_end),
];

async fn text(n: usize) -> String {
    for _ in 0..n % 3 {
        yield_now().await;
    }
    n.to_string()
}

fn set_joined() {
    for rt in all_kinds() {
        rt.block_on(async {
            let mut set: JoinSet<String> = (0..30).map(text).collect();
            set.build_task().name("named").spawn(text(30)).unwrap();
            set.spawn(async { panic!("{ON_PURPOSE}") });
            set.spawn(async {
                for_ever().await;
                String::new()
            })
            .abort();
            let mut count = 0;
            while let Some(outcome) = set.join_next_with_id().await {
                drop(outcome);
                count += 1;
            }
            assert_eq!((count, set.try_join_next().is_none()), (33, true));
            set.spawn(text(1));
            assert!(set.join_next().await.unwrap().is_ok());
        });
    }
}

fn set_shut_down() {
    for rt in all_kinds() {
        rt.block_on(async {
            let mut set: JoinSet<()> = (0..20).map(|_| for_ever()).collect();
            yield_now().await;
            set.abort_all();
            set.spawn(for_ever());
            set.shutdown().await;
            assert!(set.is_empty());
        });
    }
}

fn set_dropped() {
    for rt in all_kinds() {
        let mut set = JoinSet::new();
        let mut ended = Vec::new();
        for n in 0..20 {
            ended.push(set.spawn_on(text(n), rt.handle()));
        }
        run_until(&rt, move || ended.iter().all(|task| task.is_finished()));
        let idle = Gate::new();
        for _ in 0..20 {
            let opened = idle.opened();
            set.spawn_on(
                async move {
                    opened.await;
                    String::new()
                },
                rt.handle(),
            );
        }
        let waits = idle.clone();
        run_until(&rt, move || waits.waiting() == 20);
        for _ in 0..20 {
            set.spawn_on(text(2), rt.handle());
        }
        drop(set);
    }
}

fn set_detached() {
    for rt in all_kinds() {
        let (mut set, gate) = (JoinSet::new(), Gate::new());
        for _ in 0..10 {
            set.spawn_on(gate.opened(), rt.handle());
        }
        set.spawn_on(for_ever(), rt.handle());
        set.detach_all();
        assert!(set.is_empty());
        gate.open();
        let handle = rt.handle().clone();
        // The task that checks this, and the one that waits for ever.
        run_until(&rt, move || handle.metrics().num_alive_tasks() == 2);
    }
}

fn set_join_all() {
    for rt in all_kinds() {
        let all = rt.block_on(async { (0..20).map(text).collect::<JoinSet<_>>().join_all().await });
        assert_eq!(all.len(), 20);
        panics(|| {
            rt.block_on(async {
                let mut set: JoinSet<_> = (0..20).map(text).collect();
                set.spawn(async { panic!("{ON_PURPOSE}") });
                set.join_all().await
            })
        });
    }
}

fn set_after_the_end() {
    for rt in all_kinds() {
        let (mut set, handle) = (JoinSet::new(), rt.handle().clone());
        let ended = set.spawn_on(text(0), &handle);
        run_until(&rt, move || ended.is_finished());
        for _ in 0..5 {
            set.spawn_on(text(2), &handle);
        }
        drop(rt);
        set.spawn_on(text(1), &handle);
        let other = workers(1);
        other.block_on(async {
            // Some members are joined, the others are dropped with the set.
            for _ in 0..4 {
                drop(set.join_next().await.unwrap());
            }
        });
    }
}

fn set_left() {
    for rt in all_kinds() {
        // A cycle: the set has the waker of the task that owns the set.
        let task = rt.spawn(async {
            let mut set: JoinSet<()> = (0..3).map(|_| for_ever()).collect();
            set.join_next().await;
        });
        rt.block_on(rt.spawn(async {})).unwrap();
        task.abort();
        let mut set: JoinSet<()> = JoinSet::new();
        set.spawn_on(for_ever(), rt.handle());
        for waker in [std::task::Waker::noop().clone(), std::task::Waker::noop().clone()] {
            let _ = set.poll_join_next(&mut std::task::Context::from_waker(&waker));
        }
        rt.spawn(async move { set.join_next().await.map(drop) });
    }
}

fn tracker_waited() {
    for rt in all_kinds() {
        let tracker = TaskTracker::new();
        for n in 0..10 {
            drop(tracker.spawn_on(text(n), rt.handle()));
        }
        tracker.spawn_on(for_ever(), rt.handle()).abort();
        tracker.spawn_on(async { panic!("{ON_PURPOSE}") }, rt.handle());
        let (token, other) = (tracker.token(), tracker.clone());
        let waiter = rt.spawn(async move { other.wait().await });
        let tracked = rt.spawn(tracker.track_future(text(3)));
        tracker.close();
        drop(token);
        rt.block_on(async {
            tracked.await.unwrap();
            tracker.wait().await;
            waiter.await.unwrap();
        });
    }
}

fn tracker_left() {
    for rt in all_kinds() {
        let tracker = TaskTracker::new();
        tracker.spawn_on(for_ever(), rt.handle());
        let mut wait = Box::pin(tracker.wait());
        assert!(poll_once(&mut wait).is_pending());
        let own = tracker.clone();
        // A cycle: the tracker has the waker of a task that owns the tracker.
        let circle = rt.spawn(async move {
            let _token = own.token();
            own.wait().await;
        });
        rt.block_on(rt.spawn(async {})).unwrap();
        drop(circle);
    }
}

fn scope_completes() {
    for rt in all_kinds() {
        let output = rt.block_on(task::scope(|scope| async move {
            for n in 0..10 {
                let inner = scope.clone();
                scope.spawn(async move {
                    drop(inner.spawn(text(n)));
                    text(n + 1).await
                });
            }
            scope.spawn(for_ever()).abort();
            let joined = scope.spawn(text(5)).await.unwrap();
            let handle = blitz_io::runtime::Handle::current();
            scope.spawn_on(text(7), &handle);
            joined
        }));
        assert_eq!(output, "5");
        // A scope handle that outlives the scope's end, and a scope that is never polled.
        let late = rt.block_on(task::scope(|scope| async move { scope }));
        let entered = rt.enter();
        drop(late.spawn(for_ever()));
        drop(task::scope(|_| for_ever()));
        drop(entered);
    }
}

fn scope_panics() {
    for rt in all_kinds() {
        panics(|| {
            rt.block_on(task::scope(|scope| async move {
                scope.spawn(for_ever());
                scope.spawn(async { panic!("{ON_PURPOSE}") });
                scope.spawn(async { panic!("{ON_PURPOSE} too") });
                for_ever().await;
            }))
        });
        panics(|| {
            rt.block_on(task::scope(|scope| async move {
                scope.spawn(for_ever());
                yield_now().await;
                panic!("{ON_PURPOSE}");
            }))
        });
    }
}

fn scope_dropped() {
    for rt in all_kinds() {
        rt.block_on(async {
            let mut scope = pin!(task::scope(|scope| async move {
                for _ in 0..5 {
                    let inner = scope.clone();
                    scope.spawn(async move {
                        inner.spawn(for_ever());
                        for_ever().await;
                    });
                }
                for_ever().await;
            }));
            poll_fn(|cx| Poll::Ready(scope.as_mut().poll(cx).is_pending())).await;
            yield_now().await;
        });
        let aborted = rt.spawn(task::scope(|scope| async move {
            scope.spawn(for_ever());
            for_ever().await;
        }));
        rt.block_on(rt.spawn(async {})).unwrap();
        aborted.abort();
        drop(rt.block_on(aborted));
    }
}

fn scope_after_the_end() {
    for rt in all_kinds() {
        let other = workers(1);
        let handle = other.handle().clone();
        rt.block_on(task::scope(|scope| async move {
            scope.spawn_on(for_ever(), &handle);
            thread::spawn(move || drop(other)).join().unwrap();
            assert!(scope.spawn_on(for_ever(), &handle).await.unwrap_err().is_cancelled());
        }));
        // A scope whose own runtime ends first.
        rt.spawn(task::scope(|scope| async move {
            scope.spawn(for_ever());
            for_ever().await;
        }));
        rt.block_on(rt.spawn(async {})).unwrap();
    }
}
