//! Tests timers, intervals, timeouts and the paused clock.

mod instant;
mod interval;
mod paused;
mod sleep;
mod timeout;
mod timeout_moved;
mod timers_model;
mod timer_threads;
