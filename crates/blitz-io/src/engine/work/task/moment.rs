//! When a task changed its state last, and what it waits for: for dumps.
//!
//! Five bytes in the header, written by whoever changes the state, with the time that
//! it knows anyway: a core's coarse clock, or the system's for those outside. They are
//! figures and decide nothing.

use crate::engine::prim::gauge::{ByteGauge, Gauge};

/// When: milliseconds since the process began, of which the upper bits are lost. No
/// time in a state is known that is longer than 24 days.
#[derive(Debug)]
pub(crate) struct Moment(Gauge);

/// What for: a [`Wait`], if the task is idle. Apart from the moment, so that three
/// bytes are left for others.
#[derive(Debug)]
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

impl Moment {
    pub(crate) const fn new() -> Self {
        Self(Gauge::new())
    }

    /// Notes the time of a change.
    #[inline(always)]
    pub(crate) fn stamp(&self, now_ms: u32) {
        self.0.set(now_ms);
    }

    /// How long ago the last change was.
    pub(crate) fn elapsed_ms(&self, now_ms: u32) -> u32 {
        let elapsed = now_ms.wrapping_sub(self.0.get());
        // A stamp that was made after the caller looked at its clock.
        if elapsed > u32::MAX / 2 { 0 } else { elapsed }
    }
}

impl Waiting {
    pub(crate) const fn new() -> Self {
        Self(ByteGauge::new())
    }

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
