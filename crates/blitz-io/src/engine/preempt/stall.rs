//! Reports on tasks that have been in one poll for too long.
//!
//! The monitor only notes what it sees and goes on, because a user's callback, a `tracing`
//! subscriber and standard error may all block. Reports are delivered by a reporter thread, one for
//! the process, which is started by the first report and stays. Its queue is bounded: a report that
//! does not fit is dropped, and the next report gives the number of dropped ones.
//!
//! The reporter thread also has the time to find out what the stuck thread waits for and where it
//! is, as long as that thread is still in the reported poll ([`StalledPoll`]).

use std::{fmt, panic::Location, ptr::NonNull, sync::Arc, time::Duration};

use super::{
    Settings, WatchRecord,
    stack::{self, StackCapture, StackFrame},
    system_call::SystemCall,
};
use crate::engine::work::task::cell::{Header, Id};

/// A user's callback for stalled tasks.
pub(crate) type OnStall = Arc<dyn Fn(&StallReport) + Send + Sync>;

/// Kind of stall: what a task does that has been in one poll for too long.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use blitz_io::runtime::{Builder, StallKind};
///
/// let (sender, reports) = mpsc::channel();
/// let rt = Builder::new_multi_thread()
///     .on_task_stall(move |stall| drop(sender.send(stall.kind())))
///     .build()?;
/// let task = rt.spawn(async move { reports.recv().unwrap() });
/// let expected =
///     if cfg!(target_os = "linux") { StallKind::Blocked } else { StallKind::Unknown };
/// assert_eq!(rt.block_on(task)?, expected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallKind {
    /// The task computes: its thread has used processor time.
    Computing,
    /// The task waits for something outside of the runtime: a lock of the standard library, a file,
    /// a name lookup, a sleep of the thread.
    Blocked,
    /// Not known, because this system does not report the processor time of a thread.
    Unknown,
}

/// Report about a task that has been in one poll for longer than a slice, passed to the callback of
/// [`Builder::on_task_stall`](crate::runtime::Builder::on_task_stall).
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, thread, time::Duration};
/// use blitz_io::{runtime::{Builder, StallKind}, task};
///
/// let (sender, reports) = mpsc::channel();
/// let rt = Builder::new_multi_thread()
///     .worker_threads(1)
///     .on_task_stall(move |stall| drop(sender.send(stall.clone())))
///     .build()?;
/// rt.block_on(async {
///     task::Builder::new()
///         .name("sleepy")
///         .spawn(async { thread::sleep(Duration::from_millis(200)) })?
///         .await?;
///     Ok::<(), Box<dyn std::error::Error>>(())
/// }).unwrap();
/// let stall = reports.recv().unwrap();
/// assert_eq!(stall.name(), Some("sleepy"));
/// assert_eq!(stall.worker(), Some(0));
/// assert!(stall.spawned_at().file().ends_with(".rs"));
/// assert_ne!(stall.kind(), StallKind::Computing);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StallReport {
    task: Id,
    name: Option<Arc<str>>,
    spawned_at: &'static Location<'static>,
    future: &'static str,
    site: PollSite,
    duration: Duration,
    kind: StallKind,
    others_continue: bool,
    waits_in: Option<SystemCall>,
    frames: Arc<[StackFrame]>,
    lost_reports: u64,
}

impl StallReport {
    /// Returns the task's ID.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.task())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// let id = task.id();
    /// assert_eq!(rt.block_on(task)?, id);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn task(&self) -> Id {
        self.task
    }

    /// Returns the task's name, if it was [given one](crate::task::Builder::name).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.name().map(str::to_owned))))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = blitz_io::task::Builder::new()
    ///     .name("sleepy")
    ///     .spawn_on(async move { reports.recv().unwrap() }, rt.handle())?;
    /// assert_eq!(rt.block_on(task)?.as_deref(), Some("sleepy"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the source location where the task was spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.spawned_at())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// assert!(rt.block_on(task)?.file().ends_with(".rs"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.spawned_at
    }

    /// Returns the type name of the task's future.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.future())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// assert!(rt.block_on(task)?.contains("closure"), "as blocks are called");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn future(&self) -> &'static str {
        self.future
    }

    /// Returns the index of the worker that polled the task, as
    /// [`worker_index`](crate::runtime::worker_index) counts; for a [fiber](Self::is_fiber), the
    /// index of its thread among those that run fibers.
    ///
    /// Returns `None` for a task of a [`LocalSet`](crate::task::LocalSet) that a `block_on` of a
    /// multi-thread runtime polls, and for a task that was caught before and has since been polled
    /// without a worker ([`learning`](crate::runtime::Preemption::learning)).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .on_task_stall(move |stall| drop(sender.send(stall.worker())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// assert_eq!(rt.block_on(task)?, Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker(&self) -> Option<usize> {
        match self.site {
            PollSite::Worker(number) | PollSite::Fiber(number) => Some(number),
            PollSite::BlockOn | PollSite::Offloaded => None,
        }
    }

    /// Returns true if the task is a fiber. The other fibers of its thread wait for it, because
    /// they cannot run on another thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.is_fiber())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// assert!(!rt.block_on(task)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_fiber(&self) -> bool {
        matches!(self.site, PollSite::Fiber(_))
    }

    /// Returns the least time that the poll had lasted when the stall was noted. The poll goes on
    /// after that.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new())
    ///     .on_task_stall(move |stall| drop(sender.send(stall.duration())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// assert!(rt.block_on(task)? >= std::time::Duration::from_millis(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns whether the task computes or is blocked.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.kind())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// assert_ne!(rt.block_on(task)?, blitz_io::runtime::StallKind::Computing);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kind(&self) -> StallKind {
        self.kind
    }

    /// Returns the system call that the task's thread waits in, if the task is
    /// [blocked](StallKind::Blocked) and the system reports the call: Linux does, except in some
    /// sandboxes. For a lock the call has the address, for a file or a socket the descriptor.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.waits_in().copied())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// // Not known on other systems and in some sandboxes.
    /// if let Some(call) = rt.block_on(task)? {
    ///     assert!(call.to_string().contains("waits"), "{call}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn waits_in(&self) -> Option<&SystemCall> {
        self.waits_in.as_ref()
    }

    /// Returns the stack of the task's thread, innermost call first, captured just before the
    /// report was delivered.
    ///
    /// The slice is empty unless [`capture_stacks`](crate::runtime::Preemption::capture_stacks) is
    /// on; its documentation says when frames are missing.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{sync::mpsc, time::{Duration, Instant}};
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(sender.send(stall.clone())))
    ///     .build()?;
    /// let hog = rt.spawn(async {
    ///     let began = Instant::now();
    ///     while began.elapsed() < Duration::from_millis(300) {}
    /// });
    /// let stall = reports.recv().unwrap();
    /// // Empty on other systems, or if the thread was not scheduled for a while.
    /// assert!(stall.frames().len() <= 64);
    /// for frame in stall.frames() {
    ///     println!("{frame}");
    /// }
    /// rt.block_on(hog).unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn frames(&self) -> &[StackFrame] {
        &self.frames
    }

    /// Returns true if other tasks go on meanwhile: the worker's core was handed off to another
    /// thread, or the task was polled without a worker to begin with.
    ///
    /// If false, all tasks that wait for that worker wait for the end of this poll, or for other
    /// workers that steal them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new())
    ///     .on_task_stall(move |stall| drop(sender.send(stall.was_handed_off())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// assert!(rt.block_on(task)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn was_handed_off(&self) -> bool {
        self.others_continue
    }

    /// Returns the number of reports lost before this one because the callback is too slow.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (sender, reports) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(sender.send(stall.lost_reports())))
    ///     .build()?;
    /// // The task stays in one poll until its stall has been reported.
    /// let task = rt.spawn(async move { reports.recv().unwrap() });
    /// assert_eq!(rt.block_on(task)?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lost_reports(&self) -> u64 {
        self.lost_reports
    }
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, place) = match self.site {
            PollSite::Worker(_) => ("task", "in one poll on worker "),
            PollSite::Fiber(_) => ("fiber", "without a wait on fiber thread "),
            PollSite::BlockOn => ("task", "in one poll of a `block_on`"),
            PollSite::Offloaded => ("task", "in one poll, not for the first time,"),
        };
        write!(f, "{what} {}", self.task)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        let does = match self.kind {
            StallKind::Computing => "has computed",
            StallKind::Blocked => "has been blocked",
            StallKind::Unknown => "has been",
        };
        let then = match (self.site, self.others_continue) {
            (PollSite::Offloaded, _) => "no worker waits for it",
            (PollSite::Worker(_), true) => "its worker continues on another thread",
            (_, true) => "other tasks continue on another thread",
            (PollSite::Fiber(_), false) => "the other fibers of that thread wait for it",
            (_, false) => "other tasks wait for it",
        };
        write!(f, ", spawned at {}, {does} {place}", self.spawned_at)?;
        if let Some(worker) = self.worker() {
            write!(f, "{worker}")?;
        }
        write!(f, " for {:?}", self.duration)?;
        match (&self.waits_in, self.frames.iter().find(|frame| frame.is_users())) {
            (None, None) => {}
            (Some(call), None) => write!(f, " ({call})")?,
            (None, Some(frame)) => write!(f, " (in {frame})")?,
            (Some(call), Some(frame)) => write!(f, " ({call}, in {frame})")?,
        }
        write!(f, "; {then}; use `spawn_blocking`, or `{what}::checkpoint` in a loop")
    }
}

/// The kind of thread that polls a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollSite {
    Worker(usize),
    /// A thread that runs fibers.
    Fiber(usize),
    /// A thread in a `block_on` that polls a set of local tasks.
    BlockOn,
    /// A thread without a core, which polls an offloaded task.
    Offloaded,
}

/// A report in the making.
pub(super) struct PendingReport {
    report: StallReport,
    pub(super) others_continue: bool,
}

impl PendingReport {
    /// Creates the report from the header of a task.
    ///
    /// # Safety
    /// 1. The task is not freed during the call.
    pub(super) unsafe fn new(
        task: NonNull<Header>,
        site: PollSite,
        duration: Duration,
        kind: StallKind,
    ) -> Self {
        // SAFETY: obligation 1: the caller keeps the task from being freed.
        let header = unsafe { task.as_ref() };
        let report = StallReport {
            task: header.id,
            // SAFETY: the task is not freed during the call (obligation 1); the clone is a
            // reference count of its own.
            name: unsafe { Header::name(task) }.cloned(),
            spawned_at: header.spawned_at,
            future: (header.vtable.type_name)(),
            site,
            duration,
            kind,
            others_continue: false,
            waits_in: None,
            frames: Arc::default(),
            lost_reports: 0,
        };
        Self { report, others_continue: false }
    }

    /// Updates the duration and the kind of a poll that goes on.
    pub(super) fn update(mut self, duration: Duration, kind: StallKind) -> Self {
        (self.report.duration, self.report.kind) = (duration, kind);
        self
    }

    /// Queues the report for the reporter thread.
    pub(super) fn report(mut self, settings: &Settings, stalled_poll: StalledPoll) {
        self.report.others_continue = self.others_continue;
        reporter::report(settings, self.report, stalled_poll);
    }
}

/// The poll that a report is about, so that the reporter thread can examine it once more.
#[allow(dead_code, reason = "models report nothing, and some systems capture no stacks")]
pub(super) struct StalledPoll {
    stacks: StackCapture,
    watch_record: Arc<WatchRecord>,
    poll: usize,
}

#[allow(dead_code, reason = "models report nothing, and some systems capture no stacks")]
impl StalledPoll {
    pub(super) fn new(stacks: StackCapture, watch_record: &Arc<WatchRecord>, poll: usize) -> Self {
        Self { stacks, watch_record: watch_record.clone(), poll }
    }

    pub(super) fn is_of(&self, poll: usize) -> bool {
        self.poll == poll
    }

    /// Returns true if a thread that is blocked may be interrupted by a signal.
    pub(super) fn interrupts_waits(&self) -> bool {
        self.stacks == StackCapture::All
    }

    /// Returns the result of `examine` if the thread is in that poll both before and after.
    pub(super) fn examine<T>(&self, examine: impl FnOnce(&WatchRecord) -> Option<T>) -> Option<T> {
        let is_in_poll = || self.watch_record.lease().is_in(self.poll);
        let seen = is_in_poll().then(|| examine(&self.watch_record))??;
        is_in_poll().then_some(seen)
    }

    /// Adds to the report what can be seen now. Symbol lookup is third-party code that reads the
    /// program's files; if it panics, the report is delivered without that information.
    fn complete(&self, report: &mut StallReport) {
        let add = std::panic::AssertUnwindSafe(|| self.add(report));
        if let Err(payload) = std::panic::catch_unwind(add) {
            crate::engine::prim::discard(payload);
        }
    }

    fn add(&self, report: &mut StallReport) {
        if report.kind == StallKind::Blocked {
            report.waits_in =
                self.examine(|watch_record| SystemCall::of_thread(watch_record.cpu.thread()?));
        }
        if self.stacks.applies_to(report.kind) {
            report.frames = stack::frames(self).unwrap_or_default().into();
        }
    }
}

pub(super) use self::reporter::retry;

/// A bound that keeps a core from being handed off to another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandoffBound {
    /// The maximum number of threads compute without a core.
    Computing,
    /// The maximum number of threads are blocked without a core.
    Blocked,
    /// No thread is available.
    System,
}

impl HandoffBound {
    /// Number of bounds.
    pub(super) const ALL: usize = 3;

    /// Returns the bound that applies to a poll of that kind.
    pub(super) fn of(kind: StallKind) -> Self {
        if kind == StallKind::Blocked { Self::Blocked } else { Self::Computing }
    }

    fn text(self, stuck: usize) -> String {
        let what = match self {
            Self::Computing => "as many of them compute as `Preemption::max_detached` allows",
            Self::Blocked => "as many of them are blocked as `max_blocking_threads` allows",
            Self::System => {
                "there is no thread for the worker of one more: the system refuses it (`ulimit \
                 -u`, or `pids.max` of a control group), or those before it hang in \
                 `on_thread_start`"
            }
        };
        let advice = match self {
            Self::Computing | Self::Blocked => "use `spawn_blocking`, or raise that limit",
            Self::System => "use `spawn_blocking`",
        };
        format!(
            "{stuck} threads are in polls that last too long, and {what}; from now on tasks may \
             have to wait for such polls; {advice}"
        )
    }
}

/// Reports that cores are not handed off from now on. Called once for each bound.
#[cold]
pub(super) fn report_bound(bound: HandoffBound, stuck: usize) {
    reporter::report_text(bound.text(stuck));
}

/// Writes whole lines to standard error, without waiting for it.
#[cold]
pub(crate) fn write_lines(text: String) {
    reporter::write_lines(text);
}

/// Reports that the monitor has ended and polls are not watched any more.
#[cold]
pub(super) fn report_refused_barrier() {
    reporter::report_text(
        "membarrier was granted when the process began and is refused now: from now on tasks \
         may wait for polls that last too long; set BLITZ_BARRIER=fences if a sandbox is to \
         forbid it later"
            .to_owned(),
    );
}

/// Reports that requested threads do not arrive. Called once for each pool.
#[cold]
pub(super) fn report_slow_start() {
    reporter::report_text_if_logging(
        "the thread that should continue a stuck worker has not started yet, so another one is \
         requested: the machine is busy, or `on_thread_start` blocks"
            .to_owned(),
    );
}

#[cfg(not(blitz_loom))]
mod reporter {
    //! The reporter threads and their queues.

    use std::{
        collections::{HashMap, VecDeque},
        io::Write,
        panic::{AssertUnwindSafe, Location, catch_unwind},
        time::{Duration, Instant},
    };

    use super::{OnStall, Settings, StallReport, StalledPoll};
    use crate::engine::{
        prim::{
            AtomicBool, Mutex,
            Ordering::{Acquire, Relaxed, Release},
            discard,
            futex::Futex,
            lock,
            per_process::PerProcess,
        },
        threads::service,
    };

    /// Maximum number of queued reports; picked. With a slice of 10 ms it takes a quarter of a
    /// minute to fill if a single core does nothing but stall.
    const MAX_QUEUED: usize = 1024;

    /// Least time between two lines about the same source location, where no callback is set.
    const REPEAT_INTERVAL: Duration = Duration::from_secs(60);

    /// Maximum number of source locations remembered for `REPEAT_INTERVAL`.
    const MAX_LOCATIONS: usize = 1024;

    struct Reporter {
        /// The name of the reporter's thread.
        name: &'static str,
        queue: Mutex<ReportQueue>,
        /// Incremented with each report.
        sequence: Futex,
    }

    struct ReportQueue {
        waiting: VecDeque<QueuedReport>,
        lost_reports: u64,
        running: bool,
    }

    enum QueuedReport {
        User(OnStall, StallReport, StalledPoll),
        Log(StallReport, StalledPoll),
        Text(String),
        /// Text for standard error, written without a prefix.
        Lines(String),
    }

    impl QueuedReport {
        /// Returns true for a report to a user's callback, which also receives the number of lost
        /// reports.
        fn is_for_callback(&self) -> bool {
            matches!(self, Self::User(..))
        }
    }

    /// The reporter of this process. A forked process creates its own, because the parent's lock
    /// may be held by a thread that does not exist here, and the queued reports are the parent's.
    static REPORTER: PerProcess<Reporter> = PerProcess::new();

    /// The writer of lines that involve no user callback. It has a thread of its own, because an
    /// `on_task_stall` callback that blocks would hold back the report that names it.
    static WRITER: PerProcess<Reporter> = PerProcess::new();

    /// Set if the system refused the reporter's thread, so that reports wait in the queue.
    static REFUSED: AtomicBool = AtomicBool::new(false);

    /// Tries to start the reporter's thread again if the system has refused it.
    pub(in super::super) fn retry() {
        // Relaxed, twice: a flag that orders nothing.
        if REFUSED.load(Relaxed) && REFUSED.swap(false, Relaxed) {
            reporter().start();
        }
    }

    fn reporter() -> &'static Reporter {
        REPORTER.get(|| Reporter::new("blitz-reports"))
    }

    fn writer() -> &'static Reporter {
        WRITER.get(|| Reporter::new("blitz-lines"))
    }

    pub(super) fn report(settings: &Settings, report: StallReport, stalled_poll: StalledPoll) {
        let queued = match &settings.on_stall {
            Some(user) => QueuedReport::User(user.clone(), report, stalled_poll),
            None if is_logging() => QueuedReport::Log(report, stalled_poll),
            None => return,
        };
        reporter().put(queued);
    }

    /// Reports a text in every build, with or without a callback, because preemption does not do
    /// what was requested of it.
    pub(super) fn report_text(text: String) {
        reporter().put(QueuedReport::Text(text));
    }

    /// Writes to standard error without waiting for it, because another thread may hold its lock
    /// for ever, or the other end may not be read.
    pub(super) fn write_lines(text: String) {
        let writer = writer();
        if writer.start() {
            writer.put(QueuedReport::Lines(text));
        } else {
            // The system refuses a thread, so this thread writes.
            to_stderr(&text);
        }
    }

    /// Reports a text only where a line about a stalled task would be written, because the cause
    /// may be no fault of the program.
    pub(super) fn report_text_if_logging(text: String) {
        if is_logging() {
            report_text(text);
        }
    }

    /// Returns true if lines about stalled tasks are written at all.
    fn is_logging() -> bool {
        #[cfg(feature = "tracing")]
        if tracing::dispatcher::has_been_set() {
            return true;
        }
        cfg!(debug_assertions)
    }

    impl Reporter {
        fn new(name: &'static str) -> Self {
            let queue = ReportQueue { waiting: VecDeque::new(), lost_reports: 0, running: false };
            Self { name, queue: Mutex::new(queue), sequence: Futex::new(0) }
        }

        fn put(&'static self, queued: QueuedReport) {
            let mut queue = lock(&self.queue);
            if queue.waiting.len() == MAX_QUEUED {
                queue.lost_reports += u64::from(queued.is_for_callback());
                drop(queue);
                // Dropping the report may drop a user's callback, and the destructor of that is
                // user code.
                return discard(queued);
            }
            queue.waiting.push_back(queued);
            drop(queue);
            if !self.start() {
                // Relaxed: a flag that orders nothing.
                REFUSED.store(true, Relaxed);
            }
            // Release: publishes the queued report. Pairs with the Acquire in `run`.
            self.sequence.word().fetch_add(1, Release);
            self.sequence.wake_all();
        }

        /// Starts the thread if it does not run; returns `false` if the system refuses it.
        fn start(&'static self) -> bool {
            let was_running = std::mem::replace(&mut lock(&self.queue).running, true);
            if was_running {
                return true;
            }
            let started = service::start(self.name, move || self.run()).is_ok();
            if !started {
                lock(&self.queue).running = false;
            }
            started
        }

        fn run(&self) {
            let mut report_times = HashMap::new();
            loop {
                // Acquire: pairs with the Release in `put`.
                let before = self.sequence.word().load(Acquire);
                let next = {
                    let mut queue = lock(&self.queue);
                    let next = queue.waiting.pop_front();
                    // Plain lines cannot carry the number of lost reports, so the next report does.
                    let is_for_callback = next.as_ref().is_some_and(QueuedReport::is_for_callback);
                    let lost_reports =
                        if is_for_callback { std::mem::take(&mut queue.lost_reports) } else { 0 };
                    next.map(|queued| (queued, lost_reports))
                };
                match next {
                    Some((queued, lost_reports)) => queued.deliver(lost_reports, &mut report_times),
                    None => self.sequence.wait(before, None),
                }
            }
        }
    }

    type ReportTimes = HashMap<&'static Location<'static>, Instant>;

    impl QueuedReport {
        fn deliver(self, lost_reports: u64, report_times: &mut ReportTimes) {
            match self {
                QueuedReport::User(user, mut report, stalled_poll) => {
                    report.lost_reports = lost_reports;
                    stalled_poll.complete(&mut report);
                    // The callback may take long, and `stalled_poll` keeps the thread's watch
                    // record alive.
                    drop(stalled_poll);
                    let outcome = catch_unwind(AssertUnwindSafe(|| {
                        service::with_starters_mask(|| user(&report));
                    }));
                    // The panic hook has reported the panic.
                    if let Err(payload) = outcome {
                        discard(payload);
                    }
                    discard(user);
                }
                QueuedReport::Log(mut report, stalled_poll) => {
                    if is_new(report.spawned_at, report_times) {
                        stalled_poll.complete(&mut report);
                        write(&report.to_string(), cfg!(debug_assertions));
                    }
                }
                QueuedReport::Text(text) => write(&text, true),
                QueuedReport::Lines(text) => to_stderr(&text),
            }
        }
    }

    /// Returns true if this source location was not reported for a while.
    fn is_new(location: &'static Location<'static>, report_times: &mut ReportTimes) -> bool {
        let now = Instant::now();
        if report_times
            .get(location)
            .is_some_and(|reported| now.duration_since(*reported) < REPEAT_INTERVAL)
        {
            return false;
        }
        if report_times.len() >= MAX_LOCATIONS {
            report_times.clear();
        }
        report_times.insert(location, now);
        true
    }

    /// Writes a line to `tracing` if a subscriber is set, else to standard error if wanted.
    fn write(line: &str, is_for_stderr: bool) {
        // A subscriber that is set only for another thread's scope receives nothing from this one.
        #[cfg(feature = "tracing")]
        if tracing::dispatcher::get_default(|here| !here.is::<tracing::subscriber::NoSubscriber>())
        {
            // A subscriber is user code.
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                tracing::warn!(target: "blitz_io::stall", "{line}");
            }));
            if let Err(payload) = outcome {
                discard(payload);
            }
            return;
        }
        if !is_for_stderr {
            return;
        }
        to_stderr(&format!("blitz-io: {line}\n"));
    }

    fn to_stderr(text: &str) {
        // Not `eprintln`, which panics; an error that stderr itself returns can be reported
        // nowhere.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Models report nothing.
#[cfg(blitz_loom)]
mod reporter {
    use super::{Settings, StallReport, StalledPoll};

    pub(in super::super) fn retry() {}

    pub(super) fn report(_: &Settings, _: StallReport, _: StalledPoll) {}

    pub(super) fn report_text(_: String) {}

    pub(super) fn report_text_if_logging(_: String) {}

    pub(super) fn write_lines(_: String) {}
}
