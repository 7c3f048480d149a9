//! Timeouts that are created in one place and awaited in another. (The clock of this process is
//! never paused, so these tests cover the cheap implementation.)

use std::{
    future::{pending, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use blitz_io::{
    runtime::{Builder, Runtime},
    time::{timeout, timeout_at},
};

use crate::{caught::panic_of, watch};

const SHORT: Duration = Duration::from_millis(20);

struct Unparks(thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on a thread without a runtime.
fn wait_for<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

fn runtimes() -> [Runtime; 2] {
    [Builder::new_multi_thread().worker_threads(2), &mut Builder::new_current_thread()]
        .map(|builder| builder.enable_all().build().unwrap())
}

#[test]
fn a_timeout_waited_for_outside_of_its_runtime_ends() {
    let _watch = watch::begin();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (sender, receiver) = mpsc::channel();
    runtime.block_on(async {
        let made = blitz_io::spawn(async move {
            sender.send((Instant::now(), timeout(SHORT, pending::<()>()))).unwrap();
        });
        made.await.unwrap();
    });
    let (begin, waiting) = receiver.recv().unwrap();
    wait_for(waiting).unwrap_err();
    assert!(begin.elapsed() >= SHORT);
}

#[test]
fn a_timeout_waited_for_in_another_runtime_ends() {
    let _watch = watch::begin();
    for runtime in runtimes() {
        let others = runtimes();
        // The timeout belongs to the other runtime, which has to run for it.
        let (begin, waiting) = others[0]
            .block_on(async { (Instant::now(), Box::pin(timeout(SHORT, pending::<()>()))) });
        runtime.block_on(waiting).unwrap_err();
        assert!(begin.elapsed() >= SHORT);
    }
}

#[test]
fn a_timeout_of_an_ended_runtime_panics() {
    for runtime in runtimes() {
        let mut waiting = runtime.block_on(async { Box::pin(timeout(SHORT, pending::<()>())) });
        drop(runtime);
        let caught = panic_of(|| waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        caught.says(&["being shutdown"]);
        // A future that is ready needs no timer.
        let runtime = runtimes().into_iter().next().unwrap();
        let ready = runtime.block_on(async { timeout(SHORT, async { 7 }) });
        drop(runtime);
        assert_eq!(wait_for(ready), Ok(7));
    }
}

#[test]
fn the_time_counts_from_the_call_not_from_the_first_poll() {
    let _watch = watch::begin();
    for runtime in runtimes() {
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
    for runtime in runtimes() {
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
