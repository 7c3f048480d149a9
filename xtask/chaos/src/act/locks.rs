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
    world::{Here, PERMITS},
};

pub(super) async fn step(here: &Here, step: &Step) {
    match step {
        Step::Mutex { hold, limit } => within(*limit, mutex(here, *hold)).await,
        Step::RwLock { writes: true, hold, limit } => within(*limit, write(here, *hold)).await,
        Step::RwLock { writes: false, hold, limit } => within(*limit, read(here, *hold)).await,
        Step::Semaphore { permits, hold, limit } => {
            within(*limit, semaphore(here, *permits, *hold)).await;
        }
        Step::Notify { cancelled, waiters, after } => {
            notify(here, *cancelled, *waiters, *after).await;
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

async fn mutex(here: &Here, hold: Micros) {
    let mut guard = here.world.mutex.lock().await;
    let before = *guard;
    time::sleep(micros(hold)).await;
    here.ensure(*guard == before, || "two tasks held the mutex at once".into());
    *guard = before + 1;
    here.world.raised.fetch_add(1, SeqCst);
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

async fn write(here: &Here, hold: Micros) {
    let mut guard = here.world.rw_lock.write().await;
    let inside = Held::new(&here.world.inside, WRITER);
    here.ensure(here.world.inside.load(SeqCst) == WRITER, || "a writer is not alone".into());
    time::sleep(micros(hold)).await;
    here.ensure(here.world.inside.load(SeqCst) == WRITER, || "a writer is not alone".into());
    *guard += 1;
    drop(inside);
}

async fn read(here: &Here, hold: Micros) {
    let guard = here.world.rw_lock.read().await;
    let inside = Held::new(&here.world.inside, 1);
    let before = *guard;
    time::sleep(micros(hold)).await;
    here.ensure(here.world.inside.load(SeqCst) < WRITER, || "a reader beside a writer".into());
    here.ensure(*guard == before, || "a value changed under a reader".into());
    drop(inside);
}

async fn semaphore(here: &Here, permits: u32, hold: Micros) {
    let acquired = here.world.semaphore.acquire_many(permits).await;
    let Some(_permits) = here.check("a semaphore", acquired) else { return };
    let _held = Held::new(&here.world.permits_held, i64::from(permits));
    let all = here.world.permits_held.load(SeqCst);
    here.ensure(all <= i64::from(PERMITS), || format!("{all} permits of {PERMITS} are held"));
    time::sleep(micros(hold)).await;
}

/// Checks that waiters that are dropped pass their notifications on: as many notifications as there
/// are remaining waiters wake all of those, whenever the others are dropped.
async fn notify(here: &Here, cancelled: u32, waiters: u32, after: Micros) {
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
    let (notifier, token) = (notify.clone(), here.token(Kind::Task));
    let task = blitz_io::spawn(async move {
        let _token = token;
        time::sleep(micros(after)).await;
        for _ in 0..waiters {
            notifier.notify_one();
        }
    });
    time::sleep(micros(after)).await;
    drop(first);
    if here.is_ending() {
        // The task that notifies may never run.
        return;
    }
    // The task may be cancelled at the end, and then its notifications never come.
    if super::tasks::judge(here, task.await, false).is_some() {
        for other in others {
            other.await;
        }
    }
}
