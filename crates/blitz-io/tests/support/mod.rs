//! Provides helpers that all test programs share.
#![allow(dead_code, reason = "no program uses all of them")]

pub(crate) mod auto_traits;
pub(crate) mod budget;
pub(crate) mod caught_panic;
pub(crate) mod child;
#[cfg(feature = "test-util")]
pub(crate) mod clock;
pub(crate) mod descriptor_limit;
pub(crate) mod drop_at_every_poll;
pub(crate) mod drop_tally;
pub(crate) mod event_log;
pub(crate) mod gate;
pub(crate) mod local_values;
#[cfg(feature = "io-util")]
pub(crate) mod manual_io;
pub(crate) mod manual_poll;
pub(crate) mod on_drop;
#[cfg(feature = "parallel")]
pub(crate) mod pools;
pub(crate) mod preemption;
pub(crate) mod runtimes;
#[cfg(feature = "io-util")]
pub(crate) mod scripted_io;
#[cfg(feature = "net")]
pub(crate) mod sockets;
pub(crate) mod syscall_filter;
pub(crate) mod temp_files;
pub(crate) mod thread_limit;
pub(crate) mod wakers;
pub(crate) mod watchdog;
