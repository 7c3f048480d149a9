//! Tests `task_local!`: a value that is set while a future is polled.
#![deny(warnings)]

use std::{
    cell::Cell,
    future::{Future, pending},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::mpsc,
    task::{Context, Poll},
    thread,
};

use blitz_io::task::{AccessError, LocalKey, yield_now};

use crate::support::{
    caught_panic::panic_of,
    drop_tally::Tally,
    manual_poll::{now, poll_once},
    runtimes::all_kinds,
    watchdog,
};

blitz_io::task_local! {
    static NUMBER: u32;
    #[allow(dead_code, reason = "attributes stay")]
    pub(crate) static NAME: String
}

#[test]
fn a_task_local_may_be_declared_in_every_way() {
    blitz_io::task_local! {}
    blitz_io::task_local! { static A: fn(u8) -> u8; }
    blitz_io::task_local! { pub static B: Vec<Result<u8, [u8; 2]>>; static C: Cell<u8> }
    let key: &'static LocalKey<Cell<u8>> = &C;
    assert_eq!(format!("{key:?}"), "LocalKey { .. }");
    assert!(A.try_get().is_err() && B.try_get().is_err());
    C.sync_scope(Cell::new(1), || {
        C.with(|value| value.set(2));
        assert_eq!(C.with(Cell::get), 2);
    });
}

#[test]
fn every_task_has_its_own() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                rt.spawn(NUMBER.scope(number, async {
                    let before = NUMBER.get();
                    yield_now().await;
                    // A spawned task does not inherit the value.
                    assert!(blitz_io::spawn(async { NUMBER.try_get() }).await.unwrap().is_err());
                    (before, NUMBER.get())
                }))
            })
            .collect();
        for (number, task) in (0..).zip(tasks) {
            assert_eq!(rt.block_on(task).unwrap(), (number, number));
        }
    }
}

#[test]
fn outside_of_a_scope_there_is_none() {
    let none: Result<u32, AccessError> = NUMBER.try_get();
    let error = none.unwrap_err();
    assert_eq!(error.to_string(), "task-local value not set");
    assert_eq!(format!("{error:?}"), "AccessError");
    let line = line!() + 1;
    let panic = panic_of(|| NUMBER.get());
    panic.says(&["cannot access a task-local storage value without setting it first", "`scope`"]);
    panic.at(file!(), line);
}

#[test]
fn scopes_of_one_key_nest() {
    let depths = now(NUMBER.scope(1, async {
        let inner = NUMBER.scope(2, async { NUMBER.get() }).await;
        let call = NUMBER.sync_scope(3, || NUMBER.get());
        (inner, call, NUMBER.get())
    }));
    assert_eq!(depths, (2, 3, 1));
}

#[test]
fn a_scope_inside_of_with_panics_as_tokio_documents() {
    NUMBER.sync_scope(1, || {
        let line = line!() + 1;
        let panic = panic_of(|| NUMBER.with(|one| NUMBER.sync_scope(*one, || ())));
        panic.says(&["cannot enter a task-local scope while the task-local storage is borrowed"]);
        panic.at(file!(), line);
        let mut future = pin!(NUMBER.scope(2, async {}));
        panic_of(|| NUMBER.with(|_| poll_once(&mut future))).says(&["is borrowed"]);
        // The panic that was caught has not left the value borrowed.
        assert_eq!(NUMBER.sync_scope(3, || NUMBER.get()), 3);
    });
}

#[test]
fn between_polls_there_is_none() {
    let mut future = pin!(NUMBER.scope(1, async {
        yield_now().await;
        NUMBER.get()
    }));
    NUMBER.sync_scope(2, || {
        assert!(poll_once(&mut future).is_pending());
        assert_eq!(NUMBER.get(), 2);
        assert_eq!(poll_once(&mut future), Poll::Ready(1));
        assert_eq!(NUMBER.get(), 2);
    });
    assert!(NUMBER.try_get().is_err());
}

#[test]
fn a_panic_ends_a_scope() {
    NUMBER.sync_scope(1, || {
        let caught = catch_unwind(|| NUMBER.sync_scope(2, || panic!("in the call")));
        assert!(caught.is_err());
        assert_eq!(NUMBER.get(), 1);
        let mut future = Box::pin(NUMBER.scope(3, async { panic!("in the poll") }));
        let polled = catch_unwind(AssertUnwindSafe(|| poll_once(&mut future).is_ready()));
        assert!(polled.is_err());
        assert_eq!(NUMBER.get(), 1);
    });
    assert!(NUMBER.try_get().is_err());
}

/// Sends the number that it finds when it is dropped.
struct AtDrop<F>(F, mpsc::Sender<Result<u32, AccessError>>);

impl<F> Drop for AtDrop<F> {
    fn drop(&mut self) {
        self.1.send(NUMBER.try_get()).unwrap();
    }
}

impl<F: Future + Unpin> Future for AtDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

#[test]
fn the_value_is_there_when_the_future_is_dropped() {
    let _watch = watchdog::start();
    let (sender, found) = mpsc::channel();
    // Never polled; completed, in the poll that completes it; and in the middle.
    drop(NUMBER.scope(1, AtDrop(pending::<()>(), sender.clone())));
    assert_eq!(found.recv().unwrap(), Ok(1));
    let mut done = Box::pin(NUMBER.scope(2, AtDrop(std::future::ready(()), sender.clone())));
    assert!(poll_once(&mut done).is_ready());
    assert_eq!(found.try_recv().unwrap(), Ok(2));
    drop(done);
    assert!(found.try_recv().is_err(), "it is dropped twice");
    for rt in all_kinds() {
        let task = rt.spawn(NUMBER.scope(3, AtDrop(pending::<()>(), sender.clone())));
        task.abort();
        assert!(rt.block_on(task).unwrap_err().is_cancelled());
        assert_eq!(found.recv().unwrap(), Ok(3));
    }
}

#[test]
fn a_value_can_be_taken_back_once() {
    let mut future = Box::pin(NUMBER.scope(1, async { NUMBER.try_get() }));
    assert_eq!(format!("{future:?}"), "TaskLocalFuture { value: 1 }");
    assert_eq!(future.as_mut().take_value(), Some(1));
    assert_eq!(future.as_mut().take_value(), None);
    assert_eq!(format!("{future:?}"), "TaskLocalFuture { value: <missing> }");
    // The value of a scope around the future is not the future's own.
    let inner = NUMBER.sync_scope(2, || poll_once(&mut future));
    assert!(matches!(inner, Poll::Ready(Err(_))));
    panic_of(|| poll_once(&mut future)).says(&["`TaskLocalFuture` polled after completion"]);
}

#[test]
fn a_value_is_dropped_once_with_its_future() {
    blitz_io::task_local! { static TOKEN: crate::support::drop_tally::Token; }
    let tally = Tally::new();
    now(TOKEN.scope(tally.token(), async { TOKEN.with(|token| token.keep()) }));
    drop(TOKEN.scope(tally.token(), pending::<()>()));
    TOKEN.sync_scope(tally.token(), || TOKEN.with(|token| token.keep()));
    let mut taken = Box::pin(TOKEN.scope(tally.token(), pending::<()>()));
    drop(taken.as_mut().take_value());
    assert_eq!(tally.dropped(), 4);
    drop(taken);
    tally.assert_all_dropped(4);
}

#[test]
fn task_locals_work_while_a_thread_ends() {
    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            assert_eq!(NUMBER.sync_scope(9, || NUMBER.get()), 9);
            assert!(NUMBER.try_get().is_err());
        }
    }
    thread_local! { static AT_EXIT: AtExit = const { AtExit }; }
    thread::spawn(|| {
        // `AT_EXIT` is used before the task-local, so a thread-local with a destructor would be
        // destroyed before it.
        AT_EXIT.with(|_| {});
        NUMBER.sync_scope(1, || {});
    })
    .join()
    .unwrap();
}

#[test]
fn a_scope_is_as_free_as_its_parts() {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    is_send_and_sync(&NUMBER.scope(1, async {}));
    blitz_io::task_local! { static LOCAL: std::rc::Rc<u8>; }
    is_send_and_sync(&LOCAL);
}
