//! Tests timeouts that are created in one place and awaited in another. The clock is not paused, so
//! these tests cover the cheap implementation.

use std::{
    future::{pending, poll_fn},
    pin::{Pin, pin},
    sync::mpsc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use blitz_io::time::{timeout, timeout_at};

use crate::support::{
    caught_panic::panic_of,
    manual_poll::foreign_block_on,
    runtimes::{all_kinds_with_drivers, workers_with_drivers},
    watchdog,
};

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn a_timeout_waited_for_outside_of_its_runtime_ends() {
    let _watch = watchdog::start();
    let runtime = workers_with_drivers(1);
    let (sender, receiver) = mpsc::channel();
    runtime.block_on(async {
        let made = blitz_io::spawn(async move {
            sender.send((Instant::now(), timeout(SHORT, pending::<()>()))).unwrap();
        });
        made.await.unwrap();
    });
    let (begin, waiting) = receiver.recv().unwrap();
    foreign_block_on(waiting).unwrap_err();
    assert!(begin.elapsed() >= SHORT);
}

#[test]
fn a_timeout_waited_for_in_another_runtime_ends() {
    let _watch = watchdog::start();
    for runtime in all_kinds_with_drivers() {
        // The timeout belongs to the other runtime, which has to run for it.
        let other = workers_with_drivers(2);
        let (begin, waiting) =
            other.block_on(async { (Instant::now(), Box::pin(timeout(SHORT, pending::<()>()))) });
        runtime.block_on(waiting).unwrap_err();
        assert!(begin.elapsed() >= SHORT);
    }
}

#[test]
fn a_timeout_of_an_ended_runtime_panics() {
    for runtime in all_kinds_with_drivers() {
        let mut waiting = runtime.block_on(async { Box::pin(timeout(SHORT, pending::<()>())) });
        drop(runtime);
        let caught = panic_of(|| waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        caught.says(&["being shutdown"]);
        // A future that is ready needs no timer.
        let runtime = workers_with_drivers(2);
        let ready = runtime.block_on(async { timeout(SHORT, async { 7 }) });
        drop(runtime);
        assert_eq!(foreign_block_on(ready), Ok(7));
    }
}

#[test]
fn the_time_counts_from_the_call_not_from_the_first_poll() {
    let _watch = watchdog::start();
    for runtime in all_kinds_with_drivers() {
        runtime.block_on(async {
            let late = Duration::from_millis(300);
            let mut waiting = pin!(timeout(SHORT, pending::<()>()));
            blitz_io::time::sleep(late).await;
            // The deadline passed long ago, so the first poll is ready.
            let first = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
            assert!(first.is_ready());
        });
    }
}

#[test]
fn a_timeout_of_no_time_polls_its_future_once() {
    for runtime in all_kinds_with_drivers() {
        runtime.block_on(async {
            assert_eq!(timeout(Duration::ZERO, async { 7 }).await, Ok(7));
            assert!(timeout(Duration::ZERO, pending::<()>()).await.is_err());
            assert_eq!(timeout(Duration::MAX, async { 7 }).await, Ok(7));
            let mut never = pin!(timeout(Duration::MAX, pending::<()>()));
            let polled = poll_fn(|cx| Poll::Ready(Pin::as_mut(&mut never).poll(cx))).await;
            assert!(polled.is_pending());
            let at = blitz_io::time::Instant::now();
            assert!(timeout_at(at, pending::<()>()).await.is_err());
        });
    }
}
