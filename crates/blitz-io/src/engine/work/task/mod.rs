//! A task: a spawned future, its memory, its state and everyone who may touch it.
//!
//! # Who may touch what
//! The memory of a task is one [`cell::Cell`], reached through pointers to its
//! [`cell::Header`]. Each field has one owner at a time:
//!
//! 1. `state` belongs to everyone; it is the word that decides the rest.
//! 2. The queue link belongs to whoever took the entry that `QUEUED` stands for:
//!    the one that set the bit, then the queue, then the one that popped it;
//!    after the last reference is gone, to the way back to the home.
//! 3. The stage (future, then output) belongs to the thread that set `RUNNING`
//!    until it sets `COMPLETE`; then, if `JOIN_INTEREST` was set at that moment,
//!    to the [`handle::JoinHandle`], else to the thread that completed.
//! 4. The join waker belongs to the `JoinHandle` while `JOIN_WAKER` is clear, and
//!    to whoever completes the task while it is set.
//!    A task of a set is born with it set ([`set`]).
//! 5. The home's links belong to the holder of the home ([`home`]).
//! 6. Everything else is written once, before the task is shared.
//!
//! # References
//! Two at the start: the task's *life*, given up when it completes, and its
//! `JoinHandle`. Each waker and abort handle holds one more. An entry in a queue
//! holds none: `QUEUED` keeps the memory alive by itself, so waking, queueing
//! and polling never count.

pub(crate) mod state;
pub(crate) mod cell;
pub(crate) mod extra;
pub(crate) mod hooks;
pub(crate) mod moment;
pub(crate) mod conduct;
pub(crate) mod trace;
pub(crate) mod home;
pub(crate) mod poll;
pub(crate) mod waker;
pub(crate) mod handle;
pub(crate) mod error;
pub(crate) mod budget;
pub(crate) mod shield;
pub(crate) mod set;
pub(crate) mod tracker;
