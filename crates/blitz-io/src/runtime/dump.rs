//! Snapshots of a runtime's tasks.
//!
//! [`Handle::dump`](super::Handle::dump) answers with every task that lives: who it
//! is, where it was spawned, what it is doing, for how long, and what it waits for
//! as far as the runtime knows. It works while workers are stuck in a poll.
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
        pool::dump::{Census, Known},
        wait::holders::{self, Awaited},
        work::task::{moment::Wait, state::Phase},
    },
    task::Id,
};

/// So many holders of a lock are written out: picked.
const HOLDERS_SHOWN: usize = 8;

/// A snapshot of a runtime's state.
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

/// Snapshots of tasks.
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

/// A snapshot of a task.
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
    known: Known,
    trace: Trace,
}

/// What a task was doing when the snapshot was taken.
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
    /// It waits to be woken.
    Idle,
    /// It was woken, or spawned, and waits for a worker.
    Queued,
    /// It is being polled, or dropped.
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

/// Where a task waits, as far as that is known.
///
/// The primitives of this runtime say what they make a task wait for; a future from
/// elsewhere leaves no trace but the name of the task's type.
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
    lock: Option<Awaited>,
}

impl Dump {
    pub(crate) fn new(census: Census) -> Self {
        let tasks = census.tasks.into_iter().map(Task::new).collect();
        Self { tasks: Tasks { tasks }, missed: census.missed }
    }

    /// Tasks in this snapshot, by their IDs.
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

    /// Returns how many of the runtime's lists of tasks (one per worker, and a few for
    /// tasks spawned from outside) are missing: the system did not run the thread
    /// that was just changing that list. Zero, as good as always.
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
    /// Iterate over tasks.
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
    fn new(known: Known) -> Self {
        let idle = known.phase == Phase::Idle;
        let lock = idle.then(|| holders::awaited_by(known.id)).flatten();
        let trace = Trace { future: known.future, waits_for: known.wait.describe(), lock };
        Self { known, trace }
    }

    /// Returns a [task ID](Id) that uniquely identifies this task.
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
        self.known.id
    }

    /// Returns the name that [`task::Builder::name`](crate::task::Builder::name) gave
    /// it.
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
        self.known.name.as_deref()
    }

    /// Returns where in the source it was spawned.
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
        self.known.spawned_at
    }

    /// Returns what it was doing.
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
        match self.known.phase {
            Phase::Idle => State::Idle,
            Phase::Queued => State::Queued,
            Phase::Running | Phase::Complete => State::Running,
        }
    }

    /// Returns how long it had been doing that.
    ///
    /// Times are as coarse as the clocks that the runtime keeps
    /// anyway: a few dozen polls on a worker, a tick of the system outside. An idle task counts from the
    /// beginning of its last poll.
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
        self.known.in_phase
    }

    /// Returns where it waits, as far as that is known.
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
    /// Returns the name of the type of the task's future, which names the `async`
    /// function or block that it is.
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

    /// Returns what it waits for, in words, if it was a primitive of this runtime that
    /// made it wait.
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

    /// Returns where in the source it asked for the lock that it waits for: in debug
    /// builds.
    ///
    /// # Examples
    ///
    /// ```
    /// # blitz_io::run(async {
    /// blitz_io::spawn(std::future::pending::<()>());
    /// let dump = blitz_io::runtime::Handle::current().dump().await;
    /// assert!(dump.tasks().iter().next().unwrap().trace().lock_asked_for_at().is_none());
    /// # });
    /// ```
    pub fn lock_asked_for_at(&self) -> Option<&'static Location<'static>> {
        self.lock.as_ref().map(|lock| lock.location)
    }

    /// Returns who holds the lock that it waits for, and where they took it: in debug
    /// builds.
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
        let Some(Awaited { location, holders }) = &self.lock else { return Ok(()) };
        if self.waits_for != Wait::Lock.describe() {
            // It waits for several things at once, and the lock was not the last.
            f.write_str(" and for a lock")?;
        }
        write!(f, ", asked for at {location}")?;
        for (count, holder) in holders.iter().enumerate() {
            // A lock may have thousands of readers.
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
