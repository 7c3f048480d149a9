//! Steps that spawn.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    thread,
};

use blitz_io::{
    runtime::Handle,
    task::{self, JoinError, JoinHandle, JoinSet, LocalSet},
    time,
};

use super::{burden::Value, micros, run};
use crate::{
    ledger::Kind,
    plan::{Burden, Fate, Micros, SetEnd, Step, Steps, TaskPlan},
    world::{self, StepContext},
};

pub(super) async fn step(cx: &StepContext, step: &Step) {
    match step {
        Step::Receive { in_place, after } => receive(cx, *in_place, *after),
        Step::Spawn(plan) => follow(cx, spawn(cx, plan), plan.fate).await,
        Step::Set { tasks, end } => set(cx, tasks, *end).await,
        Step::Job { time, fate, panics, burden } => {
            job(cx, *time, *fate, *panics, *burden).await;
        }
        Step::JobWait(steps) => job_wait(cx, steps).await,
        Step::Panic(plan) => panic(cx, plan).await,
        Step::LocalSet(plans) => local_set(cx, plans).await,
        #[cfg(feature = "fiber")]
        Step::Fiber { steps, fate, burden } => fiber(cx, steps, *fate, *burden).await,
        _ => unreachable!("no step of this file"),
    }
}

/// Returns the future of a task.
pub(super) fn future(
    cx: &StepContext,
    plan: &TaskPlan,
) -> impl Future<Output = Value> + Send + use<> {
    let token = cx.token(Kind::Task);
    let values: Vec<_> = plan.burdens.iter().map(|burden| Value::new(cx, *burden)).collect();
    let (cx, steps, output) = (cx.clone(), plan.steps.clone(), plan.output);
    async move {
        token.ran();
        run(cx.clone(), steps).await;
        // Dropped before the output exists, because the compiler leaks an output if a local that is
        // dropped after it panics.
        drop(values);
        Value::of_kind(&cx, output, Kind::Output)
    }
}

fn spawn(cx: &StepContext, plan: &TaskPlan) -> JoinHandle<Value> {
    spawn_on(cx, plan, &Handle::current())
}

pub(super) fn spawn_on(cx: &StepContext, plan: &TaskPlan, handle: &Handle) -> JoinHandle<Value> {
    let future = future(cx, plan);
    if plan.long {
        let spawned = task::Builder::new().long_running().spawn_on(future, handle);
        return spawned.expect("a task is spawned or cancelled, never refused");
    }
    handle.spawn(future)
}

/// Awaits, aborts or detaches a task as planned, and judges its end.
pub(super) async fn follow(cx: &StepContext, handle: JoinHandle<Value>, fate: Fate) {
    match fate {
        Fate::Detached => drop(handle),
        Fate::Awaited => drop(judge(cx, handle.await, false)),
        Fate::Aborted(after) => {
            time::sleep(micros(after)).await;
            handle.abort();
            drop(judge(cx, handle.await, true));
        }
    }
}

/// Records a fault if a task was cancelled for no reason; returns its output.
pub(super) fn judge<T>(cx: &StepContext, ended: Result<T, JoinError>, aborted: bool) -> Option<T> {
    match ended {
        Ok(output) => Some(output),
        // The panic hook has judged the panic.
        Err(error) if error.is_panic() => None,
        Err(error) => {
            cx.ensure(aborted || cx.is_ending(), || {
                format!("a task that was not aborted was cancelled: {error}")
            });
            None
        }
    }
}

/// Blocks its thread until another task sends or is dropped.
fn receive(cx: &StepContext, in_place: bool, after: Option<Micros>) {
    let (sender, receiver) = mpsc::channel();
    let message = cx.token(Kind::Message);
    let task = cx.token(Kind::Task);
    drop(blitz_io::spawn(async move {
        let _task = task;
        match after {
            Some(after) => time::sleep(micros(after)).await,
            None => std::future::pending().await,
        }
        // The receiver waits, unless its task was dropped.
        let _ = sender.send(message);
    }));
    let received =
        if in_place { task::block_in_place(|| receiver.recv()) } else { receiver.recv() };
    cx.ensure(received.is_ok() || cx.is_ending(), || {
        "a task that was to send was dropped while its runtime was alive".into()
    });
}

async fn set(cx: &StepContext, plans: &[TaskPlan], end: SetEnd) {
    let mut set = JoinSet::new();
    for plan in plans {
        set.spawn(future(cx, plan));
    }
    match end {
        SetEnd::Awaited => {
            let mut ended = 0;
            while let Some(result) = set.join_next().await {
                ended += 1;
                drop(judge(cx, result, false));
            }
            cx.ensure(ended == plans.len(), || {
                format!("a set of {} tasks reported {ended}", plans.len())
            });
        }
        SetEnd::Dropped(after) => {
            time::sleep(micros(after)).await;
            drop(set);
        }
        SetEnd::Shutdown(after) => {
            time::sleep(micros(after)).await;
            set.abort_all();
            while let Some(result) = set.join_next().await {
                drop(judge(cx, result, true));
            }
        }
        SetEnd::Detached => set.detach_all(),
    }
}

async fn job(cx: &StepContext, time: Micros, fate: Fate, panics: bool, burden: Burden) {
    let ran = Arc::new(AtomicBool::new(false));
    let (token, value, runs) = (cx.token(Kind::Job), Value::new(cx, burden), ran.clone());
    let handle = task::spawn_blocking(move || {
        token.ran();
        runs.store(true, SeqCst);
        thread::sleep(micros(time));
        assert!(!panics, "{}: a job", world::PLANNED);
        value
    });
    let aborted = matches!(fate, Fate::Aborted(_));
    match fate {
        Fate::Detached => return drop(handle),
        Fate::Aborted(after) => {
            time::sleep(micros(after)).await;
            handle.abort();
        }
        Fate::Awaited => {}
    }
    let ended = handle.await;
    // A job that was cancelled may also end with the panic of a destructor.
    let (ran, cancelled) = (ran.load(SeqCst), ended.as_ref().is_err_and(JoinError::is_cancelled));
    cx.ensure(ran || ended.is_err(), || "a job ended that did not run".into());
    cx.ensure(!(ran && cancelled), || "a job ran that was cancelled".into());
    drop(judge(cx, ended, aborted));
}

async fn job_wait(cx: &StepContext, steps: &Steps) {
    let token = cx.token(Kind::Job);
    let (inside, steps) = (cx.clone(), steps.clone());
    let handle = task::spawn_blocking(move || {
        token.ran();
        Handle::current().block_on(run(inside, steps));
    });
    judge(cx, handle.await, false);
}

/// Spawns a task that panics after its steps, with all its values.
async fn panic(cx: &StepContext, plan: &TaskPlan) {
    let future = future(cx, plan);
    let handle = blitz_io::spawn(async move {
        let value = future.await;
        let panics = std::hint::black_box(true);
        assert!(!panics, "{}: a poll", world::PLANNED);
        value
    });
    follow(cx, handle, plan.fate).await;
}

/// Runs the tasks of a `LocalSet` on a blocking thread, each with a value that is not `Send`.
async fn local_set(cx: &StepContext, plans: &[TaskPlan]) {
    let (inside, plans, token) = (cx.clone(), plans.to_vec(), cx.token(Kind::Job));
    let handle = task::spawn_blocking(move || {
        token.ran();
        let set = LocalSet::new();
        let work = async {
            let mut followed = Vec::new();
            for plan in &plans {
                // Not the free function `spawn_local`, which spawns onto the runtime if that is a
                // `LocalRuntime`.
                followed.push((set.spawn_local(local_future(&inside, plan)), plan.fate));
            }
            for (handle, fate) in followed {
                follow(&inside, handle, fate).await;
            }
        };
        Handle::current().block_on(set.run_until(work));
    });
    judge(cx, handle.await, false);
}

/// Returns the future of a task that is not `Send`.
pub(super) fn local_future(
    cx: &StepContext,
    plan: &TaskPlan,
) -> impl Future<Output = Value> + use<> {
    let (cx, future) = (cx.clone(), future(cx, plan));
    let own = Rc::new(cx.token(Kind::Burden));
    let guard = SameThread { cx, thread: thread::current().id(), _own: own };
    async move {
        let value = future.await;
        drop(guard);
        value
    }
}

/// A value that checks that it is dropped on the thread that created it.
struct SameThread {
    cx: StepContext,
    thread: thread::ThreadId,
    _own: Rc<crate::ledger::Token>,
}

impl Drop for SameThread {
    fn drop(&mut self) {
        let dropped_on = thread::current().id();
        self.cx.ensure(dropped_on == self.thread, || {
            "a value that is not Send was dropped on another thread".into()
        });
    }
}

#[cfg(feature = "fiber")]
async fn fiber(cx: &StepContext, steps: &Steps, fate: Fate, burden: Burden) {
    use blitz_io::fiber;
    let (token, value) = (cx.token(Kind::Task), Value::new(cx, burden));
    let (inside, steps) = (cx.clone(), steps.clone());
    let body = move || {
        token.ran();
        fiber::wait(run(inside, steps));
        value
    };
    // SAFETY: obligations 1 and 2 are that the closure does not wait in an initialiser or in a
    // scope of a thread-local. `body` waits once, at its top level, inside of neither.
    let spawned = unsafe { fiber::Builder::new().spawn(body) };
    if let Some(handle) = cx.check("a fiber", spawned) {
        follow(cx, handle, fate).await;
    }
}
