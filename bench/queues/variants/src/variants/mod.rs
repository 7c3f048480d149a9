//! Alternatives to the queues, kept to be measured again; the results are in bench/record.
//!
//! - [`unfenced`]: a ring in which the owner pops without an RMW.
//! - [`sharded_injector`]: an injector of eight shards, or of one inbox per worker.
//! - [`lifo`]: newest-first slots in front of the ring, one or several.
//! - [`prefetch`]: fetching the next item's header while this one runs.
//! - [`chase_lev`]: a deque in place of the stack of a fork-join worker.
//!
//! `engine::queue::ring::choices` has those that are methods of the ring itself. An alternative
//! that wins moves to blitz-io.

pub(crate) mod unfenced;
pub(crate) mod sharded_injector;
pub(crate) mod lifo;
pub(crate) mod prefetch;
pub(crate) mod chase_lev;
