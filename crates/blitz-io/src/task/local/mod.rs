//! Spawning tasks that stay on their thread.

use std::{future::Future, panic::Location};

use super::{JoinHandle, is_large};
use crate::{
    engine::{
        local::context as sets,
        pool::local::RefusedLocal,
        work::task::{cell::Label, extra::Extra, trace},
    },
    runtime::context,
};

mod set;

pub use self::set::{LocalEnterGuard, LocalSet};

/// Spawns a future that need not be [`Send`] as a task of the current [`LocalSet`] or
/// [`LocalRuntime`](crate::runtime::LocalRuntime).
///
/// The task runs on this thread, and its future is dropped on this thread, whichever thread wakes
/// or aborts it. It starts at once, whether or not the handle is awaited.
///
/// If the current runtime of this thread is a `LocalRuntime`, the task is spawned on that runtime,
/// even inside of a `LocalSet`. Otherwise it is spawned on the set with the innermost
/// [`run_until`](LocalSet::run_until), poll or [`enter`](LocalSet::enter).
///
/// # Panics
///
/// Outside of both, and on a thread that has entered a `LocalRuntime` of another thread.
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
        return spawn_labelled(Box::pin(future), Label::at(spawned_at));
    }
    spawn_labelled(future, Label::at(spawned_at))
}

/// The result of offering a future to the current runtime.
enum Offered<F: Future, X> {
    Spawned(JoinHandle<F::Output>),
    Refused(RefusedLocal<F, X>),
    /// The runtime belongs to another thread.
    Elsewhere,
    /// The current runtime does not take local tasks.
    NotLocal(F, Label<X>),
}

#[track_caller]
pub(crate) fn spawn_labelled<F, X>(future: F, label: Label<X>) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    X: Extra,
{
    let mut offer = Some(trace::trace(future, label, trace::TaskKind::Local));
    // Dropping the future may leave the runtime's context and end the runtime, so nothing of the
    // runtime may be borrowed where the future can be dropped.
    let offered = context::with_current(|inner| {
        if !inner.pool.is_local() {
            let (future, label) = offer.take().expect("it was not offered before");
            return Offered::NotLocal(future, label);
        }
        if !inner.pool.is_owner_thread() {
            return Offered::Elsewhere;
        }
        let (future, label) = offer.take().expect("it was not offered before");
        match inner.pool.spawn_local(future, label) {
            Ok(handle) => Offered::Spawned(handle),
            Err(refused) => Offered::Refused(refused),
        }
    });
    let (future, label) = match offered {
        Ok(Offered::Spawned(handle)) => return handle,
        Ok(Offered::Refused(refused)) => return refused.end(),
        Ok(Offered::Elsewhere) => panic!(
            "Local tasks can only be spawned on a LocalRuntime from the thread the runtime was \
             created on: use `spawn` with a future that is `Send`"
        ),
        Ok(Offered::NotLocal(future, label)) => (future, label),
        Err(_) => offer.take().expect("no set took the offer"),
    };
    match sets::entered() {
        Some(set) => set.spawn(future, label),
        None => panic!(
            "`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`: \
             call it inside `LocalSet::run_until` or `LocalRuntime::block_on`, or after \
             `LocalSet::enter`"
        ),
    }
}
