//! Figures for task dumps: when a task last changed its state, and what it waits for.
//!
//! They are five bytes in the header, written by the thread that changes the state, with a
//! time that it has at hand: the coarse clock of its core, or the system's clock on threads
//! outside of the pool. No decision depends on them.

use crate::engine::prim::gauge::{ByteGauge, Gauge};

/// The time of a task's last change of state, in the pool's
/// [`Unit`](crate::engine::prim::clock::Unit).
#[derive(Debug, Default)]
pub(crate) struct Moment(Gauge);

impl Moment {
    #[inline(always)]
    pub(crate) fn set(&self, now: u32) {
        self.0.set(now);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.get()
    }
}

/// The [`Wait`] of a task that is idle, as a byte in its header.
#[derive(Debug, Default)]
pub(crate) struct Waiting(ByteGauge);

/// The things a task can wait for, as far as the runtime's own primitives report them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Wait {
    /// Nothing that the runtime knows: a foreign future, or nothing at all.
    #[default]
    Unknown,
    /// The end of another task.
    Task,
    /// The end of any task of a set.
    Set,
    /// A permit.
    Permit,
    /// The task's next turn: its budget was spent, or it yielded.
    Turn,
    /// A lock: a mutex, or either side of a read-write lock.
    Lock,
    /// A notification.
    Notice,
    /// The other tasks at a barrier.
    Barrier,
    /// A value that another task produces once.
    Cell,
    /// A message, from any kind of channel.
    Message,
    /// Room in a channel.
    Room,
    /// The end of the other side of a channel.
    Close,
    /// A cancellation.
    Cancellation,
    /// A point in time: a sleep, a timeout or an interval.
    Time,
    /// Readiness of a socket or another descriptor.
    Event,
    /// A closure on a fork-join pool.
    Parallel,
}

impl Wait {
    const ALL: [Wait; 16] = [
        Wait::Unknown,
        Wait::Task,
        Wait::Set,
        Wait::Permit,
        Wait::Turn,
        Wait::Lock,
        Wait::Notice,
        Wait::Barrier,
        Wait::Cell,
        Wait::Message,
        Wait::Room,
        Wait::Close,
        Wait::Cancellation,
        Wait::Time,
        Wait::Event,
        Wait::Parallel,
    ];

    /// Returns a phrase for dumps, or `None` for [`Wait::Unknown`].
    pub(crate) fn describe(self) -> Option<&'static str> {
        match self {
            Wait::Unknown => None,
            Wait::Task => Some("the end of a task (`JoinHandle`)"),
            Wait::Set => Some("the end of any task of a set"),
            Wait::Permit => Some("a permit"),
            Wait::Turn => Some("its next turn (it yielded, or its budget was spent)"),
            Wait::Lock => Some("a lock"),
            Wait::Notice => Some("a notification (`Notify`)"),
            Wait::Barrier => Some("the others at a barrier"),
            Wait::Cell => Some("a value that another task makes"),
            Wait::Message => Some("a message"),
            Wait::Room => Some("room in a channel"),
            Wait::Close => Some("the end of the other side of a channel"),
            Wait::Cancellation => Some("a cancellation"),
            Wait::Time => Some("a time (a sleep, a timeout or an interval)"),
            Wait::Event => Some("a socket or another descriptor"),
            Wait::Parallel => Some("a closure on a fork-join pool (`parallel::run`)"),
        }
    }
}

impl Waiting {
    /// Records the thing that the task waits for from now on.
    #[inline(always)]
    pub(crate) fn set(&self, wait: Wait) {
        self.0.set(wait as u8);
    }

    pub(crate) fn get(&self) -> Wait {
        let byte = self.0.get();
        Wait::ALL.into_iter().find(|wait| *wait as u8 == byte).unwrap_or_default()
    }
}
