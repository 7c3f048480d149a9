//! The classes of actions, each of which can be left out.

use std::fmt;

macro_rules! classes {
    ($($variant:ident $name:literal $what:literal,)*) => {
        /// A class of actions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Class { $($variant,)* }

        /// All classes, with their names and what they do.
        pub(crate) const ALL: &[(Class, &str, &str)] = &[$((Class::$variant, $name, $what),)*];
    };
}

classes! {
    Spawn "spawn" "tasks of tasks, awaited or detached",
    Abort "abort" "tasks that are aborted at some point",
    Set "set" "join sets that are awaited, aborted or dropped",
    Hog "hog" "polls that compute for longer than a slice",
    Block "block" "polls that block their thread",
    InPlace "in-place" "block_in_place around a sleep of the thread",
    InPlaceWait "in-place-wait" "block_in_place around Handle::block_on",
    InPlaceReceive "in-place-receive" "block_in_place around a receive from std::sync::mpsc",
    PollReceive "poll-receive" "polls that receive from std::sync::mpsc",
    Sleep "sleep" "timers",
    Cancel "cancel" "futures that a time-out or a select drops half way",
    Job "job" "spawn_blocking",
    JobWait "job-wait" "spawn_blocking around Handle::block_on",
    Fork "fork" "fork-join of the global pool",
    ForkPool "fork-pool" "fork-join of pools that are made and dropped",
    Channel "channel" "channels, with cancelled sends and receives",
    Lock "lock" "locks, with cancelled waiters",
    Tcp "tcp" "TCP echoes",
    Udp "udp" "UDP datagrams",
    Unix "unix" "pairs of Unix sockets",
    File "file" "files",
    Child "child" "child processes that end, are killed, or are left behind",
    Signal "signal" "signals of the process",
    Panic "panic" "polls and jobs that panic",
    PanicDrop "panic-drop" "destructors that panic",
    PanicWaker "panic-waker" "wakers that panic",
    Runtime "runtime" "runtimes inside of runtimes",
    Local "local" "LocalRuntime, LocalSet and tasks that are not Send",
    Fiber "fiber" "fibers, where the program has the feature",
    EarlyEnd "early-end" "ends of runtimes with tasks that are not finished",
    ShutdownTimeout "shutdown-timeout" "Runtime::shutdown_timeout",
    ShutdownBackground "shutdown-background" "Runtime::shutdown_background",
    SpawningDrop "spawning-drop" "destructors that spawn a task",
    SleepingDrop "sleeping-drop" "destructors that block their thread",
    InPlaceDrop "in-place-drop" "destructors that block in place",
    WaitingDrop "waiting-drop" "destructors that wait for a task or a timer",
    SendingDrop "sending-drop" "destructors that send a message",
    RuntimeDrop "runtime-drop" "destructors that shut a runtime down",
}

/// A set of classes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classes(u64);

impl Classes {
    /// Returns the set of all classes that this program was built with.
    pub(crate) fn all() -> Self {
        let mut all = Self(0);
        ALL.iter().for_each(|(class, ..)| all.insert(*class));
        if !cfg!(feature = "fiber") {
            all.remove(Class::Fiber);
        }
        all
    }

    pub(crate) fn none() -> Self {
        Self(0)
    }

    pub(crate) fn insert(&mut self, class: Class) {
        self.0 |= 1 << class as u8;
    }

    pub(crate) fn remove(&mut self, class: Class) {
        self.0 &= !(1 << class as u8);
    }

    pub(crate) fn has(self, class: Class) -> bool {
        self.0 & (1 << class as u8) != 0
    }
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ALL.iter().filter(|(class, ..)| self.has(*class)).map(|(_, name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

/// Returns the class of a name.
pub(crate) fn named(name: &str) -> Result<Class, String> {
    let found = ALL.iter().find(|(_, known, _)| *known == name);
    found.map(|(class, ..)| *class).ok_or_else(|| format!("`{name}` is no class: see --list"))
}
