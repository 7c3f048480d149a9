//! Snapshots of a runtime's tasks.
//!
//! [`Handle::dump`](super::Handle::dump) returns every live task: its ID and name, where it was
//! spawned, its state and for how long it has been in it, and what it waits for, as far as the
//! runtime knows. It works while workers are stuck in a poll.
//!
//! # Examples
//!
//! ```
//! use blitz_io::{runtime::Handle, task};
//!
//! # blitz_io::run(async {
//! let task = task::Builder::new().name("sleeper").spawn(std::future::pending::<()>())?;
//! let dump = Handle::current().dump().await;
//! let found = dump.tasks().iter().find(|found| found.id() == task.id()).unwrap();
//! assert_eq!(found.name(), Some("sleeper"));
//! println!("{dump}");
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```

use std::{fmt, panic::Location, time::Duration};

use crate::{
    engine::{
        pool::dump::{TaskDescription, TaskList},
        wait::holders::{self, AwaitedLock},
        work::task::{state::Phase, timestamp::WaitReason},
    },
    task::Id,
};

/// The number of lock holders that are printed for a task. It was chosen, not measured.
const HOLDERS_SHOWN: usize = 8;

/// A snapshot of the tasks of a runtime, taken by [`Handle::dump`](super::Handle::dump).
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let dump = blitz_io::runtime::Handle::current().dump().await;
/// println!("{dump}");
/// # });
/// ```
#[derive(Debug)]
pub struct Dump {
    tasks: Tasks,
    missed: usize,
}

/// The tasks of a [`Dump`].
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// let dump = blitz_io::runtime::Handle::current().dump().await;
/// println!("{} tasks", dump.tasks().iter().count());
/// # });
/// ```
#[derive(Debug)]
pub struct Tasks {
    tasks: Vec<Task>,
}

/// A snapshot of one task.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// for task in blitz_io::runtime::Handle::current().dump().await.tasks().iter() {
///     println!("{} for {:?}: {task}", task.state(), task.time_in_state());
/// }
/// # });
/// ```
#[derive(Debug)]
pub struct Task {
    task: TaskDescription,
    trace: Trace,
}

/// The state of a task when the snapshot was taken.
///
/// # Examples
///
/// ```
/// use blitz_io::runtime::{Handle, dump::State};
///
/// # blitz_io::run(async {
/// let task = blitz_io::spawn(async {
///     Handle::current().dump().await.tasks().iter().map(|task| task.state()).collect::<Vec<_>>()
/// });
/// assert_eq!(task.await.unwrap(), [State::Running]);
/// # });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// The task waits to be woken.
    Idle,
    /// The task was woken or spawned, and waits for a worker.
    Queued,
    /// The task is being polled or dropped.
    Running,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Idle => "idle",
            State::Queued => "queued",
            State::Running => "running",
        })
    }
}

/// The location at which a task waits, as far as it is known.
///
/// The primitives of this runtime record what a task waits for. For a future from another library
/// only the name of the task's type is known.
///
/// # Examples
///
/// ```
/// # blitz_io::run(async {
/// for task in blitz_io::runtime::Handle::current().dump().await.tasks().iter() {
///     println!("{}", task.trace());
/// }
/// # });
/// ```
#[derive(Debug)]
pub struct Trace {
    future: &'static str,
    waits_for: Option<&'static str>,
    lock: Option<AwaitedLock>,
}

impl Dump {
    pub(crate) fn new(list: TaskList) -> Self {
        let tasks = list.tasks.into_iter().map(Task::new).collect();
        Self { tasks: Tasks { tasks }, missed: list.missed }
    }

    /// Returns the tasks in this snapshot, ordered by their IDs.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// assert_eq!(dump.tasks().iter().count(), 0);
    /// # });
    /// ```
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns how many lists of tasks are missing from this snapshot: nearly always zero.
    ///
    /// A runtime has one list for each worker, and a few for tasks that are spawned from outside. A
    /// list is missing if the operating system did not run the thread that was just changing it.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// assert_eq!(dump.missed_lists(), 0);
    /// # });
    /// ```
    pub fn missed_lists(&self) -> usize {
        self.missed
    }
}

impl Tasks {
    /// Returns an iterator over the tasks.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// for task in dump.tasks().iter() {
    ///     println!("{}", task.id());
    /// }
    /// # });
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }
}

impl Task {
    fn new(task: TaskDescription) -> Self {
        let idle = task.phase == Phase::Idle;
        let lock = idle.then(|| holders::awaited_by(task.id)).flatten();
        let trace = Trace { future: task.future, waits_for: task.wait.describe(), lock };
        Self { task, trace }
    }

    /// Returns the [ID](Id) of the task.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// let task = blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// assert!(dump.tasks().iter().any(|found| found.id() == task.id()));
    /// # });
    /// ```
    pub fn id(&self) -> Id {
        self.task.id
    }

    /// Returns the name of the task, if [`task::Builder::name`](crate::task::Builder::name) set
    /// one.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// assert_eq!(dump.tasks().iter().next().unwrap().name(), None);
    /// # });
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.task.name.as_deref()
    }

    /// Returns the source location at which the task was spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// println!("{}", dump.tasks().iter().next().unwrap().spawned_at());
    /// # });
    /// ```
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.task.spawned_at
    }

    /// Returns the state of the task: idle, queued or running.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// println!("{}", dump.tasks().iter().next().unwrap().state());
    /// # });
    /// ```
    pub fn state(&self) -> State {
        match self.task.phase {
            Phase::Idle => State::Idle,
            Phase::Queued => State::Queued,
            Phase::Running | Phase::Complete => State::Running,
        }
    }

    /// Returns how long the task had been in its state.
    ///
    /// The precision is that of the clocks that the runtime reads anyway: a few dozen polls on a
    /// worker, and a step of the system's coarse clock elsewhere. For an idle task the time counts
    /// from the beginning of its last poll.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// println!("{:?}", dump.tasks().iter().next().unwrap().time_in_state());
    /// # });
    /// ```
    pub fn time_in_state(&self) -> Duration {
        self.task.in_phase
    }

    /// Returns the location at which the task waits, as far as it is known.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// println!("{}", dump.tasks().iter().next().unwrap().trace());
    /// # });
    /// ```
    pub fn trace(&self) -> &Trace {
        &self.trace
    }
}

impl Trace {
    /// Returns the name of the type of the task's future, which contains the name of its `async`
    /// function or block.
    ///
    /// # Examples
    ///
    /// ```
    /// async fn serve() {
    ///     std::future::pending().await
    /// }
    ///
    /// # blitz_io::run(async {
    /// blitz_io::spawn(serve());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// assert!(dump.tasks().iter().next().unwrap().trace().future().contains("serve"));
    /// # });
    /// ```
    pub fn future(&self) -> &'static str {
        self.future
    }

    /// Returns a description of what the task waits for, if a primitive of this runtime made it
    /// wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// assert_eq!(dump.tasks().iter().next().unwrap().trace().waits_for(), None);
    /// # });
    /// ```
    pub fn waits_for(&self) -> Option<&'static str> {
        self.waits_for
    }

    /// Returns the source location at which the task requested the lock that it waits for. Only
    /// debug builds record it.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// assert!(dump.tasks().iter().next().unwrap().trace().lock_requested_at().is_none());
    /// # });
    /// ```
    pub fn lock_requested_at(&self) -> Option<&'static Location<'static>> {
        self.lock.as_ref().map(|lock| lock.location)
    }

    /// Returns the holders of the lock that the task waits for, with the source locations at which
    /// they acquired it. Only debug builds record them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blitz_io::{runtime::Handle, sync::Mutex};
    ///
    /// # blitz_io::run(async {
    /// let mutex = Arc::new(Mutex::new(1));
    /// let _guard = mutex.clone().lock_owned().await;
    /// blitz_io::spawn(async move { *mutex.lock().await += 1 });
    /// for task in Handle::current().dump().await.tasks().iter() {
    ///     for holder in task.trace().lock_holders() {
    ///         println!("{} waits for {holder}", task.id());
    ///     }
    /// }
    /// # });
    /// ```
    #[cfg(feature = "sync")]
    pub fn lock_holders(&self) -> &[crate::sync::Holder] {
        self.lock.as_ref().map_or(&[], |lock| &lock.holders)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.future)?;
        if let Some(what) = self.waits_for {
            write!(f, " waits for {what}")?;
        }
        let Some(AwaitedLock { location, holders }) = &self.lock else { return Ok(()) };
        if self.waits_for != WaitReason::Lock.describe() {
            // The task waits for several things at once, and the lock was not the last of them.
            f.write_str(" and for a lock")?;
        }
        write!(f, ", requested at {location}")?;
        for (count, holder) in holders.iter().enumerate() {
            // A lock may have thousands of readers, so the list is cut off.
            if count == HOLDERS_SHOWN {
                return write!(f, ", and {} more", holders.len() - count);
            }
            write!(f, "{} {holder}", if count == 0 { ", held by" } else { ";" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id())?;
        if let Some(name) = self.name() {
            write!(f, " {name:?}")?;
        }
        write!(f, " {} for {:?}, ", self.state(), self.time_in_state())?;
        write!(f, "spawned at {}: {}", self.spawned_at(), self.trace)
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for task in self.tasks.iter() {
            writeln!(f, "{task}")?;
        }
        if self.missed > 0 {
            writeln!(f, "{} lists of tasks are missing", self.missed)?;
        }
        Ok(())
    }
}
