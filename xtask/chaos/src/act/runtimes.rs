//! Runtimes that are created, driven and ended, on their own or inside of others.

use std::{io, sync::Arc, thread};

use blitz_io::{
    runtime::{Builder, LocalOptions, Preemption, Runtime},
    task,
};

use super::{
    burden::drop_quietly,
    micros,
    tasks::{self, follow, judge, local_future, spawn_on},
};
use crate::{
    ledger::Kind,
    options::Slice,
    plan::{End, Fate, Flavour, Place, RuntimePlan},
    world::{StepContext, World},
};

/// Runs a runtime inside of the step's own.
pub(super) async fn step(cx: &StepContext, plan: &RuntimePlan) {
    let (world, inner) = (cx.world.clone(), plan.clone());
    let token = cx.token(Kind::Job);
    let work = move || {
        token.ran();
        run_here(&world, &inner, None);
    };
    match plan.place {
        Place::Job => drop(judge(cx, task::spawn_blocking(work).await, false)),
        Place::Worker => task::block_in_place(work),
        Place::Thread => {
            let thread = thread::spawn(work);
            let joined = task::spawn_blocking(move || thread.join().is_ok()).await;
            let joined = judge(cx, joined, false);
            cx.ensure(joined != Some(false), || "the thread of a runtime panicked".into());
        }
        Place::Task => {
            drop(work);
            in_task(cx, plan).await;
        }
    }
}

fn builder(world: &World, flavour: Flavour) -> Builder {
    let mut builder = match flavour {
        Flavour::Workers(count) => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(count);
            match world.options.slice {
                Slice::Default => {}
                Slice::Off => drop(builder.preemption(Preemption::disabled())),
                Slice::Of(slice) => drop(builder.preemption(Preemption::new().slice(slice))),
            }
            builder
        }
        Flavour::OneThread | Flavour::Local => Builder::new_current_thread(),
    };
    // Overlong polls are planned, and reports of them would fill the screen.
    builder.enable_all().on_task_stall(|_| {});
    builder
}

fn name(plan: &RuntimePlan) -> String {
    format!("{:?} made in a {:?} with {} tasks", plan.flavour, plan.place, plan.tasks.len())
}

/// Creates a runtime on this thread, drives it, and ends it.
pub(crate) fn run_here(world: &Arc<World>, plan: &RuntimePlan, plant: Option<crate::plant::Plant>) {
    let cx = StepContext::new(world.clone());
    let mut builder = builder(world, plan.flavour);
    if plan.flavour == Flavour::Local {
        let built = builder.build_local(LocalOptions::default());
        let Some(runtime) = cx.check("a local runtime", built) else { return };
        world.note_runtime(name(plan), runtime.handle().clone());
        runtime.block_on(root(&cx, plan, None, plant));
        thread::sleep(micros(plan.pause));
        cx.end();
        match plan.end {
            End::Drop | End::DropElsewhere => drop(runtime),
            End::Timeout(limit) => runtime.shutdown_timeout(micros(limit)),
            End::Background => runtime.shutdown_background(),
        }
        return;
    }
    let Some(runtime) = cx.check("a runtime", builder.build()) else { return };
    world.note_runtime(name(plan), runtime.handle().clone());
    runtime.block_on(root(&cx, plan, Some(&runtime), plant));
    thread::sleep(micros(plan.pause));
    cx.end();
    match plan.end {
        End::Drop => drop(runtime),
        End::Timeout(limit) => runtime.shutdown_timeout(micros(limit)),
        End::Background => runtime.shutdown_background(),
        End::DropElsewhere => {
            let ended = thread::spawn(move || drop(runtime)).join();
            cx.ensure(ended.is_ok(), || "the drop of a runtime panicked".into());
        }
    }
}

/// Spawns the tasks and awaits the first of them.
async fn root(
    cx: &StepContext,
    plan: &RuntimePlan,
    runtime: Option<&Runtime>,
    plant: Option<crate::plant::Plant>,
) {
    let mut followed = Vec::new();
    for (number, planned) in plan.tasks.iter().enumerate() {
        let handle = match runtime {
            None => task::spawn_local(local_future(cx, planned)),
            Some(runtime) => spawn_on(cx, planned, runtime.handle()),
        };
        if number < plan.awaited {
            followed.push((handle, planned.fate));
        } else {
            drop_quietly(handle);
        }
    }
    for (handle, fate) in followed {
        match fate {
            // A panic in a destructor would end the runtime early.
            Fate::Awaited => drop_quietly(judge(cx, handle.await, false)),
            Fate::Detached => drop_quietly(handle),
            Fate::Aborted(_) => {
                let cx = cx.clone();
                let followed = blitz_io::spawn(async move { follow(&cx, handle, fate).await });
                // Aborting needs only a timer, and can panic only by the output's destructor.
                drop_quietly(followed.await);
            }
        }
    }
    if let Some(plant) = plant {
        plant.plant(cx).await;
    }
}

/// Shuts a runtime down in the background when dropped, as is required inside a task.
struct InTask {
    runtime: Option<Runtime>,
    cx: StepContext,
}

impl Drop for InTask {
    fn drop(&mut self) {
        self.cx.end();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Creates and ends a runtime inside a task. A runtime without workers is driven by no thread, so
/// its tasks are dropped at its end.
async fn in_task(cx: &StepContext, plan: &RuntimePlan) {
    let built: io::Result<Runtime> = builder(&cx.world, plan.flavour).build();
    let Some(runtime) = cx.check("a runtime", built) else { return };
    cx.world.note_runtime(name(plan), runtime.handle().clone());
    let inside = StepContext::new(cx.world.clone());
    let owner = InTask { runtime: Some(runtime), cx: inside.clone() };
    let Some(runtime) = &owner.runtime else { return };
    let mut handles: Vec<_> =
        plan.tasks.iter().map(|task| tasks::spawn_on(&inside, task, runtime.handle())).collect();
    let awaited = if plan.flavour == Flavour::OneThread { 0 } else { plan.awaited };
    for handle in handles.drain(..awaited) {
        drop_quietly(judge(&inside, handle.await, false));
    }
    for handle in handles {
        drop_quietly(handle);
    }
    drop(owner);
}
