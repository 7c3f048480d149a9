//! Tests that the hooks of tasks are called once per event, with the task's metadata.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, Runtime, TaskMeta},
    task::{self, Id, yield_now},
};

use crate::support::{gate::Gate, watchdog};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Spawn,
    Before,
    After,
    Terminate,
}

type Log = Arc<Mutex<Vec<(Id, Event)>>>;

fn logged(mut builder: Builder) -> (Runtime, Log) {
    let log = Log::default();
    let note = |event| {
        let log = log.clone();
        move |meta: &TaskMeta<'_>| log.lock().unwrap().push((meta.id(), event))
    };
    builder
        .on_task_spawn(note(Event::Spawn))
        .on_before_task_poll(note(Event::Before))
        .on_after_task_poll(note(Event::After))
        .on_task_terminate(note(Event::Terminate));
    (builder.build().unwrap(), log)
}

fn both() -> [Builder; 2] {
    let mut two = Builder::new_multi_thread();
    two.worker_threads(2);
    [Builder::new_current_thread(), two]
}

fn events_of(log: &Log, id: Id) -> Vec<Event> {
    log.lock().unwrap().iter().filter(|(task, _)| *task == id).map(|(_, event)| *event).collect()
}

#[test]
fn a_task_is_spawned_polled_and_terminated_in_that_order() {
    let _watch = watchdog::start();
    for builder in both() {
        let (rt, log) = logged(builder);
        let task = rt.spawn(async {
            yield_now().await;
            task::id()
        });
        let id = rt.block_on(task).unwrap();
        use Event::{After, Before, Spawn, Terminate};
        assert_eq!(events_of(&log, id), [Spawn, Before, After, Before, After, Terminate]);
        // From a worker, too.
        let id = rt.block_on(rt.spawn(async { task::spawn(async { task::id() }).await.unwrap() }));
        assert_eq!(events_of(&log, id.unwrap()), [Spawn, Before, After, Terminate]);
    }
}

#[test]
fn a_task_that_is_aborted_or_panics_terminates_once() {
    let _watch = watchdog::start();
    for builder in both() {
        let (rt, log) = logged(builder);
        let aborted = rt.spawn(std::future::pending::<()>());
        aborted.abort();
        let id = aborted.id();
        assert!(rt.block_on(aborted).unwrap_err().is_cancelled());
        let ends = events_of(&log, id).into_iter().filter(|event| *event == Event::Terminate);
        assert_eq!(ends.count(), 1);
        let panics = rt.spawn(async { panic!("on purpose") });
        let id = panics.id();
        assert!(rt.block_on(panics).unwrap_err().is_panic());
        use Event::{After, Before, Spawn, Terminate};
        assert_eq!(events_of(&log, id), [Spawn, Before, After, Terminate]);
    }
}

#[test]
fn tasks_that_shutdown_drops_terminate_too() {
    let _watch = watchdog::start();
    for builder in both() {
        let (rt, log) = logged(builder);
        let tasks: Vec<_> = (0..50).map(|_| rt.spawn(std::future::pending::<()>()).id()).collect();
        drop(rt);
        for id in tasks {
            let ends = events_of(&log, id).into_iter().filter(|event| *event == Event::Terminate);
            assert_eq!(ends.count(), 1);
        }
    }
}

#[test]
fn hooks_know_the_name_and_the_place_of_the_spawn() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    let rt = Builder::new_current_thread()
        .on_task_spawn(move |meta| {
            let line = meta.spawned_at().line();
            note.lock().unwrap().push((meta.name().map(str::to_owned), line));
        })
        .build()
        .unwrap();
    drop(rt.spawn(async {}));
    let line = line!() - 1;
    drop(task::Builder::new().name("reader").spawn_on(async {}, rt.handle()).unwrap());
    assert_eq!(*seen.lock().unwrap(), [(None, line), (Some("reader".to_owned()), line + 2)]);
}

#[test]
fn a_hook_that_panics_harms_no_other_task() {
    let _watch = watchdog::start();
    for mut builder in both() {
        builder
            .on_task_spawn(|_| panic!("on purpose"))
            .on_before_task_poll(|_| panic!("on purpose"))
            .on_after_task_poll(|_| panic!("on purpose"))
            .on_task_terminate(|_| panic!("on purpose"));
        let rt = builder.build().unwrap();
        for n in 0..10 {
            let task = rt.spawn(async move {
                yield_now().await;
                n
            });
            assert_eq!(rt.block_on(task).unwrap(), n);
        }
    }
}

#[test]
fn a_hook_may_spawn() {
    let _watch = watchdog::start();
    let done = Gate::new();
    let opens = done.clone();
    let first = std::sync::atomic::AtomicBool::new(true);
    let rt = Builder::new_multi_thread()
        .worker_threads(2)
        .on_task_spawn(move |_| {
            if first.swap(false, std::sync::atomic::Ordering::Relaxed) {
                let opens = opens.clone();
                drop(task::spawn(async move { opens.open() }));
            }
        })
        .build()
        .unwrap();
    rt.block_on(async {
        task::spawn(async {}).await.unwrap();
        done.opened().await;
    });
}

#[test]
fn hooks_learn_how_long_a_task_was_queued() {
    let _watch = watchdog::start();
    for mut builder in both() {
        let seen = Arc::new(Mutex::new(Vec::<(Event, Option<Duration>)>::new()));
        let note = |event| {
            let seen = seen.clone();
            move |meta: &TaskMeta<'_>| seen.lock().unwrap().push((event, meta.schedule_latency()))
        };
        let rt = builder
            .worker_threads(1)
            .track_task_schedule_latency()
            .on_task_spawn(note(Event::Spawn))
            .on_before_task_poll(note(Event::Before))
            .on_after_task_poll(note(Event::After))
            .on_task_terminate(note(Event::Terminate))
            .build()
            .unwrap();
        let queued = Duration::from_millis(3);
        rt.block_on(rt.spawn(async move {
            let task = task::spawn(async {});
            // The task is in the queue of this worker meanwhile.
            std::thread::sleep(queued);
            task.await.unwrap();
        }))
        .unwrap();
        drop(rt);
        let seen = seen.lock().unwrap();
        for pair in seen.windows(2) {
            if let [(Event::Before, before), (Event::After, after)] = pair {
                assert_eq!(before, after, "time in the poll is not counted");
            }
        }
        for (event, latency) in seen.iter() {
            let is_of_poll = matches!(event, Event::Before | Event::After);
            assert_eq!(latency.is_some(), is_of_poll, "{event:?}");
        }
        let longest = seen.iter().filter_map(|(_, latency)| *latency).max().unwrap();
        assert!(longest >= queued, "{longest:?}");
    }
}

#[test]
fn hooks_get_no_schedule_latency_unless_it_is_enabled() {
    let _watch = watchdog::start();
    for mut builder in both() {
        let seen: Arc<Mutex<Vec<Option<Duration>>>> = Arc::default();
        let noted = seen.clone();
        let rt = builder
            .on_before_task_poll(move |meta| noted.lock().unwrap().push(meta.schedule_latency()))
            .build()
            .unwrap();
        rt.block_on(rt.spawn(async {})).unwrap();
        assert_eq!(*seen.lock().unwrap(), [None]);
    }
}
