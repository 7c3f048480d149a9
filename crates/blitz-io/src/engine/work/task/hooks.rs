//! What users hang onto the life of tasks.
//!
//! A home keeps its runtime's hooks, if there are any; a poll looks there once. A
//! hook that panics is reported by the panic hook, and the panic ends there: what
//! the runtime owes others must not depend on a hook.

use std::{
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, Location, RefUnwindSafe, UnwindSafe, catch_unwind},
    ptr::NonNull,
    sync::Arc,
};

use super::cell::{Header, Id};
use crate::engine::prim::discard;

/// A user's function that is told of a task.
pub(crate) type TaskHook = Arc<dyn Fn(&TaskMeta<'_>) + Send + Sync>;

/// All of them.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) on_spawn: Option<TaskHook>,
    pub(crate) before_poll: Option<TaskHook>,
    pub(crate) after_poll: Option<TaskHook>,
    pub(crate) on_terminate: Option<TaskHook>,
}

impl Hooks {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { on_spawn, before_poll, after_poll, on_terminate } = self;
        [on_spawn, before_poll, after_poll, on_terminate].iter().all(|hook| hook.is_none())
    }
}

/// Calls a hook, if there is one, with what may be known of `task`.
///
/// # Safety
/// 1. The task is alive during the call.
#[cold]
pub(crate) unsafe fn call(hook: Option<&TaskHook>, task: NonNull<Header>) {
    let Some(hook) = hook else { return };
    // 1. of the type: the hook gets it for the time of the call.
    let meta = TaskMeta { task, alive: PhantomData };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| hook(&meta))) {
        discard(payload);
    }
}

/// Task metadata supplied to user-provided hooks for task events.
///
/// # Examples
///
/// ```
/// let rt = blitz_io::runtime::Builder::new_current_thread()
///     .on_task_spawn(|meta| println!("{} spawned at {}", meta.id(), meta.spawned_at()))
///     .build()?;
/// rt.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TaskMeta<'a> {
    /// 1. It is alive during `'a`.
    task: NonNull<Header>,
    alive: PhantomData<&'a Header>,
}

// SAFETY: through it only fields are read that never change.
unsafe impl Send for TaskMeta<'_> {}
// SAFETY: as above.
unsafe impl Sync for TaskMeta<'_> {}

impl UnwindSafe for TaskMeta<'_> {}
impl RefUnwindSafe for TaskMeta<'_> {}

impl TaskMeta<'_> {
    /// Returns the opaque ID of the task.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .on_task_terminate(|meta| println!("{} has ended", meta.id()))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn id(&self) -> Id {
        // SAFETY: 1. of the type.
        unsafe { self.task.as_ref() }.id
    }

    /// Returns where in the source the task was spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .on_task_spawn(|meta| assert!(meta.spawned_at().line() > 0))
    ///     .build()?;
    /// rt.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawned_at(&self) -> &'static Location<'static> {
        // SAFETY: 1. of the type.
        unsafe { self.task.as_ref() }.spawned_at
    }

    /// Returns the name that [`task::Builder::name`](crate::task::Builder::name) gave
    /// the task.
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .on_task_spawn(|meta| println!("{}", meta.name().unwrap_or("nameless")))
    ///     .build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        // SAFETY: 1. of the type.
        unsafe { Header::name(self.task) }.map(|name| &**name)
    }
}

impl fmt::Debug for TaskMeta<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskMeta")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("spawned_at", &self.spawned_at())
            .finish()
    }
}
