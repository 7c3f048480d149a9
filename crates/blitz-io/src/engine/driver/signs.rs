//! What the mechanisms of Unix are told, in the words of `poll(2)`, and for how long they ask.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use super::ready::Ready;

/// What a system says of a descriptor, in the words of `poll(2)`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    pub(super) input: bool,
    pub(super) output: bool,
    pub(super) urgent: bool,
    /// The peer has shut its writing side down.
    pub(super) end: bool,
    pub(super) hung_up: bool,
    pub(super) error: bool,
}

impl Signs {
    /// What it is ready for then; Tokio's rules, and one more.
    #[inline]
    pub(super) fn ready(self) -> Ready {
        let mut ready = Ready::EMPTY;
        // An error is fetched by a read as well: who waits for the answer to a datagram
        // learns that nobody is there. That is the one more.
        if self.input || self.urgent || self.error {
            ready |= Ready::READABLE;
        }
        if self.output {
            ready |= Ready::WRITABLE;
        }
        if self.hung_up || self.input && self.end {
            ready |= Ready::READ_CLOSED;
        }
        // A pipe whose reader has gone says 'output' and 'error', or 'error' alone.
        let alone = self.error && !(self.input || self.urgent || self.end);
        if self.hung_up || self.output && self.error || alone {
            ready |= Ready::WRITE_CLOSED;
        }
        if self.error {
            ready |= Ready::ERROR;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.urgent {
            ready |= Ready::PRIORITY;
        }
        ready
    }
}

/// What is left of a wait that a signal has interrupted.
pub(super) fn rest(timeout: Option<Duration>, begun: Option<Instant>) -> Option<Duration> {
    let past = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    timeout.map(|timeout| timeout.saturating_sub(past))
}

/// In milliseconds, never less.
pub(super) fn rounded_up(timeout: Duration) -> i32 {
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
    milliseconds.try_into().unwrap_or(i32::MAX)
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::{rest, rounded_up};

    #[test]
    fn a_time_out_is_rounded_up() {
        assert_eq!(rounded_up(Duration::from_nanos(1)), 1);
        assert_eq!(rounded_up(Duration::from_millis(7)), 7);
        assert_eq!(rounded_up(Duration::MAX), i32::MAX);
    }

    #[test]
    fn what_is_left_of_a_wait_is_never_more() {
        let begun = Some(Instant::now());
        assert_eq!(rest(None, begun), None);
        assert_eq!(rest(Some(Duration::ZERO), None), Some(Duration::ZERO));
        assert!(rest(Some(Duration::MAX), begun).is_some_and(|rest| rest <= Duration::MAX));
        assert!(rest(Some(Duration::from_secs(9)), begun) <= Some(Duration::from_secs(9)));
    }
}
