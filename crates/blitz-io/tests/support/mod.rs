//! Helpers that all test programs share.
#![allow(dead_code, reason = "no program uses all of them")]

pub(crate) mod by_hand;
pub(crate) mod caught;
pub(crate) mod child;
pub(crate) mod gate;
pub(crate) mod make;
#[cfg(feature = "test-util")]
pub(crate) mod on;
pub(crate) mod polled;
pub(crate) mod sandbox;
pub(crate) mod tally;
pub(crate) mod watch;
