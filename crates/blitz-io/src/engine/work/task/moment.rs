//! When a task changed its state last, and what it waits for: for dumps.
//!
//! Five bytes in the header, written by whoever changes the state, with the time that
//! it knows anyway: a core's coarse clock, or the system's for those outside. They are
//! figures and decide nothing.

use crate::engine::prim::gauge::{ByteGauge, Gauge};

/// When, in the pool's [`Unit`](crate::engine::prim::clock::Unit).
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

/// What for: a [`Wait`], if the task is idle.
#[derive(Debug, Default)]
pub(crate) struct Waiting(ByteGauge);

/// What a task waits for, as far as the runtime's own primitives tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Wait {
    /// Nothing of the runtime's: a foreign future, or nothing at all.
    #[default]
    Unknown,
    /// The end of another task.
    Task,
    /// The end of any task of a set.
    Set,
    /// A permit.
    Permit,
    /// Its turn: its budget was spent, or it yielded.
    Turn,
}

impl Wait {
    const ALL: [Wait; 5] = [Wait::Unknown, Wait::Task, Wait::Set, Wait::Permit, Wait::Turn];

    /// In words, if there is anything to say.
    pub(crate) fn describe(self) -> Option<&'static str> {
        match self {
            Wait::Unknown => None,
            Wait::Task => Some("the end of a task (`JoinHandle`)"),
            Wait::Set => Some("the end of any task of a set"),
            Wait::Permit => Some("a permit"),
            Wait::Turn => Some("its next turn (it yielded, or its budget was spent)"),
        }
    }
}

impl Waiting {
    /// Notes what the task waits for from now on.
    #[inline(always)]
    pub(crate) fn set(&self, wait: Wait) {
        self.0.set(wait as u8);
    }

    pub(crate) fn get(&self) -> Wait {
        let byte = self.0.get();
        Wait::ALL.into_iter().find(|wait| *wait as u8 == byte).unwrap_or_default()
    }
}
