//! User-provided hooks that are called at events in the life of tasks.
//!
//! An arena keeps its runtime's hooks, if there are any; a poll checks for them once. A panic of a
//! hook is reported by the panic hook and then contained, because the runtime's obligations to
//! other tasks must not depend on a hook.

use std::{
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, Location, RefUnwindSafe, UnwindSafe, catch_unwind},
    ptr::NonNull,
    sync::Arc,
    time::Duration,
};

use super::cell::{Header, Id};
use crate::engine::prim::discard;

/// A user's function that is called with a task's metadata.
pub(crate) type TaskHook = Arc<dyn Fn(&TaskMeta<'_>) + Send + Sync>;

/// The task hooks of a runtime.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) on_spawn: Option<TaskHook>,
    pub(crate) before_poll: Option<TaskHook>,
    pub(crate) after_poll: Option<TaskHook>,
    pub(crate) on_terminate: Option<TaskHook>,
    /// True if the hooks around a poll get the time from queueing to polling.
    pub(crate) track_latency: bool,
}

impl Hooks {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { on_spawn, before_poll, after_poll, on_terminate, track_latency: _ } = self;
        [on_spawn, before_poll, after_poll, on_terminate].iter().all(|hook| hook.is_none())
    }
}

/// Calls a hook, if there is one, with the metadata of `task`.
///
/// # Safety
/// 1. The task is alive during the call.
#[cold]
pub(crate) unsafe fn call(hook: Option<&TaskHook>, task: NonNull<Header>) {
    // SAFETY: 1. our own obligation 1 says that the task is alive during the call.
    unsafe { call_with_latency(hook, task, None) };
}

/// Calls a hook, if there is one, and passes on how long the task waited for its poll.
///
/// # Safety
/// 1. The task is alive during the call.
#[cold]
pub(crate) unsafe fn call_with_latency(
    hook: Option<&TaskHook>,
    task: NonNull<Header>,
    latency: Option<Duration>,
) {
    let Some(hook) = hook else { return };
    // Requirement 1 of `TaskMeta::task`: the hook borrows `meta` for the time of this call,
    // during which the task is alive.
    let meta = TaskMeta { task, latency, alive: PhantomData };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| hook(&meta))) {
        discard(payload);
    }
}

/// Information about a task, passed to the hooks of a runtime.
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
    /// 1. The task is alive during `'a`.
    task: NonNull<Header>,
    latency: Option<Duration>,
    alive: PhantomData<&'a Header>,
}

// SAFETY: a `TaskMeta` only reads fields of the task that never change.
unsafe impl Send for TaskMeta<'_> {}
// SAFETY: a shared `TaskMeta` only reads fields of the task that never change.
unsafe impl Sync for TaskMeta<'_> {}

impl UnwindSafe for TaskMeta<'_> {}
impl RefUnwindSafe for TaskMeta<'_> {}

impl TaskMeta<'_> {
    /// Returns the task's ID.
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
        // SAFETY: requirement 1 of the field: the task is alive during `'a`.
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
        // SAFETY: requirement 1 of the field: the task is alive during `'a`.
        unsafe { self.task.as_ref() }.spawned_at
    }

    /// Returns the time from when the task was queued to the poll that the hook is called for.
    ///
    /// The hooks [`on_before_task_poll`] and [`on_after_task_poll`] of one poll get the same value.
    /// It is `Some` if the runtime was built with [`track_task_schedule_latency`] or with
    /// [`enable_metrics_schedule_latency_histogram`]; in the other hooks, and for fibers, it is
    /// `None`. Waking a task that is already queued does not change it. The resolution is one
    /// microsecond.
    ///
    /// [`on_before_task_poll`]: crate::runtime::Builder::on_before_task_poll
    /// [`on_after_task_poll`]: crate::runtime::Builder::on_after_task_poll
    /// [`track_task_schedule_latency`]: crate::runtime::Builder::track_task_schedule_latency
    /// [`enable_metrics_schedule_latency_histogram`]:
    /// crate::runtime::Builder::enable_metrics_schedule_latency_histogram
    ///
    /// # Examples
    ///
    /// ```
    /// let rt = blitz_io::runtime::Builder::new_current_thread()
    ///     .track_task_schedule_latency()
    ///     .on_before_task_poll(|meta| assert!(meta.schedule_latency().is_some()))
    ///     .build()?;
    /// rt.block_on(async { blitz_io::spawn(async {}).await.unwrap() });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn schedule_latency(&self) -> Option<Duration> {
        self.latency
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
        // SAFETY: requirement 1 of the field: the task is alive during `'a`.
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
