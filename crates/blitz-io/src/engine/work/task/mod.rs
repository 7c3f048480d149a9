//! Tasks: a spawned future, its memory, its state word, and the handles that reach it.
//!
//! # Which thread may touch what
//! The memory of a task is one [`cell::Cell`], reached through pointers to its
//! [`cell::Header`]. Each field has one owner at a time:
//!
//! 1. `state` may be used by every thread; it is the word that decides the rest.
//! 2. The queue link belongs to the owner of the entry that `QUEUED` stands for: first the thread
//!    that set the bit, then the queue, then the thread that popped the entry. After the last
//!    reference is gone, it links the cell on its way back to its arena.
//! 3. The stage (future, then output) belongs to the thread that set `RUNNING` until that thread
//!    sets `COMPLETE`. Then, if `JOIN_INTEREST` was set at that time, it belongs to the
//!    [`handle::JoinHandle`], otherwise to the thread that completed the task.
//! 4. The join waker belongs to the `JoinHandle` while `JOIN_WAKER` is clear, and
//!    to the thread that completes the task while it is set.
//!    A task of a set is created with it set ([`set`]).
//! 5. The arena's links belong to the holder of the arena ([`arena`]).
//! 6. Everything else is written once, before the task is shared.
//!
//! # References
//! A task starts with two: its *life*, given up when it completes, and its
//! `JoinHandle`. Each waker and abort handle holds one more. An entry in a queue
//! holds none: `QUEUED` keeps the memory alive by itself, so waking, queueing
//! and polling never change the count.

pub(crate) mod state;
pub(crate) mod cell;
pub(crate) mod extra;
pub(crate) mod hooks;
pub(crate) mod timestamp;

pub(crate) mod trace;
pub(crate) mod arena;
pub(crate) mod poll;
pub(crate) mod waker;
pub(crate) mod handle;
pub(crate) mod error;
pub(crate) mod budget;
pub(crate) mod shield;
pub(crate) mod set;
pub(crate) mod tracker;
