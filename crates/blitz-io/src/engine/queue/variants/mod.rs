//! Contenders: what the queues could be instead, kept to be measured again.
//!
//! None of this is part of a normal build. Tests build it, so that it does not
//! rot; `--cfg blitz_variants` builds it for bench/queues, and what that prints
//! is in bench/record. A contender that wins moves out of here.
//!
//! - [`unfenced`]: a ring whose owner pops without an RMW.
//! - [`intakes`]: an intake of eight shards, or of one inbox per worker.
//! - [`lifo`]: newest-first slots in front of the ring, one or several.
//! - [`prefetch`]: fetching the next item's header while this one runs.
//!
//! Steal one against half, and the oldest against the newest half in an overflow,
//! are arguments of the ring itself (`Share`, `Half`).

pub(crate) mod unfenced;
pub(crate) mod intakes;
pub(crate) mod lifo;
pub(crate) mod prefetch;
#[cfg(blitz_variants)]
pub mod for_bench;
