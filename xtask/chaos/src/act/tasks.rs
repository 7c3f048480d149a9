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
    world::{self, Here},
};

pub(super) async fn step(here: &Here, step: &Step) {
    match step {
        Step::Receive { in_place, after } => receive(here, *in_place, *after),
        Step::Spawn(plan) => follow(here, spawn(here, plan), plan.fate).await,
        Step::Set { tasks, end } => set(here, tasks, *end).await,
        Step::Job { time, fate, panics, burden } => {
            job(here, *time, *fate, *panics, *burden).await;
        }
        Step::JobWait(steps) => job_wait(here, steps).await,
        Step::Panic(plan) => panic(here, plan).await,
        Step::LocalSet(plans) => local_set(here, plans).await,
        #[cfg(feature = "fiber")]
        Step::Fiber { steps, fate, burden } => fiber(here, steps, *fate, *burden).await,
        _ => unreachable!("no step of this file"),
    }
}

/// Returns the future of a task.
pub(super) fn future(here: &Here, plan: &TaskPlan) -> impl Future<Output = Value> + Send + use<> {
    let token = here.token(Kind::Task);
    let values: Vec<_> = plan.burdens.iter().map(|burden| Value::new(here, *burden)).collect();
    let (here, steps, output) = (here.clone(), plan.steps.clone(), plan.output);
    async move {
        token.ran();
        run(here.clone(), steps).await;
        // Dropped before the output exists, because the compiler leaks an output if a local that is
        // dropped after it panics.
        drop(values);
        Value::of_kind(&here, output, Kind::Output)
    }
}

fn spawn(here: &Here, plan: &TaskPlan) -> JoinHandle<Value> {
    spawn_on(here, plan, &Handle::current())
}

pub(super) fn spawn_on(here: &Here, plan: &TaskPlan, handle: &Handle) -> JoinHandle<Value> {
    let future = future(here, plan);
    if plan.long {
        let spawned = task::Builder::new().long_running().spawn_on(future, handle);
        return spawned.expect("a task is spawned or cancelled, never refused");
    }
    handle.spawn(future)
}

/// Awaits, aborts or detaches a task as planned, and judges its end.
pub(super) async fn follow(here: &Here, handle: JoinHandle<Value>, fate: Fate) {
    match fate {
        Fate::Detached => drop(handle),
        Fate::Awaited => drop(judge(here, handle.await, false)),
        Fate::Aborted(after) => {
            time::sleep(micros(after)).await;
            handle.abort();
            drop(judge(here, handle.await, true));
        }
    }
}

/// Records a fault if a task was cancelled for no reason; returns its output.
pub(super) fn judge<T>(here: &Here, ended: Result<T, JoinError>, aborted: bool) -> Option<T> {
    match ended {
        Ok(output) => Some(output),
        // The panic hook has judged the panic.
        Err(error) if error.is_panic() => None,
        Err(error) => {
            here.ensure(aborted || here.is_ending(), || {
                format!("a task that was not aborted was cancelled: {error}")
            });
            None
        }
    }
}

/// Blocks its thread until another task sends or is dropped.
fn receive(here: &Here, in_place: bool, after: Option<Micros>) {
    let (sender, receiver) = mpsc::channel();
    let message = here.token(Kind::Message);
    let task = here.token(Kind::Task);
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
    here.ensure(received.is_ok() || here.is_ending(), || {
        "a task that was to send was dropped while its runtime was alive".into()
    });
}

async fn set(here: &Here, plans: &[TaskPlan], end: SetEnd) {
    let mut set = JoinSet::new();
    for plan in plans {
        set.spawn(future(here, plan));
    }
    match end {
        SetEnd::Awaited => {
            let mut ended = 0;
            while let Some(result) = set.join_next().await {
                ended += 1;
                drop(judge(here, result, false));
            }
            here.ensure(ended == plans.len(), || {
                format!("a set of {} tasks told of {ended}", plans.len())
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
                drop(judge(here, result, true));
            }
        }
        SetEnd::Detached => set.detach_all(),
    }
}

async fn job(here: &Here, time: Micros, fate: Fate, panics: bool, burden: Burden) {
    let ran = Arc::new(AtomicBool::new(false));
    let (token, value, runs) = (here.token(Kind::Job), Value::new(here, burden), ran.clone());
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
    here.ensure(ran || ended.is_err(), || "a job ended that did not run".into());
    here.ensure(!(ran && cancelled), || "a job ran that was cancelled".into());
    drop(judge(here, ended, aborted));
}

async fn job_wait(here: &Here, steps: &Steps) {
    let token = here.token(Kind::Job);
    let (inside, steps) = (here.clone(), steps.clone());
    let handle = task::spawn_blocking(move || {
        token.ran();
        Handle::current().block_on(run(inside, steps));
    });
    judge(here, handle.await, false);
}

/// Spawns a task that panics after its steps, with all its values.
async fn panic(here: &Here, plan: &TaskPlan) {
    let future = future(here, plan);
    let handle = blitz_io::spawn(async move {
        let value = future.await;
        let panics = std::hint::black_box(true);
        assert!(!panics, "{}: a poll", world::PLANNED);
        value
    });
    follow(here, handle, plan.fate).await;
}

/// Runs the tasks of a `LocalSet` on a blocking thread, each with a value that is not `Send`.
async fn local_set(here: &Here, plans: &[TaskPlan]) {
    let (inside, plans, token) = (here.clone(), plans.to_vec(), here.token(Kind::Job));
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
    judge(here, handle.await, false);
}

/// Returns the future of a task that is not `Send`.
pub(super) fn local_future(here: &Here, plan: &TaskPlan) -> impl Future<Output = Value> + use<> {
    let (here, future) = (here.clone(), future(here, plan));
    let own = Rc::new(here.token(Kind::Burden));
    let guard = SameThread { here, thread: thread::current().id(), _own: own };
    async move {
        let value = future.await;
        drop(guard);
        value
    }
}

/// A value that checks that it is dropped on the thread that created it.
struct SameThread {
    here: Here,
    thread: thread::ThreadId,
    _own: Rc<crate::ledger::Token>,
}

impl Drop for SameThread {
    fn drop(&mut self) {
        let dropped_on = thread::current().id();
        self.here.ensure(dropped_on == self.thread, || {
            "a value that is not Send was dropped on another thread".into()
        });
    }
}

#[cfg(feature = "fiber")]
async fn fiber(here: &Here, steps: &Steps, fate: Fate, burden: Burden) {
    use blitz_io::fiber;
    let (token, value) = (here.token(Kind::Task), Value::new(here, burden));
    let (inside, steps) = (here.clone(), steps.clone());
    let body = move || {
        token.ran();
        fiber::wait(run(inside, steps));
        value
    };
    // SAFETY: obligations 1 and 2 are that the closure does not wait in an initialiser or in a
    // scope of a thread-local. `body` waits once, at its top level, inside of neither.
    let spawned = unsafe { fiber::Builder::new().spawn(body) };
    if let Some(handle) = here.check("a fiber", spawned) {
        follow(here, handle, fate).await;
    }
}
