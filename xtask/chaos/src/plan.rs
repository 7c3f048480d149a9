//! The plan of a round: what will be done, chosen by chance alone.
//!
//! A plan is data, created before anything runs. So it does not depend on the interleaving, it can
//! be printed, and a round can be repeated alone.
//!
//! # Invariants
//! A plan ends on a correct runtime, whatever the interleaving:
//! 1. A step that waits, waits for a timer, for the system, or for a task that the same step has
//!    spawned; never for a sibling step.
//! 2. While a lock is held, nothing but time is awaited.
//! 3. [`Step::Forever`], and a receive from a sender that is kept forever, stand in tasks that
//!    are not awaited, of runtimes that end early.
//! 4. A poll that blocks until another task has run stands only on runtimes with workers, and
//!    outside of `block_in_place` only where preemption is on.
//! 5. A step that waits in its own poll (`block_in_place` around a `block_on`, or a receive that
//!    blocks) has no sibling step in the same task, because a sibling may hold a lock, and cannot
//!    proceed while the poll lasts.

use std::sync::Arc;

use crate::{
    chance::Chance,
    class::{Class, Classes},
};

/// Microseconds.
pub(crate) type Micros = u32;

/// Steps in order.
pub(crate) type Steps = Arc<[Step]>;

/// A runtime: what it is, what runs on it, and how it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuntimePlan {
    pub(crate) flavour: Flavour,
    /// Where it is created, driven and ended.
    pub(crate) place: Place,
    pub(crate) tasks: Vec<TaskPlan>,
    /// The number of tasks, from the first, that are awaited before the end.
    pub(crate) awaited: usize,
    /// Time between that and the end.
    pub(crate) pause: Micros,
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Workers(usize),
    OneThread,
    /// `LocalRuntime`.
    Local,
}

/// The thread that a runtime inside of another one is created on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A thread of `spawn_blocking`.
    Job,
    /// A worker, in `block_in_place`.
    Worker,
    /// A thread of the standard library.
    Thread,
    /// A task, which spawns on it and shuts it down in the background.
    Task,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Drop,
    Timeout(Micros),
    Background,
    /// Dropped on another thread.
    DropElsewhere,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskPlan {
    pub(crate) steps: Steps,
    pub(crate) fate: Fate,
    /// Values that the future owns.
    pub(crate) burdens: Vec<Burden>,
    /// A value that the task returns.
    pub(crate) output: Burden,
    /// `task::Builder::long_running`.
    pub(crate) long: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Awaited,
    Detached,
    /// Aborted after a while, and awaited.
    Aborted(Micros),
}

/// The action of a destructor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Burden {
    Nothing,
    Panics,
    Spawns,
    Sleeps(Micros),
    BlocksInPlace(Micros),
    WaitsForTask,
    WaitsForTimer(Micros),
    Sends,
    EndsRuntime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Yield(u32),
    Sleep(Micros),
    Hog(Micros),
    Block(Micros),
    InPlace(Micros),
    InPlaceWait(Steps),
    /// Receives from a task that sends after a while, or that owns the sender forever.
    Receive {
        in_place: bool,
        after: Option<Micros>,
    },
    Spawn(Box<TaskPlan>),
    Set {
        tasks: Vec<TaskPlan>,
        end: SetEnd,
    },
    Job {
        time: Micros,
        fate: Fate,
        panics: bool,
        burden: Burden,
    },
    JobWait(Steps),
    Fork {
        depth: u32,
        panics: bool,
    },
    ForkPool {
        threads: usize,
        depth: u32,
    },
    Timeout(Micros, Steps),
    Race(Steps, Steps),
    Both(Steps, Steps),
    Mpsc(Traffic),
    Mpmc(Traffic, u32),
    Oneshot {
        after: Micros,
        limit: Option<Micros>,
        burden: Burden,
    },
    Broadcast {
        receivers: u32,
        each: u32,
    },
    Watch {
        receivers: u32,
        each: u32,
    },
    Mutex {
        hold: Micros,
        limit: Option<Micros>,
    },
    RwLock {
        writes: bool,
        hold: Micros,
        limit: Option<Micros>,
    },
    Semaphore {
        permits: u32,
        hold: Micros,
        limit: Option<Micros>,
    },
    Notify {
        cancelled: u32,
        waiters: u32,
        after: Micros,
    },
    Tcp {
        bytes: u32,
        limit: Option<Micros>,
    },
    Udp {
        datagrams: u32,
    },
    Unix {
        bytes: u32,
        limit: Option<Micros>,
    },
    File {
        bytes: u32,
    },
    Child(ChildPlan),
    Signal,
    Panic(Box<TaskPlan>),
    PanicWaker(Wakes),
    Runtime(Box<RuntimePlan>),
    LocalSet(Vec<TaskPlan>),
    Fiber {
        steps: Steps,
        fate: Fate,
        burden: Burden,
    },
    /// Never ready.
    Forever,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetEnd {
    Awaited,
    Dropped(Micros),
    Shutdown(Micros),
    Detached,
}

/// Messages from several senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// The capacity; `None` if unbounded.
    pub(crate) capacity: Option<u32>,
    pub(crate) senders: u32,
    pub(crate) each: u32,
    /// The time limit after which sends and receives are cancelled and tried again.
    pub(crate) limit: Option<Micros>,
    /// The number of messages after which the receiver is dropped.
    pub(crate) leaves: Option<u32>,
    pub(crate) burden: Burden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildPlan {
    Awaited,
    /// Killed after a while, and awaited.
    Killed(Micros),
    /// Killed by its destructor.
    KilledByDrop(Micros),
    /// Not awaited.
    Left,
    /// Copies what it reads.
    Echo(u32),
}

/// The operation that calls a waker that panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wakes {
    Join(Micros),
    Oneshot(Micros),
    Timer(Micros),
    Socket(Micros),
}

/// The most steps of one plan. Picked: a round takes some ten milliseconds.
const SIZE: u32 = 160;
/// The deepest nesting of steps.
const DEPTH: u32 = 5;

/// Creates the plan of a round.
pub(crate) fn make(
    seed: u64,
    round: u64,
    classes: Classes,
    preempts: bool,
    workers: Option<usize>,
) -> RuntimePlan {
    let chance = Chance::of_round(seed, round);
    let mut maker = Maker { chance, classes, left: SIZE, preempts, workers };
    maker.runtime(0)
}

struct Maker {
    chance: Chance,
    classes: Classes,
    /// The number of steps that may still be added.
    left: u32,
    preempts: bool,
    workers: Option<usize>,
}

/// The actions that are allowed where a step will run.
#[derive(Clone, Copy)]
struct At {
    depth: u32,
    /// True if `block_in_place` is allowed.
    in_place: bool,
    /// True if the runtime has workers, and the step is polled by one of them.
    worker: bool,
    /// True if the runtime ends with unfinished tasks.
    ends_early: bool,
    /// True if nothing waits for the task of this step before the end of the runtime.
    unawaited: bool,
    /// True if no other step of the same task runs concurrently with this one.
    alone: bool,
}

impl At {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// Returns the place of a step on a thread that is driven by a `block_on` in a job, or by a
    /// `LocalSet`.
    fn elsewhere(self, in_place: bool) -> Self {
        Self { in_place, worker: false, ..self.deeper() }
    }

    /// Returns the place of a step with a concurrent sibling in the same task.
    fn beside(self) -> Self {
        Self { alone: false, ..self.deeper() }
    }

    fn may_wait_in_poll(self) -> bool {
        self.in_place && self.alone
    }
}

impl Maker {
    fn may(&self, class: Class) -> bool {
        self.classes.has(class)
    }

    /// Returns true once in `times`, if the class may be used.
    fn may_once_in(&mut self, class: Class, times: u32) -> bool {
        // The number is drawn anyway, so that a class that is left out changes little else.
        let drawn = self.chance.once_in(times);
        drawn && self.may(class)
    }

    fn runtime(&mut self, depth: u32) -> RuntimePlan {
        let flavour = match self.chance.below(8) {
            0 | 1 => Flavour::OneThread,
            2 if self.may(Class::Local) => Flavour::Local,
            _ => {
                let some = *self.chance.pick(&[1, 2, 2, 3, 4, 8]);
                Flavour::Workers(self.workers.unwrap_or(some))
            }
        };
        let workers = matches!(flavour, Flavour::Workers(_));
        let ends_early = self.may_once_in(Class::EarlyEnd, 2);
        let (in_place, worker) = (workers, workers);
        let at = At { depth, in_place, worker, ends_early, unawaited: false, alone: true };
        let count = if depth == 0 { 8 + self.chance.below(16) } else { 1 + self.chance.below(5) };
        let mut awaited = count as usize;
        if ends_early {
            awaited = self.chance.below(count) as usize;
        }
        let tasks = (0..count as usize).map(|number| self.task(at, number >= awaited)).collect();
        let place = *self.chance.pick(&[Place::Job, Place::Worker, Place::Thread, Place::Task]);
        let pause = if self.chance.once_in(2) { self.chance.micros(5000) } else { 0 };
        RuntimePlan { flavour, place, tasks, awaited, pause, end: self.end() }
    }

    fn end(&mut self) -> End {
        match self.chance.below(6) {
            0 if self.may(Class::ShutdownTimeout) => End::Timeout(self.chance.micros(20_000)),
            1 if self.may(Class::ShutdownBackground) => End::Background,
            2 => End::DropElsewhere,
            _ => End::Drop,
        }
    }

    /// Plans a task; `background` if it is not awaited by its runtime, which then ends early.
    fn task(&mut self, at: At, background: bool) -> TaskPlan {
        let mut steps = self.steps(At { unawaited: at.unawaited || background, alone: true, ..at });
        if background && self.chance.once_in(2) {
            steps = steps.iter().cloned().chain([Step::Forever]).collect();
        }
        let burdens = match self.chance.below(4) {
            0 | 1 => vec![],
            2 => vec![self.burden()],
            _ => vec![self.burden(), self.burden()],
        };
        let fate = if background { Fate::Detached } else { self.fate() };
        let (output, long) = (self.rare_burden(), self.chance.once_in(16));
        TaskPlan { steps, fate, burdens, output, long }
    }

    fn fate(&mut self) -> Fate {
        match self.chance.below(6) {
            0 if self.may(Class::Abort) => Fate::Aborted(self.chance.micros(3000)),
            1 => Fate::Detached,
            _ => Fate::Awaited,
        }
    }

    fn rare_burden(&mut self) -> Burden {
        if self.chance.once_in(4) { self.burden() } else { Burden::Nothing }
    }

    fn burden(&mut self) -> Burden {
        let time = self.chance.micros(3000);
        let (class, burden) = match self.chance.below(9) {
            0 => (Class::PanicDrop, Burden::Panics),
            1 => (Class::SpawningDrop, Burden::Spawns),
            2 => (Class::SleepingDrop, Burden::Sleeps(time)),
            3 => (Class::InPlaceDrop, Burden::BlocksInPlace(time)),
            4 => (Class::WaitingDrop, Burden::WaitsForTask),
            5 => (Class::WaitingDrop, Burden::WaitsForTimer(time)),
            6 => (Class::SendingDrop, Burden::Sends),
            7 => (Class::RuntimeDrop, Burden::EndsRuntime),
            _ => return Burden::Nothing,
        };
        if self.may(class) { burden } else { Burden::Nothing }
    }

    fn steps(&mut self, at: At) -> Steps {
        let count = 1 + self.chance.below(5);
        let mut steps = Vec::new();
        for _ in 0..count {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            steps.push(self.step(at));
        }
        steps.into()
    }

    fn limit(&mut self) -> Option<Micros> {
        let limit = self.chance.micros(2000);
        (self.chance.once_in(2) && self.may(Class::Cancel)).then_some(limit)
    }

    /// Plans a step; draws again until its class may be used here.
    fn step(&mut self, at: At) -> Step {
        const TRIES: u32 = 32;
        for _ in 0..TRIES {
            let step = if at.depth < DEPTH && self.chance.once_in(3) {
                self.nested(at)
            } else if self.chance.once_in(2) {
                self.waiting(at)
            } else {
                self.plain(at)
            };
            if let Some(step) = step {
                return step;
            }
        }
        Step::Yield(1)
    }

    /// Plans a step with steps inside.
    fn nested(&mut self, at: At) -> Option<Step> {
        let inner = at.deeper();
        let (class, allowed) = match self.chance.below(14) {
            0..3 => (Class::Spawn, true),
            3 => (Class::Set, true),
            4 => (Class::InPlaceWait, at.may_wait_in_poll()),
            5 => (Class::JobWait, true),
            6..8 => (Class::Cancel, true),
            8 => (Class::Spawn, true),
            9 => (Class::Panic, true),
            10 | 11 => (Class::Runtime, at.depth < 3),
            12 => (Class::Local, true),
            _ => (Class::Fiber, true),
        };
        if !allowed || !self.may(class) {
            return None;
        }
        Some(match class {
            Class::Spawn if self.chance.once_in(4) => {
                Step::Both(self.steps(at.beside()), self.steps(at.beside()))
            }
            Class::Spawn => {
                let background = at.ends_early && self.chance.once_in(4);
                Step::Spawn(self.task(inner, background).into())
            }
            Class::Set => {
                let count = 1 + self.chance.below(4);
                let tasks = (0..count).map(|_| self.task(inner, false)).collect();
                let after = self.chance.micros(2000);
                let end = match self.chance.below(5) {
                    0 => SetEnd::Dropped(after),
                    1 => SetEnd::Shutdown(after),
                    2 => SetEnd::Detached,
                    _ => SetEnd::Awaited,
                };
                Step::Set { tasks, end }
            }
            Class::InPlaceWait => Step::InPlaceWait(self.steps(inner)),
            Class::JobWait => Step::JobWait(self.steps(at.elsewhere(false))),
            Class::Cancel if self.chance.once_in(2) => {
                Step::Race(self.steps(at.beside()), self.steps(at.beside()))
            }
            Class::Cancel => Step::Timeout(self.chance.micros(5000), self.steps(inner)),
            Class::Panic => Step::Panic(self.task(inner, false).into()),
            Class::Runtime => Step::Runtime(self.nested_runtime(at).into()),
            Class::Local => {
                let count = 1 + self.chance.below(3);
                let inside = at.elsewhere(false);
                Step::LocalSet((0..count).map(|_| self.task(inside, false)).collect())
            }
            _ => {
                let (fate, burden) = (self.fate(), self.rare_burden());
                Step::Fiber { steps: self.steps(at.elsewhere(false)), fate, burden }
            }
        })
    }

    fn nested_runtime(&mut self, at: At) -> RuntimePlan {
        let mut plan = self.runtime(at.depth + 1);
        if plan.place == Place::Worker && !at.may_wait_in_poll() {
            plan.place = Place::Job;
        }
        if plan.place == Place::Task {
            if plan.flavour == Flavour::Local || !self.may(Class::ShutdownBackground) {
                plan.place = Place::Job;
            } else {
                plan.end = End::Background;
            }
        }
        plan
    }

    /// Plans a step that waits for something.
    fn waiting(&mut self, at: At) -> Option<Step> {
        let hold = self.chance.micros(1000);
        let limit = self.limit();
        let (class, step) = match self.chance.below(22) {
            0 | 1 => (Class::Sleep, Step::Sleep(self.chance.micros(5000))),
            2 => (Class::Channel, Step::Mpsc(self.traffic())),
            3 => (Class::Channel, Step::Mpsc(self.traffic())),
            4 => {
                let receivers = 1 + self.chance.below(3);
                (Class::Channel, Step::Mpmc(self.traffic(), receivers))
            }
            5 => (Class::Channel, Step::Oneshot { after: hold, limit, burden: self.rare_burden() }),
            6 => {
                let (receivers, each) = (1 + self.chance.below(4), 1 + self.chance.below(40));
                (Class::Channel, Step::Broadcast { receivers, each })
            }
            7 => {
                let (receivers, each) = (1 + self.chance.below(4), 1 + self.chance.below(20));
                (Class::Channel, Step::Watch { receivers, each })
            }
            8 | 9 => (Class::Lock, Step::Mutex { hold, limit }),
            10 => {
                let writes = self.chance.once_in(3);
                (Class::Lock, Step::RwLock { writes, hold, limit })
            }
            11 => {
                let permits = 1 + self.chance.below(6);
                (Class::Lock, Step::Semaphore { permits, hold, limit })
            }
            12 => {
                let (cancelled, waiters) = (self.chance.below(3), 1 + self.chance.below(3));
                (Class::Lock, Step::Notify { cancelled, waiters, after: hold })
            }
            13 | 14 => (Class::Tcp, Step::Tcp { bytes: self.chance.below(100_000), limit }),
            15 => (Class::Udp, Step::Udp { datagrams: 1 + self.chance.below(8) }),
            16 => (Class::Unix, Step::Unix { bytes: self.chance.below(400_000), limit }),
            17 => (Class::File, Step::File { bytes: self.chance.below(200_000) }),
            18 => (Class::Child, Step::Child(self.child())),
            19 => (Class::Signal, Step::Signal),
            20 => {
                let after = (!at.unawaited || self.chance.once_in(2)).then_some(hold);
                let in_place = self.chance.once_in(2);
                let allowed = if in_place { at.in_place } else { at.worker && self.preempts };
                let class = if in_place { Class::InPlaceReceive } else { Class::PollReceive };
                let allowed = allowed && at.alone && self.may(class);
                return allowed.then_some(Step::Receive { in_place, after });
            }
            _ => (Class::Fork, self.fork()),
        };
        self.may(class).then_some(step)
    }

    fn fork(&mut self) -> Step {
        let depth = 1 + self.chance.below(8);
        if self.may_once_in(Class::ForkPool, 4) {
            return Step::ForkPool { threads: 1 + self.chance.below(4) as usize, depth };
        }
        Step::Fork { depth, panics: self.may_once_in(Class::Panic, 4) }
    }

    fn traffic(&mut self) -> Traffic {
        Traffic {
            capacity: (!self.chance.once_in(4)).then_some(1 + self.chance.below(8)),
            senders: 1 + self.chance.below(3),
            each: 1 + self.chance.below(60),
            limit: self.limit(),
            leaves: self.chance.once_in(4).then_some(self.chance.below(20)),
            // Destructors of messages that do more would run inside the sender's call.
            burden: if self.may_once_in(Class::SendingDrop, 8) {
                Burden::Sends
            } else if self.may_once_in(Class::PanicDrop, 8) {
                Burden::Panics
            } else {
                Burden::Nothing
            },
        }
    }

    fn child(&mut self) -> ChildPlan {
        let time = self.chance.micros(5000);
        match self.chance.below(5) {
            0 => ChildPlan::Killed(time),
            1 => ChildPlan::KilledByDrop(time),
            2 => ChildPlan::Left,
            3 => ChildPlan::Echo(self.chance.below(100_000)),
            _ => ChildPlan::Awaited,
        }
    }

    /// Plans a step that does something on its own thread, or uses a blocking thread.
    fn plain(&mut self, at: At) -> Option<Step> {
        let time = self.chance.micros(3000);
        let (class, step) = match self.chance.below(12) {
            0..3 => return Some(Step::Yield(1 + self.chance.below(10))),
            3 => (Class::Sleep, Step::Sleep(time)),
            4 => (Class::Hog, Step::Hog(self.chance.micros(20_000))),
            5 => (Class::Block, Step::Block(time)),
            6 | 7 if at.in_place => (Class::InPlace, Step::InPlace(time)),
            8 | 9 => {
                let (fate, burden) = (self.fate(), self.rare_burden());
                let panics = self.may_once_in(Class::Panic, 6);
                (Class::Job, Step::Job { time, fate, panics, burden })
            }
            10 => {
                let wakes = [Wakes::Join, Wakes::Oneshot, Wakes::Timer, Wakes::Socket];
                (Class::PanicWaker, Step::PanicWaker(self.chance.pick(&wakes)(time)))
            }
            11 => (Class::Fork, self.fork()),
            _ => return None,
        };
        self.may(class).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::make;
    use crate::class::{ALL, Classes};

    #[test]
    fn a_seed_and_a_round_choose_the_plan() {
        let all = Classes::all();
        let plans: Vec<_> = (0..50).map(|round| make(7, round, all, true, None)).collect();
        for (round, plan) in (0..).zip(&plans) {
            assert_eq!(*plan, make(7, round, all, true, None));
        }
        assert_ne!(plans[0], plans[1]);
        assert_ne!(plans[0], make(8, 0, all, true, None));
    }

    #[test]
    fn a_class_that_is_left_out_is_in_no_plan() {
        // The text that a plan prints for a class, for the classes that have a step of their own.
        let marks = [
            ("hog", "Hog("),
            ("in-place-wait", "InPlaceWait("),
            ("tcp", "Tcp {"),
            ("child", "Child("),
            ("runtime", "Runtime(Run"),
            ("panic-drop", "Panics"),
            ("waiting-drop", "WaitsFor"),
            ("shutdown-background", "Background"),
            ("early-end", "Forever"),
            ("fork-pool", "ForkPool"),
        ];
        for (name, mark) in marks {
            let (class, ..) = ALL.iter().find(|(_, known, _)| *known == name).unwrap();
            let mut without = Classes::all();
            without.remove(*class);
            let shown = |classes| {
                let plans = (0..200).map(|round| make(3, round, classes, true, None));
                plans.map(|plan| format!("{plan:?}")).collect::<String>()
            };
            assert!(shown(Classes::all()).contains(mark), "{name} is never chosen");
            assert!(!shown(without).contains(mark), "{name} is chosen though it was left out");
        }
    }
}
