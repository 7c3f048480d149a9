//! Tests graceful shutdown: every task is notified, waited for, and named if it does not end.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::Runtime,
    shutdown::{Phase, Shutdown},
    sync::Notify,
    task,
};

use crate::support::{
    caught_panic, drop_tally::Tally, gate::Gate, manual_poll::poll_once,
    runtimes::all_kinds_with_drivers, watchdog,
};

/// A time so long that no test waits until it is over.
const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_drain_notifies_all_tasks_and_waits_for_them() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (shutdown, tally) = (Shutdown::new(), Tally::new());
        for _ in 0..100 {
            let token = tally.token();
            let task = async move |stop: blitz_io::sync::CancellationToken| {
                stop.cancelled().await;
                task::yield_now().await;
                token.keep();
            };
            let _inside = rt.enter();
            shutdown.spawn_with(task);
        }
        assert_eq!((shutdown.len(), shutdown.has_begun()), (100, false));
        let report = rt.block_on(shutdown.drain(LONG));
        tally.assert_all_dropped(100);
        assert!(report.is_clean() && shutdown.is_empty() && shutdown.has_begun());
        assert_eq!(report.finished, 100);
        assert!(report.to_string().starts_with("100 tasks finished in "), "{report}");
    }
}

#[test]
fn tasks_that_ended_before_are_not_counted() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let shutdown = Shutdown::new();
        rt.block_on(shutdown.spawn_on(async {}, rt.handle())).unwrap();
        assert_eq!(rt.block_on(shutdown.drain(LONG)).finished, 0);
    }
}

#[test]
fn remaining_tasks_are_aborted_and_named() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        watchdog::until(|| aborts_and_names_what_is_left(&rt));
    }
}

/// Drains `rt` and checks the report. Returns `false` if the aborted tasks got no processor in the
/// time for which the drain waits for them.
fn aborts_and_names_what_is_left(rt: &Runtime) -> bool {
    let (shutdown, tally) = (Shutdown::new(), Tally::new());
    let token = tally.token();
    let deaf = {
        let _inside = rt.enter();
        shutdown.spawn_named("deaf", async move {
            blitz_io::time::sleep(LONG).await;
            token.keep();
        })
    };
    let line = line!() - 5;
    let notice = Arc::new(Notify::new());
    let waits = shutdown.spawn_on(async move { notice.notified().await }, rt.handle());
    let good = shutdown.spawn_on(shutdown.token().cancelled_owned(), rt.handle());
    // Runs until they wait, because that is what the report says about them.
    let ids = [deaf.id(), waits.id()];
    let handle = rt.handle().clone();
    rt.block_on(async {
        while handle
            .dump_now()
            .tasks()
            .iter()
            .filter(|task| ids.contains(&task.id()) && task.trace().waits_for().is_some())
            .count()
            < 2
        {
            task::yield_now().await;
        }
    });
    let mut progress = shutdown.progress();
    let report = rt.block_on(async {
        let cut = async {
            drop(progress.wait_for(|now| now.remaining == 2).await.unwrap());
            shutdown.cut_short();
        };
        blitz_io::join!(shutdown.drain(LONG), cut).0
    });
    if report.aborted.iter().any(|left| !left.has_ended()) {
        return false;
    }
    tally.assert_all_dropped(1);
    assert_eq!((report.finished, report.aborted.len()), (1, 2), "{report}");
    let (first, second) = (&report.aborted[0], &report.aborted[1]);
    assert_eq!((first.name(), second.name()), (Some("deaf"), None));
    assert_eq!((first.id(), second.id()), (Some(ids[0]), Some(ids[1])));
    assert!(first.spawned_at().file().ends_with("graceful.rs"));
    assert_eq!(first.spawned_at().line(), line);
    assert!(first.waits_for().unwrap().contains("a time"), "{report}");
    assert!(second.waits_for().unwrap().contains("Notify"), "{report}");
    let text = report.to_string();
    for part in ["1 task finished, 2 aborted in ", "\"deaf\"", "graceful.rs:", "waits for a time"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(!text.contains("still not ended"), "{text}");
    assert!(rt.block_on(deaf).unwrap_err().is_cancelled());
    assert!(rt.block_on(waits).unwrap_err().is_cancelled());
    rt.block_on(good).unwrap();
    true
}

#[test]
fn a_second_trigger_ends_it_at_once() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let shutdown = Shutdown::new();
        shutdown.spawn_on(pending::<()>(), rt.handle());
        shutdown.trigger();
        assert!(shutdown.has_begun());
        let again = shutdown.clone();
        let report = rt.block_on(async {
            blitz_io::join!(shutdown.drain(LONG), async {
                task::yield_now().await;
                again.trigger();
            })
            .0
        });
        assert_eq!(report.aborted.len(), 1);
    }
}

#[test]
fn events_from_any_source_are_triggers() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let shutdown = Shutdown::new();
        shutdown.spawn_on(pending::<()>(), rt.handle());
        let events = [Arc::new(Notify::new()), Arc::new(Notify::new())];
        for event in &events {
            let event = event.clone();
            let _inside = rt.enter();
            shutdown.on(move || {
                let event = event.clone();
                async move { event.notified().await }
            });
        }
        assert_eq!(shutdown.len(), 1, "those that wait for events are no members");
        events[0].notify_one();
        rt.block_on(shutdown.begun());
        events[1].notify_one();
        let report = rt.block_on(shutdown.drain(LONG));
        assert_eq!(report.aborted.len(), 1);
        // No task waits for events any more.
        let handle = rt.handle().clone();
        rt.block_on(async {
            while handle.dump_now().tasks().iter().count() > 0 {
                task::yield_now().await;
            }
        });
    }
}

#[test]
fn an_event_that_is_always_ready_does_not_spin() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (shutdown, calls) = (Shutdown::new(), Arc::new(AtomicUsize::new(0)));
        let counted = calls.clone();
        {
            let _inside = rt.enter();
            shutdown.on(move || {
                counted.fetch_add(1, Relaxed);
                async {}
            });
        }
        assert!(rt.block_on(shutdown.drain(LONG)).is_clean());
        assert!(calls.load(Relaxed) <= 2);
    }
}

#[test]
fn a_member_may_spawn_while_it_drains_and_that_is_waited_for() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (shutdown, tally) = (Shutdown::new(), Tally::new());
        let (inner, token) = (shutdown.clone(), tally.token());
        let _inside = rt.enter();
        shutdown.spawn_with(async move |stop| {
            stop.cancelled().await;
            inner.clone().spawn(async move {
                task::yield_now().await;
                assert!(inner.token().is_cancelled(), "it is cancelled from the beginning");
                inner.spawn(async move {
                    task::yield_now().await;
                    token.keep();
                });
            });
        });
        drop(_inside);
        let report = rt.block_on(shutdown.drain(LONG));
        tally.assert_all_dropped(1);
        assert_eq!(report.finished, 3);
    }
}

#[test]
fn after_a_drain_no_task_is_admitted() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (shutdown, tally) = (Shutdown::new(), Tally::new());
        rt.block_on(shutdown.drain(LONG));
        let token = tally.token();
        let late = shutdown.spawn_on(async move { token.keep() }, rt.handle());
        tally.assert_all_dropped(1);
        assert!(rt.block_on(late).unwrap_err().is_cancelled());
        let token = tally.token();
        let late = rt.block_on(async { shutdown.spawn_blocking(move || token.keep()) });
        tally.assert_all_dropped(2);
        assert!(rt.block_on(late).unwrap_err().is_cancelled());
        assert!(shutdown.is_empty());
    }
}

/// Each spawn is either run to its end and waited for, or refused; never both, and never neither.
#[test]
fn spawns_from_everywhere_against_the_end_are_waited_for_or_refused() {
    let _watch = watchdog::start();
    for round in 0..30 {
        for rt in all_kinds_with_drivers() {
            let (shutdown, done) = (Shutdown::new(), Arc::new(AtomicUsize::new(0)));
            let spawners: Vec<_> = (0..3)
                .map(|_| {
                    let (shutdown, done) = (shutdown.clone(), done.clone());
                    let handle = rt.handle().clone();
                    thread::spawn(move || {
                        let mut tasks = Vec::new();
                        let mut refused = 0;
                        while refused < 3 {
                            let over = shutdown.progress().borrow().phase == Phase::Over;
                            if tasks.len() > 200 && !over {
                                // Without this limit there might always be a task that is not done.
                                thread::yield_now();
                                continue;
                            }
                            refused += usize::from(over);
                            let done = done.clone();
                            let task = shutdown.spawn_on(
                                async move {
                                    task::yield_now().await;
                                    done.fetch_add(1, Relaxed);
                                },
                                &handle,
                            );
                            tasks.push(task);
                            if tasks.len() % 16 == round % 16 {
                                thread::yield_now();
                            }
                        }
                        tasks
                    })
                })
                .collect();
            let report = rt.block_on(shutdown.drain(LONG));
            let seen = done.load(Relaxed);
            assert!(report.is_clean(), "{report}");
            let (mut ran, mut refused) = (0, 0);
            for spawner in spawners {
                for task in spawner.join().unwrap() {
                    match rt.block_on(task) {
                        Ok(()) => ran += 1,
                        Err(error) => {
                            assert!(error.is_cancelled());
                            refused += 1;
                        }
                    }
                }
            }
            assert!(refused >= 9);
            assert_eq!(ran, done.load(Relaxed));
            assert_eq!(seen, ran, "the drain did not wait for one that was let in");
        }
    }
}

#[test]
fn spawns_from_everywhere_against_the_deadline_end() {
    let _watch = watchdog::start();
    for _ in 0..30 {
        for rt in all_kinds_with_drivers() {
            let (shutdown, tally) = (Shutdown::new(), Tally::new());
            let spawners: Vec<_> = (0..3)
                .map(|_| {
                    let (shutdown, tally) = (shutdown.clone(), tally.clone());
                    let handle = rt.handle().clone();
                    thread::spawn(move || {
                        let mut tasks = Vec::new();
                        while shutdown.progress().borrow().phase < Phase::Over {
                            if tasks.len() > 200 {
                                thread::yield_now();
                                continue;
                            }
                            let token = tally.token();
                            let deaf = async move {
                                pending::<()>().await;
                                token.keep();
                            };
                            tasks.push(shutdown.spawn_on(deaf, &handle));
                        }
                        tasks
                    })
                })
                .collect();
            while shutdown.is_empty() {
                thread::yield_now();
            }
            shutdown.cut_short();
            let report = rt.block_on(shutdown.drain(LONG));
            let mut cancelled = 0;
            for spawner in spawners {
                for task in spawner.join().unwrap() {
                    assert!(rt.block_on(task).unwrap_err().is_cancelled());
                    cancelled += 1;
                }
            }
            assert!(report.aborted.len() <= cancelled);
            tally.assert_all_dropped(cancelled);
            assert!(shutdown.is_empty());
        }
    }
}

#[test]
fn progress_goes_down_and_ends() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let shutdown = Shutdown::new();
        let gates: Vec<_> = (0..5).map(|_| Gate::new()).collect();
        for gate in &gates {
            shutdown.spawn_on(gate.opened(), rt.handle());
        }
        let mut progress = shutdown.progress();
        assert_eq!(progress.borrow().phase, Phase::Running);
        shutdown.begin();
        progress.mark_unchanged();
        assert_eq!(progress.borrow().to_string(), "draining: 5 tasks left");
        rt.block_on(async {
            for (count, gate) in gates.iter().enumerate() {
                gate.open();
                let now = progress.wait_for(|now| now.remaining == 4 - count).await.unwrap();
                assert_eq!(now.phase, Phase::Draining);
            }
            shutdown.drain(LONG).await;
        });
        assert_eq!(progress.borrow().to_string(), "over: 0 tasks left");
    }
}

#[test]
fn a_stuck_task_is_named_and_does_not_hold_up_the_drain() {
    let _watch = watchdog::start();
    // The task blocks a thread for good, so the runtime must have another one.
    let rt = crate::support::runtimes::all_kinds_with_drivers().pop().unwrap();
    let (shutdown, inside, go_on) = (Shutdown::new(), Gate::new(), Gate::new());
    let (entered, wait) = (inside.clone(), go_on.clone());
    let stuck = shutdown.spawn_on(
        async move {
            entered.open();
            wait.block();
        },
        rt.handle(),
    );
    inside.block();
    shutdown.cut_short();
    let report = rt.block_on(shutdown.drain(LONG));
    assert_eq!(report.aborted.len(), 1);
    assert_eq!(report.aborted[0].id(), Some(stuck.id()));
    assert!(!report.aborted[0].has_ended());
    assert!(report.to_string().contains("running for"), "{report}");
    assert!(report.to_string().contains("still not ended"), "{report}");
    go_on.open();
    // The task ended by itself, in the poll in which it was aborted.
    rt.block_on(stuck).ok();
    let report = rt.block_on(shutdown.drain(LONG));
    assert_eq!((report.finished, report.aborted.len()), (1, 0), "{report}");
}

#[test]
fn blocking_work_is_waited_for_and_cannot_be_aborted() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (shutdown, inside, go_on) = (Shutdown::new(), Gate::new(), Gate::new());
        let (entered, wait) = (inside.clone(), go_on.clone());
        let work = rt.block_on(async {
            shutdown.spawn_blocking(move || {
                entered.open();
                wait.block();
                5
            })
        });
        inside.block();
        shutdown.cut_short();
        let report = rt.block_on(shutdown.drain(LONG));
        assert_eq!(report.aborted.len(), 1);
        assert!(!report.aborted[0].has_ended());
        go_on.open();
        assert_eq!(rt.block_on(work).unwrap(), 5);
    }
}

#[test]
fn a_panic_is_an_end() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let shutdown = Shutdown::new();
        let stop = shutdown.token();
        let panics = shutdown.spawn_on(
            async move {
                stop.cancelled().await;
                std::panic::resume_unwind(Box::new("quietly"));
            },
            rt.handle(),
        );
        let report = rt.block_on(shutdown.drain(LONG));
        assert_eq!((report.finished, report.aborted.len()), (1, 0));
        assert!(rt.block_on(panics).unwrap_err().is_panic());
    }
}

#[test]
fn a_spawn_that_panics_leaves_no_place() {
    let _watch = watchdog::start();
    let (shutdown, tally) = (Shutdown::new(), Tally::new());
    let token = tally.token();
    let text = caught_panic::panic_of(|| drop(shutdown.spawn(async move { token.keep() }))).message;
    assert!(text.contains("no runtime on this thread"), "{text}");
    tally.assert_all_dropped(1);
    assert!(shutdown.is_empty());
    let rt = all_kinds_with_drivers().remove(0);
    assert!(rt.block_on(shutdown.drain(LONG)).is_clean());
}

#[test]
fn a_drain_that_is_dropped_can_be_made_again() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (shutdown, gate) = (Shutdown::new(), Gate::new());
        shutdown.spawn_on(gate.opened(), rt.handle());
        rt.block_on(async {
            assert!(poll_once(&mut Box::pin(shutdown.drain(LONG))).is_pending());
        });
        assert!(shutdown.has_begun() && shutdown.len() == 1, "cancelled, and not aborted");
        gate.open();
        let (one, two) =
            rt.block_on(async { blitz_io::join!(shutdown.drain(LONG), shutdown.drain(LONG)) });
        assert_eq!((one.finished, two.finished), (1, 1));
    }
}

#[test]
fn dropping_it_ends_nothing() {
    let _watch = watchdog::start();
    for rt in all_kinds_with_drivers() {
        let (shutdown, gate) = (Shutdown::new(), Gate::new());
        let opened = gate.opened();
        let task = shutdown.spawn_on(
            async move {
                opened.await;
                3
            },
            rt.handle(),
        );
        drop(shutdown);
        gate.open();
        assert_eq!(rt.block_on(task).unwrap(), 3);
    }
}

#[test]
fn tasks_of_a_local_set_are_members_too() {
    let _watch = watchdog::start();
    let rt = all_kinds_with_drivers().remove(0);
    let shutdown = Shutdown::new();
    let report = rt.block_on(task::LocalSet::new().run_until(async {
        let here = std::rc::Rc::new(());
        let stop = shutdown.token();
        let kept = here.clone();
        shutdown.spawn_local(async move {
            stop.cancelled().await;
            drop(kept);
        });
        shutdown.spawn_local(pending::<()>());
        let mut progress = shutdown.progress();
        let cut = async {
            drop(progress.wait_for(|now| now.remaining == 1).await.unwrap());
            shutdown.cut_short();
        };
        let report = blitz_io::join!(shutdown.drain(LONG), cut).0;
        assert_eq!(std::rc::Rc::strong_count(&here), 1);
        report
    }));
    assert_eq!((report.finished, report.aborted.len()), (1, 1), "{report}");
}

#[test]
fn a_token_stops_only_the_tasks_that_hold_it() {
    let shutdown = Shutdown::new();
    let (one, two) = (shutdown.token(), shutdown.token());
    one.cancel();
    assert!(!two.is_cancelled() && !shutdown.has_begun());
    shutdown.begin();
    assert!(two.is_cancelled());
}
