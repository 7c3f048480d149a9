//! Locks that all steps of a round share, with waiters that are cancelled.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
};

use blitz_io::{
    sync::{Notify, futures::Notified},
    time,
};

use super::micros;
use crate::{
    ledger::Kind,
    plan::{Micros, Step},
    world::{PERMITS, StepContext},
};

pub(super) async fn step(cx: &StepContext, step: &Step) {
    match step {
        Step::Mutex { hold, limit } => within(*limit, mutex(cx, *hold)).await,
        Step::RwLock { writes: true, hold, limit } => within(*limit, write(cx, *hold)).await,
        Step::RwLock { writes: false, hold, limit } => within(*limit, read(cx, *hold)).await,
        Step::Semaphore { permits, hold, limit } => {
            within(*limit, semaphore(cx, *permits, *hold)).await;
        }
        Step::Notify { cancelled, waiters, after } => {
            notify(cx, *cancelled, *waiters, *after).await;
        }
        _ => unreachable!("no step of this file"),
    }
}

/// Awaits a future, and drops it when its time limit is over.
async fn within(limit: Option<Micros>, future: impl Future<Output = ()>) {
    match limit {
        None => future.await,
        // Both outcomes are fine.
        Some(limit) => drop(time::timeout(micros(limit), future).await),
    }
}

async fn mutex(cx: &StepContext, hold: Micros) {
    let mut guard = cx.world.mutex.lock().await;
    let before = *guard;
    time::sleep(micros(hold)).await;
    cx.ensure(*guard == before, || "two tasks held the mutex at once".into());
    *guard = before + 1;
    cx.world.raised.fetch_add(1, SeqCst);
}

/// A value that is counted while it lives.
struct Held<'a>(&'a AtomicI64, i64);

impl<'a> Held<'a> {
    fn new(counter: &'a AtomicI64, count: i64) -> Self {
        counter.fetch_add(count, SeqCst);
        Self(counter, count)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, SeqCst);
    }
}

/// The count for a writer inside: more than there are ever readers.
const WRITER: i64 = 1 << 32;

async fn write(cx: &StepContext, hold: Micros) {
    let mut guard = cx.world.rw_lock.write().await;
    let inside = Held::new(&cx.world.inside, WRITER);
    cx.ensure(cx.world.inside.load(SeqCst) == WRITER, || "a writer is not alone".into());
    time::sleep(micros(hold)).await;
    cx.ensure(cx.world.inside.load(SeqCst) == WRITER, || "a writer is not alone".into());
    *guard += 1;
    drop(inside);
}

async fn read(cx: &StepContext, hold: Micros) {
    let guard = cx.world.rw_lock.read().await;
    let inside = Held::new(&cx.world.inside, 1);
    let before = *guard;
    time::sleep(micros(hold)).await;
    cx.ensure(cx.world.inside.load(SeqCst) < WRITER, || "a reader beside a writer".into());
    cx.ensure(*guard == before, || "a value changed under a reader".into());
    drop(inside);
}

async fn semaphore(cx: &StepContext, permits: u32, hold: Micros) {
    let acquired = cx.world.semaphore.acquire_many(permits).await;
    let Some(_permits) = cx.check("a semaphore", acquired) else { return };
    let _held = Held::new(&cx.world.permits_held, i64::from(permits));
    let all = cx.world.permits_held.load(SeqCst);
    cx.ensure(all <= i64::from(PERMITS), || format!("{all} permits of {PERMITS} are held"));
    time::sleep(micros(hold)).await;
}

/// Checks that waiters that are dropped pass their notifications on: as many notifications as there
/// are remaining waiters wake all of those, whenever the others are dropped.
async fn notify(cx: &StepContext, cancelled: u32, waiters: u32, after: Micros) {
    let notify = Arc::new(Notify::new());
    let line = |count: u32| -> Vec<Pin<Box<Notified<'_>>>> {
        (0..count)
            .map(|_| {
                let mut notified = Box::pin(notify.notified());
                notified.as_mut().enable();
                notified
            })
            .collect()
    };
    let (first, others) = (line(cancelled), line(waiters));
    let (notifier, token) = (notify.clone(), cx.token(Kind::Task));
    let task = blitz_io::spawn(async move {
        let _token = token;
        time::sleep(micros(after)).await;
        for _ in 0..waiters {
            notifier.notify_one();
        }
    });
    time::sleep(micros(after)).await;
    drop(first);
    if cx.is_ending() {
        // The task that notifies may never run.
        return;
    }
    // The task may be cancelled at the end, and then its notifications never come.
    if super::tasks::judge(cx, task.await, false).is_some() {
        for other in others {
            other.await;
        }
    }
}
