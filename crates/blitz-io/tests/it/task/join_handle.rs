//! Tests spawning and joining: outputs, panics, identities.

use std::{
    collections::HashSet,
    io,
    panic::panic_any,
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll},
};

use blitz_io::task;

use crate::support::{
    caught_panic::{message, panic_of},
    gate::Gate,
    manual_poll::poll_once,
    runtimes::{all_kinds, one_thread, workers},
    watchdog,
};

#[test]
fn a_handle_gives_the_output() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let task = rt.spawn(async { String::from("out") });
        assert_eq!(rt.block_on(task).unwrap(), "out");
    }
}

#[test]
fn a_task_runs_without_being_awaited() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let (sender, receiver) = mpsc::channel();
    drop(rt.spawn(async move { sender.send(5).unwrap() }));
    assert_eq!(receiver.recv(), Ok(5));
}

#[test]
fn a_detached_task_goes_on_across_waits() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let (gate, (sender, receiver)) = (Gate::new(), mpsc::channel());
    let opened = gate.opened();
    drop(rt.spawn(async move {
        sender.send("before").unwrap();
        opened.await;
        task::yield_now().await;
        sender.send("after").unwrap();
    }));
    assert_eq!(receiver.recv(), Ok("before"));
    watchdog::until(|| gate.waiting() == 1);
    gate.open();
    assert_eq!(receiver.recv(), Ok("after"));
}

#[test]
fn tasks_spawn_tasks_and_await_them() {
    let _watch = watchdog::start();
    fn sum(depth: u32) -> std::pin::Pin<Box<dyn Future<Output = u64> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                return 1;
            }
            let (one, two) = (blitz_io::spawn(sum(depth - 1)), blitz_io::spawn(sum(depth - 1)));
            one.await.unwrap() + two.await.unwrap()
        })
    }
    for rt in all_kinds() {
        assert_eq!(rt.block_on(sum(9)), 512);
    }
}

#[test]
fn a_panic_ends_its_task_and_is_carried_to_the_joiner() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let task = rt.spawn(async { panic!("boom {}", 1) });
        let id = task.id();
        let error: task::JoinError = rt.block_on(task).unwrap_err();
        assert!(error.is_panic() && !error.is_cancelled());
        assert_eq!(error.id(), id);
        assert_eq!(message(&*error.into_panic()), "boom 1");
        assert_eq!(rt.block_on(rt.spawn(async { 2 })).unwrap(), 2, "the runtime goes on");
    }
}

#[test]
fn a_panic_after_a_wait_is_carried_too() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let opened = gate.opened();
    let task = rt.spawn(async move {
        opened.await;
        panic!("later");
    });
    watchdog::until(|| gate.waiting() == 1);
    gate.open();
    let error: task::JoinError = rt.block_on(task).unwrap_err();
    assert_eq!(message(&*error.into_panic()), "later");
}

#[test]
fn any_payload_is_carried_whole() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let error = rt.block_on(rt.spawn(async { panic_any(vec![1, 2, 3]) })).unwrap_err();
    let payload = error.try_into_panic().unwrap();
    assert_eq!(payload.downcast_ref(), Some(&vec![1, 2, 3]));
}

#[test]
fn join_errors_say_what_happened_and_to_which_task() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let task = rt.spawn(async { panic!("boom") });
    let id = task.id().to_string();
    let error = rt.block_on(task).unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(text.contains(&id), "{text}");
        assert!(text.to_lowercase().contains("panic") && text.contains("boom"), "{text}");
    }
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::Other);
    assert!(error.to_string().contains("panic"), "{error}");

    let task = rt.spawn(std::future::pending::<()>());
    let id = task.id().to_string();
    task.abort();
    let error = rt.block_on(task).unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(text.contains(&id) && text.to_lowercase().contains("cancelled"), "{text}");
    }
    let error = io::Error::from(error);
    assert!(error.to_string().contains("cancelled"), "{error}");
}

#[test]
fn a_cancelled_error_has_no_panic_to_give() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let cancelled = || {
        let task = rt.spawn(std::future::pending::<()>());
        task.abort();
        rt.block_on(task).unwrap_err()
    };
    let error = cancelled();
    let error = error.try_into_panic().unwrap_err();
    assert!(error.is_cancelled() && !error.is_panic());
    let error = cancelled();
    panic_of(move || error.into_panic()).at(file!(), line!());
}

#[test]
fn a_handle_is_finished_when_its_task_is() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let task = rt.spawn(gate.opened());
    let abort = task.abort_handle();
    watchdog::until(|| gate.waiting() == 1);
    assert!(!task.is_finished() && !abort.is_finished());
    gate.open();
    watchdog::until(|| task.is_finished());
    assert!(abort.is_finished());
    let mut task = task;
    assert!(poll_once(&mut task).is_ready(), "a finished task's output is there");
    assert!(task.is_finished());
}

#[test]
fn a_wait_that_is_dropped_leaves_the_output_for_the_next() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let gate = Gate::new();
    let opened = gate.opened();
    let mut task = rt.spawn(async move {
        opened.await;
        9
    });
    assert!(poll_once(&mut &mut task).is_pending());
    gate.open();
    watchdog::until(|| task.is_finished());
    assert_eq!(rt.block_on(&mut task).unwrap(), 9);
}

#[test]
fn a_handle_polled_after_its_output_panics() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let mut task = rt.spawn(async { 1 });
    rt.block_on(&mut task).unwrap();
    panic_of(|| matches!(poll_once(&mut task), Poll::Ready(Ok(1)))).says(&["completion"]);
}

#[test]
fn no_two_tasks_have_the_same_id() {
    let _watch = watchdog::start();
    let (one, two) = (workers(2), one_thread());
    let ids: Arc<Mutex<HashSet<task::Id>>> = Arc::default();
    std::thread::scope(|scope| {
        for rt in [&one, &two, &one, &two] {
            let ids = ids.clone();
            scope.spawn(move || {
                let new: Vec<_> = (0..5_000).map(|_| rt.spawn(async {}).id()).collect();
                ids.lock().unwrap().extend(new);
            });
        }
    });
    assert_eq!(ids.lock().unwrap().len(), 20_000);
}

#[test]
fn a_task_knows_its_id_in_its_body_and_in_every_drop() {
    let _watch = watchdog::start();
    struct Reports(mpsc::Sender<(&'static str, Option<task::Id>)>, &'static str);
    impl Drop for Reports {
        fn drop(&mut self) {
            let _ = self.0.send((self.1, task::try_id()));
        }
    }
    struct Completes(#[expect(dead_code, reason = "held for its drop")] Reports);
    impl Future for Completes {
        type Output = task::Id;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<task::Id> {
            assert_eq!(task::try_id(), Some(task::id()));
            Poll::Ready(task::id())
        }
    }
    for rt in all_kinds() {
        let (sender, receiver) = mpsc::channel();
        let reports = |when| Reports(sender.clone(), when);

        let task = rt.spawn(Completes(reports("completed")));
        let id = task.id();
        assert_eq!(rt.block_on(task).unwrap(), id);
        assert_eq!(receiver.recv().unwrap(), ("completed", Some(id)));

        let output = reports("handed over");
        drop(rt.block_on(rt.spawn(async move { output })).unwrap());
        assert_eq!(receiver.recv().unwrap(), ("handed over", None));

        let output = reports("an output that is dropped");
        let task = rt.spawn(async move { output });
        let id = task.id();
        drop(task);
        rt.block_on(rt.spawn(async {})).unwrap(); // lets a current-thread runtime run
        let dropped = receiver.recv().unwrap();
        assert_eq!(dropped, ("an output that is dropped", Some(id)));

        let held = reports("aborted");
        let task = rt.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        let id = task.id();
        task.abort();
        rt.block_on(task).unwrap_err();
        assert_eq!(receiver.recv().unwrap(), ("aborted", Some(id)));

        let held = reports("at shutdown");
        let task = rt.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        let id = task.id();
        drop(rt);
        assert_eq!(receiver.recv().unwrap(), ("at shutdown", Some(id)));
    }
}

#[test]
fn the_future_of_block_on_is_no_task() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        assert_eq!(rt.block_on(async { task::try_id() }), None);
    }
    panic_of(task::id).says(&["try_id"]);
    assert_eq!(panic_of(|| task::id()).line, line!());
}

#[test]
fn handles_show_their_task() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let task = rt.spawn(async {});
    let abort = task.abort_handle();
    let id = task.id();
    assert_eq!((abort.id(), abort.clone().id()), (id, id));
    assert!(format!("{task:?}").starts_with("JoinHandle"));
    assert!(format!("{abort:?}").starts_with("AbortHandle"));
}
