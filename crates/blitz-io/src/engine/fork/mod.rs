//! Fork-join: runs jobs in parallel on pools of threads of their own.
//!
//! A *job* is a closure behind one pointer, stored in the stack frame that created it or on the
//! heap. A worker keeps its jobs in a `deque`, which is private until a thief requests jobs from
//! it. A *latch* notifies the one thread that waits for a job; `waiting_thread` is that thread if
//! it waits for many jobs. `sleep` decides which workers may sleep, `registry` is what the threads
//! of a pool share, and `worker` is the loop of one thread.
//!
//! Users call `join`, `scope`, `broadcast` and `detached`; tasks await `run`. `call` moves a caller
//! onto a pool, and `global` is the pool of callers that name none. docs/design/fork-join.md
//! describes the whole design.

pub(crate) mod deque;
pub(crate) mod latch;
pub(crate) mod job;
pub(crate) mod sleep;
pub(crate) mod registry;
pub(crate) mod worker;
pub(crate) mod join;
pub(crate) mod waiting_thread;
pub(crate) mod scope;
pub(crate) mod broadcast;
pub(crate) mod detached;
pub(crate) mod run;
pub(crate) mod call;
pub(crate) mod global;
