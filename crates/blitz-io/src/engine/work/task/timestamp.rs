//! Figures for task dumps: when a task last changed its state, and what it waits for.
//!
//! They are five bytes in the header, written by the thread that changes the state, with a
//! time that it has at hand: the coarse clock of its core, or the system's clock on threads
//! outside of the pool. No decision depends on them.

use crate::engine::prim::gauge::{ByteGauge, Gauge};

/// The time of a task's last change of state, in the pool's
/// [`TimestampUnit`](crate::engine::prim::clock::TimestampUnit).
#[derive(Debug, Default)]
pub(crate) struct Timestamp(Gauge);

impl Timestamp {
    #[inline(always)]
    pub(crate) fn set(&self, now: u32) {
        self.0.set(now);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.get()
    }
}

/// The [`WaitReason`] of a task that is idle, as a byte in its header.
#[derive(Debug, Default)]
pub(crate) struct WaitReasonGauge(ByteGauge);

/// The things a task can wait for, as far as the runtime's own primitives report them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum WaitReason {
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

impl WaitReason {
    const ALL: [WaitReason; 16] = [
        WaitReason::Unknown,
        WaitReason::Task,
        WaitReason::Set,
        WaitReason::Permit,
        WaitReason::Turn,
        WaitReason::Lock,
        WaitReason::Notice,
        WaitReason::Barrier,
        WaitReason::Cell,
        WaitReason::Message,
        WaitReason::Room,
        WaitReason::Close,
        WaitReason::Cancellation,
        WaitReason::Time,
        WaitReason::Event,
        WaitReason::Parallel,
    ];

    /// Returns a phrase for dumps, or `None` for [`WaitReason::Unknown`].
    pub(crate) fn describe(self) -> Option<&'static str> {
        match self {
            WaitReason::Unknown => None,
            WaitReason::Task => Some("the end of a task (`JoinHandle`)"),
            WaitReason::Set => Some("the end of any task of a set"),
            WaitReason::Permit => Some("a permit"),
            WaitReason::Turn => Some("its next turn (it yielded, or its budget was spent)"),
            WaitReason::Lock => Some("a lock"),
            WaitReason::Notice => Some("a notification (`Notify`)"),
            WaitReason::Barrier => Some("the others at a barrier"),
            WaitReason::Cell => Some("a value that another task makes"),
            WaitReason::Message => Some("a message"),
            WaitReason::Room => Some("room in a channel"),
            WaitReason::Close => Some("the end of the other side of a channel"),
            WaitReason::Cancellation => Some("a cancellation"),
            WaitReason::Time => Some("a time (a sleep, a timeout or an interval)"),
            WaitReason::Event => Some("a socket or another descriptor"),
            WaitReason::Parallel => Some("a closure on a fork-join pool (`parallel::run`)"),
        }
    }
}

impl WaitReasonGauge {
    /// Records the thing that the task waits for from now on.
    #[inline(always)]
    pub(crate) fn set(&self, wait: WaitReason) {
        self.0.set(wait as u8);
    }

    pub(crate) fn get(&self) -> WaitReason {
        let byte = self.0.get();
        WaitReason::ALL.into_iter().find(|wait| *wait as u8 == byte).unwrap_or_default()
    }
}
