//! Tasks that stay on their thread.

use std::{future::Future, panic::Location};

use super::{JoinHandle, is_large};
use crate::{
    engine::{local::context as sets, pool::local::RefusedLocal},
    runtime::context,
};

mod set;

pub use self::set::{LocalEnterGuard, LocalSet};

/// Spawns a `!Send` future on the current [`LocalSet`] or
/// [`LocalRuntime`](crate::runtime::LocalRuntime).
///
/// The task runs on this thread, and its future is dropped on this thread, whoever
/// wakes or aborts it. It starts at once, whether or not the handle is awaited.
///
/// On a thread whose current runtime is a `LocalRuntime` that runtime takes it,
/// also inside of a `LocalSet`. Elsewhere it is the set whose
/// [`run_until`](LocalSet::run_until), poll or [`enter`](LocalSet::enter) is the
/// innermost.
///
/// # Panics
///
/// Outside of both, and on a thread that has entered the `LocalRuntime` of another.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use blitz_io::task::{self, LocalSet};
///
/// # blitz_io::run(async {
/// LocalSet::new()
///     .run_until(async {
///         let shared = Rc::new(41);
///         let handle = task::spawn_local(async move { *shared + 1 });
///         assert_eq!(handle.await.unwrap(), 42);
///     })
///     .await;
/// # });
/// ```
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let spawned_at = Location::caller();
    if is_large::<F>() {
        return spawn_sized(Box::pin(future), spawned_at);
    }
    spawn_sized(future, spawned_at)
}

/// What became of a future that was offered to the current runtime.
enum Offered<F: Future> {
    Spawned(JoinHandle<F::Output>),
    Refused(RefusedLocal<F>),
    /// The runtime belongs to another thread.
    Elsewhere,
    /// It is none that takes local tasks.
    NotLocal(F),
}

#[track_caller]
fn spawn_sized<F: Future + 'static>(
    future: F,
    spawned_at: &'static Location<'static>,
) -> JoinHandle<F::Output> {
    let mut future = Some(future);
    // Dropping the future may leave the runtime's context and end the runtime, so
    // nothing of it is borrowed where that can happen.
    let offered = context::with_current(|inner| {
        if !inner.pool.is_local() {
            return Offered::NotLocal(future.take().expect("it was not offered before"));
        }
        if !inner.pool.is_local_here() {
            return Offered::Elsewhere;
        }
        let future = future.take().expect("it was not offered before");
        match inner.pool.spawn_local(future, spawned_at) {
            Ok(handle) => Offered::Spawned(handle),
            Err(refused) => Offered::Refused(refused),
        }
    });
    let future = match offered {
        Ok(Offered::Spawned(handle)) => return handle,
        Ok(Offered::Refused(refused)) => return refused.end(spawned_at),
        Ok(Offered::Elsewhere) => panic!(
            "Local tasks can only be spawned on a LocalRuntime from the thread the runtime was \
             created on: use `spawn` with a future that is `Send`"
        ),
        Ok(Offered::NotLocal(future)) => future,
        Err(_) => future.take().expect("there was nobody to offer it to"),
    };
    match sets::entered() {
        Some(set) => set.spawn(future, spawned_at),
        None => panic!(
            "`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`: \
             call it inside `LocalSet::run_until` or `LocalRuntime::block_on`, or after \
             `LocalSet::enter`"
        ),
    }
}
