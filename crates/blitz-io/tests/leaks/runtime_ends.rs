//! Ends runtimes with tasks in every state, by every method, and uses what remains after them.

use std::{
    future::poll_fn,
    sync::{Arc, mpsc},
    task::{Poll, Waker},
    thread,
    time::Duration,
};

use blitz_io::{
    runtime::{Builder, Handle, Runtime, UnhandledPanic},
    task::{self, JoinHandle, shield, yield_now},
};

use crate::{
    ON_PURPOSE, Scenario, panics,
    support::{
        gate::Gate,
        manual_poll::poll_once,
        runtimes::{all_kinds, run_until, workers},
        watchdog,
    },
    tasks::for_ever,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("runtimes that do nothing", nothing),
    ("a runtime dropped with tasks in every state", every_state_dropped),
    ("a runtime shut down in the background with tasks in every state", every_state_background),
    ("a runtime shut down with a time-out with tasks in every state", every_state_time_out),
    ("a runtime that ends while a task runs", running_task),
    ("a runtime that ends while others spawn", spawns_against_the_end),
    ("tasks that spawn when they are dropped", spawns_in_drop),
    ("wakers kept beyond the runtime", wakers_after),
    ("handles kept beyond the runtime", handles_after),
    ("a task that holds its runtime", holds_its_runtime),
    ("one runtime waits for another that ends", waits_for_another),
    ("a runtime that ends when a task panics", strict),
    ("a runtime that was started lazily, or never", lazy),
];

fn nothing() {
    drop(all_kinds());
    for rt in all_kinds() {
        rt.shutdown_background();
    }
    for rt in all_kinds() {
        rt.block_on(async {});
        drop(rt.enter());
        rt.shutdown_timeout(Duration::from_secs(60));
    }
}

/// Tasks in every state, and the handles and wakers that refer to them.
struct Zoo {
    rt: Runtime,
    _handles: Vec<JoinHandle<()>>,
    wakers: Vec<Waker>,
}

impl Zoo {
    fn new(rt: Runtime) -> Self {
        let (sender, receiver) = mpsc::channel::<Waker>();
        let parks = |sender: mpsc::Sender<Waker>| async move {
            poll_fn(|cx| {
                sender.send(cx.waker().clone()).unwrap();
                Poll::Ready(())
            })
            .await;
            for_ever().await;
        };
        let gate = Gate::new();
        let mut handles = Vec::new();
        // Idle; idle and detached; idle and joined by another task; with an abort pending behind a
        // shield.
        handles.push(rt.spawn(parks(sender.clone())));
        drop(rt.spawn(parks(sender.clone())));
        let inner = rt.spawn(parks(sender.clone()));
        drop(rt.spawn(async { drop(inner.await) }));
        let behind = gate.opened();
        let shielded = rt.spawn(shield(behind));
        // Completed, panicked and aborted, and not joined.
        let done = rt.spawn(async { drop(String::from("done")) });
        let fell = rt.spawn(async { panic!("{ON_PURPOSE}") });
        let aborted = rt.spawn(for_ever());
        aborted.abort();
        let ends = [done.abort_handle(), fell.abort_handle(), aborted.abort_handle()];
        run_until(&rt, move || gate.waiting() == 1 && ends.iter().all(|task| task.is_finished()));
        shielded.abort();
        let wakers: Vec<_> = (0..3).map(|_| receiver.recv().unwrap()).collect();
        // Woken, and spawned: queued somewhere, or idle again by the time the runtime ends.
        wakers[0].wake_by_ref();
        for _ in 0..20 {
            drop(rt.spawn(for_ever()));
        }
        // In the queues of a worker, too: a task that always yields, and its children.
        drop(rt.spawn(async {
            loop {
                drop(task::spawn(for_ever()));
                yield_now().await;
                if Handle::current().metrics().num_alive_tasks() > 100 {
                    for_ever().await;
                }
            }
        }));
        handles.extend([shielded, done, fell, aborted]);
        Self { rt, _handles: handles, wakers }
    }

    fn end(self, way: fn(Runtime)) {
        way(self.rt);
        self.wakers.into_iter().for_each(Waker::wake);
    }
}

fn every_state_dropped() {
    all_kinds().into_iter().for_each(|rt| Zoo::new(rt).end(drop));
}

fn every_state_background() {
    all_kinds().into_iter().for_each(|rt| Zoo::new(rt).end(Runtime::shutdown_background));
}

fn every_state_time_out() {
    let short: fn(Runtime) = |rt| rt.shutdown_timeout(Duration::from_millis(1));
    all_kinds().into_iter().for_each(|rt| Zoo::new(rt).end(short));
}

fn running_task() {
    let ways: [fn(Runtime); 3] =
        [drop, Runtime::shutdown_background, |rt| rt.shutdown_timeout(Duration::from_millis(1))];
    for end in ways {
        let rt = workers(2);
        let (inside, go_on) = (Gate::new(), Gate::new());
        let (entered, wait) = (inside.clone(), go_on.clone());
        let task = rt.spawn(async move {
            let text = String::from("inside");
            entered.open();
            wait.block();
            yield_now().await;
            drop(text);
        });
        inside.block();
        let ender = thread::spawn(move || end(rt));
        go_on.open();
        ender.join().unwrap();
        watchdog::until(|| task.is_finished());
    }
}

fn spawns_against_the_end() {
    for rt in all_kinds() {
        let handle = rt.handle().clone();
        let spawner = thread::spawn(move || {
            let mut refused = 0;
            while refused < 5 {
                let task = handle.spawn(for_ever());
                refused += usize::from(task.is_finished());
                drop(handle.spawn_blocking(|| String::from("maybe")));
            }
        });
        drop(rt);
        spawner.join().unwrap();
    }
}

/// Spawns another task when it is dropped.
struct Hydra(Handle, u32);

impl Drop for Hydra {
    fn drop(&mut self) {
        if self.1 > 0 {
            let next = Hydra(self.0.clone(), self.1 - 1);
            drop(self.0.spawn(async move {
                for_ever().await;
                drop(next);
            }));
        }
    }
}

fn spawns_in_drop() {
    for rt in all_kinds() {
        for _ in 0..3 {
            let hydra = Hydra(rt.handle().clone(), 3);
            rt.spawn(async move {
                for_ever().await;
                drop(hydra);
            });
        }
        rt.block_on(rt.spawn(async {})).unwrap();
    }
}

fn wakers_after() {
    for rt in all_kinds() {
        let (sender, receiver) = mpsc::channel::<Waker>();
        for _ in 0..5 {
            let sender = sender.clone();
            rt.spawn(poll_fn(move |cx| {
                sender.send(cx.waker().clone()).unwrap();
                Poll::<()>::Pending
            }));
        }
        rt.block_on(rt.spawn(async {})).unwrap();
        drop((rt, sender));
        let wakers: Vec<_> = receiver.iter().collect();
        for waker in &wakers {
            waker.wake_by_ref();
            let copy = waker.clone();
            thread::spawn(move || copy.wake()).join().unwrap();
        }
    }
}

fn handles_after() {
    for rt in all_kinds() {
        let (handle, done) = (rt.handle().clone(), rt.spawn(async { String::from("done") }));
        let (left, abort) = (rt.spawn(for_ever()), done.abort_handle());
        let metrics = rt.metrics();
        run_until(&rt, {
            let abort = abort.clone();
            move || abort.is_finished()
        });
        drop(rt);
        assert!(handle.spawn(for_ever()).is_finished());
        assert_eq!(handle.block_on(async { 1 }), 1);
        assert_eq!(handle.dump_now().tasks().iter().count(), 0);
        assert_eq!(metrics.num_alive_tasks(), 0);
        abort.abort();
        assert_eq!(done.blocking_join().unwrap(), "done");
        assert!(poll_once(&mut { left }).is_ready());
        let _entered = handle.enter();
    }
}

fn holds_its_runtime() {
    // The task itself sends the runtime back, to a thread that may block.
    let rt = Arc::new(workers(2));
    let (own, (sender, receiver)) = (rt.clone(), mpsc::channel());
    drop(rt.spawn(async move {
        yield_now().await;
        sender.send(own).unwrap();
    }));
    drop(receiver.recv().unwrap());
    drop(rt);
    // Left in a task by mistake, and ended by hand.
    let rt = workers(1);
    let handle = rt.handle().clone();
    let task = handle.spawn(async move {
        let kept = rt;
        yield_now().await;
        kept.shutdown_background();
    });
    drop(task.blocking_join());
}

fn waits_for_another() {
    let other = workers(1);
    for rt in all_kinds() {
        let (left, begun) = (rt.spawn(for_ever()), Gate::new());
        let entered = begun.clone();
        let waiter = other.spawn(async move {
            entered.open();
            left.await.is_err()
        });
        begun.block();
        drop(rt);
        assert!(other.block_on(waiter).unwrap());
    }
}

fn strict() {
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        builder.worker_threads(1).unhandled_panic(UnhandledPanic::ShutdownRuntime);
        let rt = builder.build().unwrap();
        let others: Vec<_> = (0..10).map(|_| rt.spawn(for_ever())).collect();
        rt.spawn(async { panic!("{ON_PURPOSE}") });
        panics(|| rt.block_on(for_ever()));
        let late = rt.spawn(for_ever());
        watchdog::until(|| late.is_finished() && others.iter().all(JoinHandle::is_finished));
    }
}

fn lazy() {
    for used in [false, true] {
        let rt = Builder::new_multi_thread().worker_threads(2).lazy_start().build().unwrap();
        if used {
            rt.block_on(rt.spawn(async { String::new() })).unwrap();
        }
    }
}
