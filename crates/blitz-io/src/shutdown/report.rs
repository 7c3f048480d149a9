//! Progress and result of a shutdown.

use std::{fmt, panic::Location, sync::Arc, time::Duration};

use super::members::MemberEntry;
use crate::{
    runtime::dump,
    task::{AbortHandle, Id},
};

/// The progress of a shutdown; see [`Shutdown::progress`](super::Shutdown::progress).
///
/// # Examples
///
/// ```
/// use blitz_io::shutdown::{Phase, Shutdown};
///
/// let shutdown = Shutdown::new();
/// let progress = shutdown.progress();
/// assert_eq!(progress.borrow().phase, Phase::Running);
/// shutdown.begin();
/// assert_eq!(progress.borrow().to_string(), "draining: 0 tasks left");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The phase of the shutdown.
    pub phase: Phase,
    /// The number of tasks that have not ended. It is updated from the beginning of the shutdown
    /// on.
    pub remaining: usize,
}

/// The phase of a shutdown.
///
/// # Examples
///
/// ```
/// use blitz_io::shutdown::Phase;
///
/// assert!(Phase::Running < Phase::Draining && Phase::Aborting < Phase::Over);
/// assert_eq!(Phase::Draining.to_string(), "draining");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The shutdown has not begun.
    Running,
    /// The tokens were cancelled, and the shutdown waits for the tasks to end.
    Draining,
    /// The time limit has passed, and the remaining tasks are being aborted.
    Aborting,
    /// The shutdown is over.
    Over,
}

/// The result of a shutdown; see [`Shutdown::drain`](super::Shutdown::drain).
///
/// # Examples
///
/// ```
/// use blitz_io::{shutdown::Shutdown, time::Duration};
///
/// # blitz_io::run(async {
/// let shutdown = Shutdown::new();
/// shutdown.spawn_with(async |token| token.cancelled().await);
/// let report = shutdown.drain(Duration::from_secs(10)).await;
/// assert!(report.is_clean());
/// assert_eq!(report.finished, 1);
/// # });
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The number of tasks that have ended by themselves since the shutdown began, panics included.
    pub finished: usize,
    /// The tasks that were aborted, oldest first.
    pub aborted: Vec<AbortedTask>,
    /// The time from the beginning of the shutdown until the report.
    pub elapsed: Duration,
}

/// A task that did not end in time and was aborted.
///
/// # Examples
///
/// ```
/// use blitz_io::{shutdown::Shutdown, time::Duration};
///
/// # blitz_io::run(async {
/// let shutdown = Shutdown::new();
/// shutdown.spawn_named("deaf", std::future::pending::<()>());
/// let report = shutdown.drain(Duration::from_millis(1)).await;
/// assert_eq!(report.aborted[0].name(), Some("deaf"));
/// eprintln!("{report}");
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct AbortedTask {
    id: Option<Id>,
    info: TaskInfo,
    ended: bool,
}

/// Everything that is known about a task.
#[derive(Debug, Clone)]
pub(super) struct TaskInfo {
    pub(super) name: Option<Arc<str>>,
    pub(super) spawned_at: &'static Location<'static>,
    /// A description of what the task was doing when it was aborted.
    pub(super) doing: Option<Arc<str>>,
    /// A description of what the task waited for when it was aborted.
    pub(super) waits_for: Option<&'static str>,
}

impl TaskInfo {
    pub(super) fn new(name: Option<&str>, spawned_at: &'static Location<'static>) -> Self {
        Self { name: name.map(Arc::from), spawned_at, doing: None, waits_for: None }
    }

    /// Adds what a dump says about the task.
    pub(super) fn with_dump(mut self, task: Option<&dump::Task>) -> Self {
        if let Some(task) = task {
            let (state, time) = (task.state(), task.time_in_state());
            self.doing = Some(format!("{state} for {time:.1?}: {}", task.trace()).into());
            self.waits_for = task.trace().waits_for();
        }
        self
    }
}

impl Report {
    /// Returns true if no task had to be aborted.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// assert!(Shutdown::new().drain(Duration::ZERO).await.is_clean());
    /// # });
    /// ```
    pub fn is_clean(&self) -> bool {
        self.aborted.is_empty()
    }
}

impl AbortedTask {
    pub(super) fn new(entry: MemberEntry<AbortHandle, TaskInfo>, ended: bool) -> Self {
        Self { id: entry.handle.map(|handle| handle.id()), info: entry.info, ended }
    }

    /// Returns the task's ID; `None` if the thread that spawned the task had not stored its handle
    /// yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// let task = shutdown.spawn(std::future::pending::<()>());
    /// let report = shutdown.drain(Duration::ZERO).await;
    /// assert_eq!(report.aborted[0].id(), Some(task.id()));
    /// # });
    /// ```
    pub fn id(&self) -> Option<Id> {
        self.id
    }

    /// Returns the name of the task, if [`spawn_named`](super::Shutdown::spawn_named) gave it one.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn(std::future::pending::<()>());
    /// assert_eq!(shutdown.drain(Duration::ZERO).await.aborted[0].name(), None);
    /// # });
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.info.name.as_deref()
    }

    /// Returns the source location at which the task was spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn(std::future::pending::<()>());
    /// let report = shutdown.drain(Duration::ZERO).await;
    /// assert!(report.aborted[0].spawned_at().line() > 0);
    /// # });
    /// ```
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.info.spawned_at
    }

    /// Returns a description of what the task waited for when it was aborted, if a primitive of
    /// this runtime made it wait; see [dumps](crate::runtime::dump).
    ///
    /// This is known for tasks of the runtime in which `drain` was awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::{self, Duration}};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn(time::sleep(Duration::from_secs(3600)));
    /// let report = shutdown.drain(Duration::from_millis(20)).await;
    /// assert!(report.aborted[0].waits_for().is_some_and(|what| what.contains("a time")));
    /// # });
    /// ```
    pub fn waits_for(&self) -> Option<&'static str> {
        self.info.waits_for
    }

    /// Returns true if the task has ended.
    ///
    /// A task that does not return from its poll, or that is inside a
    /// [`shield`](crate::task::shield), has not ended, and blocking work cannot be aborted at all.
    ///
    /// # Examples
    ///
    /// ```
    /// use blitz_io::{shutdown::Shutdown, time::Duration};
    ///
    /// # blitz_io::run(async {
    /// let shutdown = Shutdown::new();
    /// shutdown.spawn(std::future::pending::<()>());
    /// assert!(shutdown.drain(Duration::ZERO).await.aborted[0].has_ended());
    /// # });
    /// ```
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Phase::Running => "running",
            Phase::Draining => "draining",
            Phase::Aborting => "aborting",
            Phase::Over => "over",
        })
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} left", self.phase, tasks(self.remaining))
    }
}

impl fmt::Display for AbortedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("task")?;
        if let Some(id) = self.id {
            write!(f, " {id}")?;
        }
        if let Some(name) = self.name() {
            write!(f, " {name:?}")?;
        }
        write!(f, ", spawned at {}", self.spawned_at())?;
        if let Some(doing) = &self.info.doing {
            write!(f, ", {doing}")?;
        }
        f.write_str(if self.ended { "" } else { "; it has still not ended" })
    }
}

/// Prints one line, and another one for each task that was aborted.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} finished", tasks(self.finished))?;
        if !self.is_clean() {
            write!(f, ", {} aborted", self.aborted.len())?;
        }
        write!(f, " in {:.1?}", self.elapsed)?;
        self.aborted.iter().try_for_each(|task| write!(f, "\n  {task}"))
    }
}

fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}
