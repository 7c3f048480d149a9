//! Alternatives to the queues, kept to be measured again.
//!
//! None of this is part of a normal build. Tests build it, so that it does not rot;
//! `--cfg blitz_variants` builds it for bench/queues, and the results are in bench/record. An
//! alternative that wins moves out of this module.
//!
//! - [`unfenced`]: a ring in which the owner pops without an RMW.
//! - [`intakes`]: an injector of eight shards, or of one inbox per worker.
//! - [`lifo`]: newest-first slots in front of the ring, one or several.
//! - [`prefetch`]: fetching the next item's header while this one runs.
//!
//! Stealing one item or half, and spilling the oldest or the newest half in an overflow, are
//! arguments of the ring itself (`StealShare`, `Half`).

pub(crate) mod unfenced;
pub(crate) mod intakes;
pub(crate) mod lifo;
pub(crate) mod prefetch;
#[cfg(blitz_variants)]
pub mod for_bench;
