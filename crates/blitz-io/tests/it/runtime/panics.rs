//! Tests panics wherever user code can run: each reaches only the code that it concerns.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use crate::support::{
    caught_panic::message,
    drop_tally::{Tally, Token},
    gate::Gate,
    runtimes::{all_kinds, run_until, workers},
    watchdog,
};

/// Panics when dropped, and holds a value that must be dropped even so.
struct PanicsInDrop(#[expect(dead_code, reason = "held for its drop")] Token);

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("in a drop");
        }
    }
}

#[test]
fn a_panic_in_the_drop_of_an_aborted_future_is_carried_to_the_joiner() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let bad = PanicsInDrop(tally.token());
        let task = rt.spawn(async move {
            let _bad = bad;
            pending::<()>().await;
        });
        rt.block_on(rt.spawn(async {})).unwrap();
        task.abort();
        let error = rt.block_on(task).unwrap_err();
        assert!(error.is_panic(), "{error}");
        assert_eq!(message(&*error.into_panic()), "in a drop");
        tally.assert_all_dropped(1);
        assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1, "the runtime goes on");
    }
}

#[test]
fn a_panic_in_the_drop_of_a_detached_output_ends_there() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let (tally, gate) = (Tally::new(), Gate::new());
        for _ in 0..10 {
            let (bad, opened) = (PanicsInDrop(tally.token()), gate.opened());
            drop(rt.spawn(async move {
                opened.await;
                bad
            }));
        }
        gate.open();
        let all = tally.clone();
        run_until(&rt, move || all.dropped() == 10);
        assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1, "the runtime goes on");
        drop(rt);
        tally.assert_all_dropped(10);
    }
}

#[test]
fn a_panic_in_the_drop_of_an_output_in_its_handle_harms_nothing() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let bad = PanicsInDrop(tally.token());
        let task = rt.spawn(async move { bad });
        let ends = task.abort_handle();
        run_until(&rt, move || ends.is_finished());
        // Whether the panic is swallowed is not specified; the output is dropped once.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
        tally.assert_all_dropped(1);
        assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1, "the runtime goes on");
    }
}

#[test]
fn a_panic_whose_payload_panics_in_its_drop_harms_no_worker() {
    let _watch = watchdog::start();
    let rt = workers(1);
    let tally = Tally::new();
    for _ in 0..10 {
        let bad = PanicsInDrop(tally.token());
        drop(rt.spawn(async move { resume_unwind(Box::new(bad)) }));
    }
    assert_eq!(rt.block_on(rt.spawn(async { 1 })).unwrap(), 1, "the runtime goes on");
    drop(rt);
    tally.assert_all_dropped(10);
}

#[test]
fn a_panic_of_block_ons_future_leaves_the_runtime_as_it_was() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let token = tally.token();
        let (gate, opened) = {
            let gate = Gate::new();
            (gate.clone(), gate.opened())
        };
        let task = rt.spawn(async move {
            opened.await;
            token.keep();
            2
        });
        let caught = catch_unwind(AssertUnwindSafe(|| {
            rt.block_on(async {
                blitz_io::spawn(async {}).await.unwrap();
                panic!("in block_on");
            })
        }));
        assert_eq!(message(&*caught.unwrap_err()), "in block_on");
        assert!(blitz_io::runtime::Handle::try_current().is_err());
        gate.open();
        assert_eq!(rt.block_on(task).unwrap(), 2);
        tally.assert_all_dropped(1);
    }
}

#[test]
fn a_thousand_panics_cost_no_worker() {
    let _watch = watchdog::start();
    let rt = workers(2);
    let tasks: Vec<_> = (0..1_000)
        .map(|n| rt.spawn(async move { if n % 2 == 0 { resume_unwind(Box::new(n)) } else { n } }))
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        match rt.block_on(task) {
            Ok(output) => assert_eq!(output, n),
            Err(error) => assert_eq!(error.into_panic().downcast_ref(), Some(&n)),
        }
    }
    assert_eq!(
        crate::support::runtimes::on_every_worker(&rt, || ()).len(),
        2,
        "both workers are there"
    );
}

#[test]
fn a_future_is_dropped_once_when_it_panics_in_a_poll() {
    let _watch = watchdog::start();
    for rt in all_kinds() {
        let tally = Tally::new();
        let token = tally.token();
        let task: blitz_io::task::JoinHandle<()> = rt.spawn(std::future::poll_fn(move |_| {
            token.keep();
            resume_unwind(Box::new("in a poll"))
        }));
        let error: blitz_io::task::JoinError = rt.block_on(task).unwrap_err();
        assert!(error.is_panic());
        tally.assert_all_dropped(1);
    }
}
