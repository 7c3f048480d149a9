//! Tests `task::scope`: no task that was spawned in a scope goes on after it.

use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use blitz_io::task::{self, Scope};

use crate::support::{
    caught_panic,
    drop_tally::Tally,
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{all_kinds, run_until, workers},
    watchdog,
};

#[test]
fn a_scope_completes_after_children_that_are_not_awaited() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (tally, ended) = (Tally::new(), Arc::new(AtomicUsize::new(0)));
        let (inside, count) = (tally.clone(), ended.clone());
        let output = rt.block_on(task::scope(|scope| async move {
            for n in 0..50 {
                let (token, count) = (inside.token(), count.clone());
                scope.spawn(async move {
                    for _ in 0..n % 4 {
                        task::yield_now().await;
                    }
                    token.keep();
                    count.fetch_add(1, Relaxed);
                });
            }
            "the body's"
        }));
        assert_eq!((output, ended.load(Relaxed)), ("the body's", 50));
        tally.assert_all_dropped(50);
    }
}

fn descend(scope: &Scope, depth: usize, count: Arc<AtomicUsize>) {
    let inner = scope.clone();
    scope.spawn(async move {
        task::yield_now().await;
        count.fetch_add(1, Relaxed);
        if depth > 0 {
            descend(&inner, depth - 1, count.clone());
            descend(&inner, depth - 1, count);
        }
    });
}

#[test]
fn children_of_children_are_awaited_though_the_body_is_over() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let count = Arc::new(AtomicUsize::new(0));
        let inside = count.clone();
        rt.block_on(task::scope(|scope| async move { descend(&scope, 6, inside) }));
        assert_eq!(count.load(Relaxed), 127);
    }
}

#[test]
fn the_panic_of_a_child_ends_the_body_and_the_others_and_then_goes_on() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let inside = tally.clone();
        let panic = caught_panic::panic_of(|| {
            rt.block_on(task::scope(|scope| async move {
                let (of_body, of_child) = (inside.token(), inside.token());
                scope.spawn(async move {
                    pending::<()>().await;
                    of_child.keep();
                });
                scope.spawn(async { panic!("a child's panic") });
                pending::<()>().await;
                of_body.keep();
            }))
        });
        panic.says(&["a child's panic"]);
        tally.assert_all_dropped(2);
    }
}

#[test]
fn the_panic_of_the_body_goes_on_when_the_children_have_ended() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let inside = tally.clone();
        let panic = caught_panic::panic_of(|| {
            rt.block_on(task::scope(|scope| async move {
                let token = inside.token();
                scope.spawn(async move {
                    pending::<()>().await;
                    token.keep();
                });
                task::yield_now().await;
                if !inside.made().is_multiple_of(2) {
                    panic!("the body's panic");
                }
            }))
        });
        panic.says(&["the body's panic"]);
        tally.assert_all_dropped(1);
    }
}

#[test]
fn the_first_panic_is_resumed() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let panic = caught_panic::panic_of(|| {
        rt.block_on(task::scope(|scope| async move {
            let first = scope.spawn(async { panic!("the first") });
            scope.spawn(async move {
                let _ = first.await;
                panic!("the second");
            });
        }))
    });
    panic.says(&["the first"]);
}

#[test]
fn the_handle_of_a_child_that_panicked_refers_to_the_scope() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let outside: Arc<Mutex<Option<task::JoinHandle<()>>>> = Arc::default();
    let slot = outside.clone();
    caught_panic::panic_of(|| {
        rt.block_on(task::scope(|scope| async move {
            *slot.lock().unwrap() = Some(scope.spawn(async { panic!("a child's panic") }));
        }))
    });
    let handle = outside.lock().unwrap().take().unwrap();
    let error = rt.block_on(handle).unwrap_err();
    assert!(caught_panic::message(&*error.into_panic()).contains("its scope has the panic"));
}

#[test]
fn dropping_a_scope_aborts_all_of_its_children() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (tally, gate) = (Tally::new(), Gate::new());
        let (inside, begun) = (tally.clone(), gate.clone());
        rt.block_on(async {
            let mut scope = pin!(task::scope(|scope| async move {
                for _ in 0..20 {
                    let (token, inner, tally) = (inside.token(), scope.clone(), inside.clone());
                    scope.spawn(async move {
                        let of_grandchild = tally.token();
                        inner.spawn(async move {
                            pending::<()>().await;
                            of_grandchild.keep();
                        });
                        pending::<()>().await;
                        token.keep();
                    });
                }
                begun.open();
                pending::<()>().await;
            }));
            poll_fn(|cx| {
                assert!(scope.as_mut().poll(cx).is_pending());
                if gate.is_open() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        });
        let dropped = tally.clone();
        run_until(&rt, move || dropped.made() == dropped.dropped());
        assert!(tally.made() >= 20);
    }
}

#[test]
fn an_aborted_child_does_not_trouble_the_scope() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let output = rt.block_on(task::scope(|scope| async move {
        let child = scope.spawn(pending::<()>());
        child.abort();
        assert!(child.await.unwrap_err().is_cancelled());
        scope.spawn(pending::<()>());
        scope.abort_all();
        scope.spawn(async { 3 }).await.unwrap()
    }));
    assert_eq!(output, 3);
}

#[test]
fn a_child_that_comes_too_late_never_begins() {
    let _watch = watchdog::start();
    let rt = workers(2);
    rt.block_on(async {
        let scope = task::scope(|scope| async move { scope }).await;
        let late = scope.spawn(async { unreachable!("it began") });
        assert!(late.await.unwrap_err().is_cancelled());
        assert_eq!(format!("{scope:?}"), "Scope { children: 0, .. }");
    });
}

#[test]
fn scopes_nest_and_the_inner_panic_reaches_the_outer() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let panic = caught_panic::panic_of(|| {
        rt.block_on(task::scope(|outer| async move {
            outer.spawn(task::scope(|inner| async move {
                inner.spawn(async { panic!("deep inside") });
                pending::<()>().await;
            }));
            pending::<()>().await;
        }))
    });
    panic.says(&["deep inside"]);
}

#[test]
fn a_scope_without_children_is_its_body() {
    assert_eq!(poll_once(&mut Box::pin(task::scope(|_| async { 1 }))), Poll::Ready(1));
    let without_runtime = caught_panic::panic_of(|| {
        poll_once(&mut Box::pin(task::scope(|scope| async move { drop(scope.spawn(async {})) })))
    });
    without_runtime.says(&["no runtime on this thread"]);
}

#[test]
fn children_end_with_their_runtime_and_so_does_the_wait_for_them() {
    let _watch = watchdog::start();
    let (rt, other) = (workers(1), workers(1));
    let handle = other.handle().clone();
    rt.block_on(task::scope(|scope| async move {
        scope.spawn_on(pending::<()>(), &handle);
        std::thread::spawn(move || drop(other)).join().unwrap();
        assert!(scope.spawn_on(pending::<()>(), &handle).await.unwrap_err().is_cancelled());
    }));
}
