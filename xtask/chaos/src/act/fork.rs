//! Fork-join.

use std::sync::Arc;

use blitz_io::{
    parallel::{self, ThreadPoolBuilder},
    task,
};

use super::tasks::judge;
use crate::{
    ledger::Kind,
    plan::Step,
    world::{self, StepContext, World},
};

pub(super) async fn step(cx: &StepContext, step: &Step) {
    match step {
        Step::Fork { depth, panics } => {
            let (world, depth, panics) = (cx.world.clone(), *depth, *panics);
            let token = cx.token(Kind::Job);
            let leaves = parallel::run(move || {
                token.ran();
                tree(&world, depth, panics)
            });
            count(cx, leaves.await, depth);
        }
        Step::ForkPool { threads, depth } => own_pool(cx, *threads, *depth).await,
        _ => unreachable!("no step of this file"),
    }
}

/// Creates, uses and drops a pool in a job.
async fn own_pool(cx: &StepContext, threads: usize, depth: u32) {
    let (inside, token) = (cx.clone(), cx.token(Kind::Job));
    let handle = task::spawn_blocking(move || {
        token.ran();
        let built = ThreadPoolBuilder::new().num_threads(threads).build();
        let Some(pool) = inside.check("a pool", built) else { return };
        let world = inside.world.clone();
        let leaves = pool.install(|| tree(&world, depth, false));
        count(&inside, leaves, depth);
        let left = inside.token(Kind::Job);
        pool.spawn(move || left.ran());
    });
    judge(cx, handle.await, false);
}

fn count(cx: &StepContext, leaves: u64, depth: u32) {
    cx.ensure(leaves == 1 << depth, || format!("a tree of depth {depth} has {leaves} leaves"));
}

/// Runs a tree of joins and returns the number of leaves.
fn tree(world: &Arc<World>, depth: u32, panics: bool) -> u64 {
    if depth == 0 {
        let leaf = world.token(Kind::Leaf);
        leaf.ran();
        assert!(!panics, "{}: a leaf", world::PLANNED);
        return 1;
    }
    let (left, right) =
        parallel::join(|| tree(world, depth - 1, false), || tree(world, depth - 1, panics));
    left + right
}
