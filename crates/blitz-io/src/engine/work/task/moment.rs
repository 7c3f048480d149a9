//! When a task changed its state last, and what it waits for: for dumps.
//!
//! Seven bytes in the header, written by whoever changes the state, with the time that
//! it knows anyway: a core's coarse clock, or the system's for those outside. They are
//! figures and decide nothing.

use crate::engine::prim::gauge::{ByteGauge, Gauge, ShortGauge};

/// When: the upper bits of microseconds since the process began.
#[derive(Debug, Default)]
pub(crate) struct Upper(Gauge);

/// When: the lower bits. Apart from the upper ones, so that both fit where there is
/// room in a header; who reads them while they are written is off by 65 ms at the
/// most, for a moment.
#[derive(Debug, Default)]
pub(crate) struct Lower(ShortGauge);

/// What for: a [`Wait`], if the task is idle.
#[derive(Debug, Default)]
pub(crate) struct Waiting(ByteGauge);

/// Notes the time of a change.
#[inline(always)]
pub(crate) fn stamp(upper: &Upper, lower: &Lower, now_us: u64) {
    upper.0.set((now_us >> 16) as u32);
    lower.0.set(now_us as u16);
}

/// How long ago the last change was.
pub(crate) fn elapsed_us(upper: &Upper, lower: &Lower, now_us: u64) -> u64 {
    let since_us = u64::from(upper.0.get()) << 16 | u64::from(lower.0.get());
    // A stamp may have been made after the caller looked at its clock.
    now_us.saturating_sub(since_us)
}

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
