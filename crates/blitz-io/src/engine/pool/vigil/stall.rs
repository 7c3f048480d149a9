//! What is told of a task that is in one poll for too long, and to whom.
//!
//! The monitor notes what it sees and goes on: a user's function, a subscriber of `tracing` and
//! standard error may all block. A thread of its own tells, one for the process, which is
//! started by the first report and stays. What waits for it is bounded; what does not fit is
//! forgotten, and the next report says how many were.
//!
//! That thread also has the time to look at what the stuck one waits for, and where it is, as
//! long as it is in that poll ([`Scene`]).

use std::{fmt, panic::Location, ptr::NonNull, sync::Arc, time::Duration};

use super::{
    Settings, Stint,
    stack::{self, StackFrame, Stacks},
    waits::SystemCall,
};
use crate::engine::work::task::cell::{Header, Id};

/// A user's function that is told.
pub(crate) type OnStall = Arc<dyn Fn(&StallReport) + Send + Sync>;

/// What a task does that has been in one poll for too long.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use blitz_io::runtime::{Builder, StallKind};
///
/// let (tell, told) = mpsc::channel();
/// let rt = Builder::new_multi_thread()
///     .on_task_stall(move |stall| drop(tell.send(stall.kind())))
///     .build()?;
/// let task = rt.spawn(async move { told.recv().unwrap() });
/// let expected =
///     if cfg!(target_os = "linux") { StallKind::Blocked } else { StallKind::Unknown };
/// assert_eq!(rt.block_on(task)?, expected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StallKind {
    /// It computes: its thread has used processor time.
    Computing,
    /// It waits for something outside of the runtime: a lock of the standard library, a file, a
    /// name to be looked up, a sleep of the thread.
    Blocked,
    /// This system does not tell the processor time of a thread.
    Unknown,
}

pub(super) type Kind = StallKind;

/// A task that has been in one poll for longer than a slice, as
/// [`Builder::on_task_stall`](crate::runtime::Builder::on_task_stall) is told of it.
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, thread, time::Duration};
/// use blitz_io::{runtime::{Builder, StallKind}, task};
///
/// let (tell, told) = mpsc::channel();
/// let rt = Builder::new_multi_thread()
///     .worker_threads(1)
///     .on_task_stall(move |stall| drop(tell.send(stall.clone())))
///     .build()?;
/// rt.block_on(async {
///     task::Builder::new()
///         .name("sleepy")
///         .spawn(async { thread::sleep(Duration::from_millis(200)) })?
///         .await?;
///     Ok::<(), Box<dyn std::error::Error>>(())
/// }).unwrap();
/// let stall = told.recv().unwrap();
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
    place: Place,
    duration: Duration,
    kind: Kind,
    goes_on: bool,
    waits_in: Option<SystemCall>,
    frames: Arc<[StackFrame]>,
    forgotten: u64,
}

impl StallReport {
    /// The task's ID.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.task())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// let id = task.id();
    /// assert_eq!(rt.block_on(task)?, id);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn task(&self) -> Id {
        self.task
    }

    /// Its name, if it was [given one](crate::task::Builder::name).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.name().map(str::to_owned))))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = blitz_io::task::Builder::new()
    ///     .name("sleepy")
    ///     .spawn_on(async move { told.recv().unwrap() }, rt.handle())?;
    /// assert_eq!(rt.block_on(task)?.as_deref(), Some("sleepy"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where it was spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.spawned_at())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// assert!(rt.block_on(task)?.file().ends_with(".rs"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.spawned_at
    }

    /// The name of its future's type.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.future())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// assert!(rt.block_on(task)?.contains("closure"), "as blocks are called");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn future(&self) -> &'static str {
        self.future
    }

    /// The worker that it was polled by, as [`worker_index`](crate::runtime::worker_index)
    /// counts; for a [fiber](Self::is_fiber), its thread among those that run fibers. None for a
    /// task of a [`LocalSet`](crate::task::LocalSet) that a `block_on` of a multi-thread runtime
    /// polls, and for one that was caught before and is polled without a worker since
    /// ([`learning`](crate::runtime::Preemption::learning)).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .on_task_stall(move |stall| drop(tell.send(stall.worker())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// assert_eq!(rt.block_on(task)?, Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker(&self) -> Option<usize> {
        match self.place {
            Place::Worker(number) | Place::Fiber(number) => Some(number),
            Place::BlockOn | Place::Lent => None,
        }
    }

    /// Whether it is a fiber. The other fibers of its thread wait for it: they cannot go on
    /// elsewhere.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.is_fiber())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// assert!(!rt.block_on(task)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_fiber(&self) -> bool {
        matches!(self.place, Place::Fiber(_))
    }

    /// How long the poll had lasted when this was noted, at the least. It goes on.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new())
    ///     .on_task_stall(move |stall| drop(tell.send(stall.duration())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// assert!(rt.block_on(task)? >= std::time::Duration::from_millis(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Whether it computes or waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.kind())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// assert_ne!(rt.block_on(task)?, blitz_io::runtime::StallKind::Computing);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kind(&self) -> StallKind {
        self.kind
    }

    /// The system call that its thread waits in, if it is [blocked](StallKind::Blocked) and the
    /// system tells: Linux does, except in some sandboxes. For a lock it has the address, for a
    /// file or a socket the descriptor.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.waits_in().copied())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// // Nobody knows on other systems, and in some sandboxes.
    /// if let Some(call) = rt.block_on(task)? {
    ///     assert!(call.to_string().contains("waits"), "{call}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn waits_in(&self) -> Option<&SystemCall> {
        self.waits_in.as_ref()
    }

    /// The calls that it is in, innermost first: where it was when this was about to be told.
    /// None unless [asked for](crate::runtime::Preemption::capture_stacks), which see for when
    /// there are fewer than one would like.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{sync::mpsc, time::{Duration, Instant}};
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .preemption(Preemption::new().capture_stacks(true))
    ///     .on_task_stall(move |stall| drop(tell.send(stall.clone())))
    ///     .build()?;
    /// let hog = rt.spawn(async {
    ///     let began = Instant::now();
    ///     while began.elapsed() < Duration::from_millis(300) {}
    /// });
    /// let stall = told.recv().unwrap();
    /// // None on other systems, or if the thread was not let run for a while.
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

    /// Whether others go on meanwhile: its worker has got another thread, or it was polled
    /// without one to begin with. If not, all that waits for its worker waits for the end of this
    /// poll, or for others who steal it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::{Builder, Preemption};
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .preemption(Preemption::new())
    ///     .on_task_stall(move |stall| drop(tell.send(stall.was_handed_off())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// assert!(rt.block_on(task)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn was_handed_off(&self) -> bool {
        self.goes_on
    }

    /// Reports before this one that were lost, because whoever is told is too slow.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blitz_io::runtime::Builder;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let rt = Builder::new_multi_thread()
    ///     .on_task_stall(move |stall| drop(tell.send(stall.forgotten())))
    ///     .build()?;
    /// // It stays in its poll until somebody was told of it.
    /// let task = rt.spawn(async move { told.recv().unwrap() });
    /// assert_eq!(rt.block_on(task)?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

impl fmt::Display for StallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, place) = match self.place {
            Place::Worker(_) => ("task", "in one poll on worker "),
            Place::Fiber(_) => ("fiber", "without a wait on fiber thread "),
            Place::BlockOn => ("task", "in one poll of a `block_on`"),
            Place::Lent => ("task", "in one poll, not for the first time,"),
        };
        write!(f, "{what} {}", self.task)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        let does = match self.kind {
            Kind::Computing => "has computed",
            Kind::Blocked => "has been blocked",
            Kind::Unknown => "has been",
        };
        let then = match (self.place, self.goes_on) {
            (Place::Lent, _) => "other tasks go on without it",
            (_, true) => "other tasks go on with another thread",
            (Place::Fiber(_), false) => "the other fibers of that thread wait for it",
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

/// Who polls a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Worker(usize),
    /// A thread that runs fibers.
    Fiber(usize),
    /// A set of local tasks that a thread waits for.
    BlockOn,
    /// A thread without a core.
    Lent,
}

/// A report that is being made.
pub(super) struct Stall {
    report: StallReport,
    pub(super) goes_on: bool,
}

impl Stall {
    /// # Safety
    /// 1. The task is not freed during the call.
    pub(super) unsafe fn look_at(
        task: NonNull<Header>,
        place: Place,
        duration: Duration,
        kind: Kind,
    ) -> Self {
        // SAFETY: 1.
        let header = unsafe { task.as_ref() };
        let report = StallReport {
            task: header.id,
            // SAFETY: 1.; the clone counts for itself.
            name: unsafe { Header::name(task) }.cloned(),
            spawned_at: header.spawned_at,
            future: (header.vtable.type_name)(),
            place,
            duration,
            kind,
            goes_on: false,
            waits_in: None,
            frames: Arc::default(),
            forgotten: 0,
        };
        Self { report, goes_on: false }
    }

    /// It goes on, and is what this says by now.
    pub(super) fn found(mut self, duration: Duration, kind: Kind) -> Self {
        (self.report.duration, self.report.kind) = (duration, kind);
        self
    }

    /// Sees that somebody is told.
    pub(super) fn report(mut self, settings: &Settings, scene: Scene) {
        self.report.goes_on = self.goes_on;
        teller::tell(settings, self.report, scene);
    }
}

/// The poll that a report is about, for who looks once more before it is told.
#[allow(dead_code, reason = "models tell nobody, and some systems no stacks")]
pub(super) struct Scene {
    stacks: Stacks,
    stint: Arc<Stint>,
    poll: usize,
}

#[allow(dead_code, reason = "models tell nobody, and some systems no stacks")]
impl Scene {
    pub(super) fn new(stacks: Stacks, stint: &Arc<Stint>, poll: usize) -> Self {
        Self { stacks, stint: stint.clone(), poll }
    }

    pub(super) fn is_of(&self, poll: usize) -> bool {
        self.poll == poll
    }

    /// Whether a thread may be interrupted that waits for something.
    pub(super) fn interrupts_waits(&self) -> bool {
        self.stacks == Stacks::Everybodys
    }

    /// What is seen of the thread, if it is in that poll before and after.
    pub(super) fn see<T>(&self, look: impl FnOnce(&Stint) -> Option<T>) -> Option<T> {
        let is_there = || self.stint.tenure().is_in(self.poll);
        let seen = is_there().then(|| look(&self.stint))??;
        is_there().then_some(seen)
    }

    /// Adds to the report what can be seen now. What finds names in a program reads what others
    /// have written: if it panics, the report goes without.
    fn complete(&self, report: &mut StallReport) {
        let add = std::panic::AssertUnwindSafe(|| self.add(report));
        if let Err(payload) = std::panic::catch_unwind(add) {
            crate::engine::prim::discard(payload);
        }
    }

    fn add(&self, report: &mut StallReport) {
        if report.kind == Kind::Blocked {
            report.waits_in = self.see(|stint| SystemCall::of_thread(stint.cpu.thread()?));
        }
        if self.stacks.are_wanted_of(report.kind) {
            report.frames = stack::frames(self).unwrap_or_default().into();
        }
    }
}

pub(super) use self::teller::retry;

/// What keeps a core from going to another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// As many compute without one as may.
    Computing,
    /// As many wait without one as may.
    Blocked,
    /// There is no thread.
    System,
}

impl Bound {
    /// How many there are.
    pub(super) const ALL: usize = 3;

    /// The one that was met for a poll of that kind.
    pub(super) fn of(kind: Kind) -> Self {
        if kind == Kind::Blocked { Self::Blocked } else { Self::Computing }
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
            "{stuck} threads are inside of polls that last too long, and {what}; from now on \
             tasks may wait for such polls; {advice}"
        )
    }
}

/// Says once that cores stay with threads that are stuck.
#[cold]
pub(super) fn tell_of_bound(bound: Bound, stuck: usize) {
    teller::tell_text(bound.text(stuck));
}

/// Writes whole lines to standard error, without waiting for it.
#[cold]
pub(crate) fn tell_lines(text: String) {
    teller::tell_lines(text);
}

/// Says that nobody watches any more.
#[cold]
pub(super) fn tell_of_blindness() {
    teller::tell_text(
        "membarrier was granted when the process began and is refused now: from now on tasks \
         may wait for polls that last too long; set BLITZ_BARRIER=fences if a sandbox is to \
         forbid it later"
            .to_owned(),
    );
}

/// Says once that threads do not come for what they are wanted for.
#[cold]
pub(super) fn tell_of_hook() {
    teller::tell_text_if_heard(
        "a thread that was started to go on for one that is stuck has not begun, and another one \
         is asked: the machine is busy, or `on_thread_start` blocks"
            .to_owned(),
    );
}

#[cfg(not(blitz_loom))]
mod teller {
    //! Who tells.

    use std::{
        collections::{HashMap, VecDeque},
        io::Write,
        panic::{AssertUnwindSafe, Location, catch_unwind},
        time::{Duration, Instant},
    };

    use super::{OnStall, Scene, Settings, StallReport};
    use crate::engine::prim::{
        AtomicBool, Mutex,
        Ordering::{Acquire, Relaxed, Release},
        discard,
        futex::Futex,
        lock,
        per_process::PerProcess,
        thread,
    };

    /// What may wait to be told; picked. With a slice of 10 ms that is a quarter of a minute
    /// of one core on which nothing else happens.
    const WAITING: usize = 1024;

    /// How often a place in the source is told of where nobody asked.
    const OFTEN: Duration = Duration::from_secs(60);

    /// Places that are remembered for it.
    const PLACES: usize = 1024;

    struct Teller {
        queue: Mutex<Queue>,
        /// Changes with each report.
        bell: Futex,
    }

    struct Queue {
        waiting: VecDeque<Told>,
        forgotten: u64,
        running: bool,
    }

    enum Told {
        User(OnStall, StallReport, Scene),
        Everybody(StallReport, Scene),
        Text(String),
        /// For standard error, as it is.
        Lines(String),
    }

    impl Told {
        /// To be told to who has asked for it, and will hear how many it was not told.
        fn is_asked_for(&self) -> bool {
            matches!(self, Self::User(..))
        }
    }

    /// That of this process. One that was forked makes its own: the lock of the other may be
    /// held by a thread that is not there, and its reports were the other's.
    static TELLER: PerProcess<Teller> = PerProcess::new();

    /// The system had no thread for it: what is to be told waits.
    static REFUSED: AtomicBool = AtomicBool::new(false);

    /// Asks the system again, if it had no thread.
    pub(in super::super) fn retry() {
        // Relaxed, twice: a mark that orders nothing.
        if REFUSED.load(Relaxed) && REFUSED.swap(false, Relaxed) {
            teller().start();
        }
    }

    fn teller() -> &'static Teller {
        TELLER.get(|| Teller {
            queue: Mutex::new(Queue { waiting: VecDeque::new(), forgotten: 0, running: false }),
            bell: Futex::new(0),
        })
    }

    pub(super) fn tell(settings: &Settings, report: StallReport, scene: Scene) {
        let told = match &settings.on_stall {
            Some(user) => Told::User(user.clone(), report, scene),
            None if is_heard() => Told::Everybody(report, scene),
            None => return,
        };
        teller().put(told);
    }

    /// What is told once, whoever wants to know, and in every build: preemption does not do what
    /// was asked of it.
    pub(super) fn tell_text(text: String) {
        teller().put(Told::Text(text));
    }

    /// Writes it to standard error, and does not wait for that: somebody may hold its lock for
    /// ever, or not read the other end.
    pub(super) fn tell_lines(text: String) {
        let teller = teller();
        if teller.start() {
            teller.put(Told::Lines(text));
        } else {
            // The system has no thread for it.
            to_stderr(&text);
        }
    }

    /// The same where a line about a task would be written: it may be nobody's fault.
    pub(super) fn tell_text_if_heard(text: String) {
        if is_heard() {
            tell_text(text);
        }
    }

    /// Whether a line about a task would be written at all.
    fn is_heard() -> bool {
        #[cfg(feature = "tracing")]
        if tracing::dispatcher::has_been_set() {
            return true;
        }
        cfg!(debug_assertions)
    }

    impl Teller {
        fn put(&'static self, told: Told) {
            let mut queue = lock(&self.queue);
            if queue.waiting.len() == WAITING {
                queue.forgotten += u64::from(told.is_asked_for());
                drop(queue);
                // A user's function may go with it.
                return discard(told);
            }
            queue.waiting.push_back(told);
            drop(queue);
            self.start();
            // Release: pairs with the Acquire in `live`.
            self.bell.word().fetch_add(1, Release);
            self.bell.wake_all();
        }

        /// Sees that there is a thread; `false` if the system has none.
        fn start(&'static self) -> bool {
            let is_there = std::mem::replace(&mut lock(&self.queue).running, true);
            if is_there {
                return true;
            }
            let thread = thread::Builder::new().name("blitz-reports".to_owned());
            let started = thread.spawn(move || self.live()).is_ok();
            if !started {
                lock(&self.queue).running = false;
                // Relaxed: a mark that orders nothing.
                REFUSED.store(true, Relaxed);
            }
            started
        }

        fn live(&self) {
            let mut places = HashMap::new();
            loop {
                // Acquire: pairs with the Release in `put`.
                let before = self.bell.word().load(Acquire);
                let next = {
                    let mut queue = lock(&self.queue);
                    let next = queue.waiting.pop_front();
                    // Lines have no place for it: the next report has.
                    let is_asked_for = next.as_ref().is_some_and(Told::is_asked_for);
                    let forgotten =
                        if is_asked_for { std::mem::take(&mut queue.forgotten) } else { 0 };
                    next.map(|told| (told, forgotten))
                };
                match next {
                    Some((told, forgotten)) => told.tell(forgotten, &mut places),
                    None => self.bell.wait(before, None),
                }
            }
        }
    }

    type Places = HashMap<&'static Location<'static>, Instant>;

    impl Told {
        fn tell(self, forgotten: u64, places: &mut Places) {
            match self {
                Told::User(user, mut report, scene) => {
                    report.forgotten = forgotten;
                    scene.complete(&mut report);
                    // The user may take its time.
                    drop(scene);
                    let outcome = catch_unwind(AssertUnwindSafe(|| user(&report)));
                    // The panic hook has reported it.
                    if let Err(payload) = outcome {
                        discard(payload);
                    }
                    discard(user);
                }
                Told::Everybody(mut report, scene) => {
                    if is_new(report.spawned_at, places) {
                        scene.complete(&mut report);
                        write(&report.to_string(), cfg!(debug_assertions));
                    }
                }
                Told::Text(text) => write(&text, true),
                Told::Lines(text) => to_stderr(&text),
            }
        }
    }

    /// Whether the place was not told of for a while.
    fn is_new(place: &'static Location<'static>, places: &mut Places) -> bool {
        let now = Instant::now();
        if places.get(place).is_some_and(|told| now.duration_since(*told) < OFTEN) {
            return false;
        }
        if places.len() >= PLACES {
            places.clear();
        }
        places.insert(place, now);
        true
    }

    /// To `tracing`, if somebody listens there; else to standard error, if that is wanted.
    fn write(line: &str, is_for_stderr: bool) {
        // One that was set for another thread's scope alone hears nothing of this one.
        #[cfg(feature = "tracing")]
        if tracing::dispatcher::get_default(|here| !here.is::<tracing::subscriber::NoSubscriber>())
        {
            // A subscriber is a user's code.
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
        // Not `eprintln`, which panics; and nobody is there to be told that nobody can be told.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Models tell nobody.
#[cfg(blitz_loom)]
mod teller {
    use super::{Scene, Settings, StallReport};

    pub(in super::super) fn retry() {}

    pub(super) fn tell(_: &Settings, _: StallReport, _: Scene) {}

    pub(super) fn tell_text(_: String) {}

    pub(super) fn tell_text_if_heard(_: String) {}

    pub(super) fn tell_lines(_: String) {}
}
