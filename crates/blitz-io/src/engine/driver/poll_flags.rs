//! The event flags that the Unix selectors have in common, named as in `poll(2)`, and helpers for
//! their timeouts.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use super::ready::Ready;

/// The flags that the system reports for a descriptor, named as in `poll(2)`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PollFlags {
    pub(super) input: bool,
    pub(super) output: bool,
    pub(super) urgent: bool,
    /// The peer has shut down its writing side.
    pub(super) end: bool,
    pub(super) hung_up: bool,
    pub(super) error: bool,
}

impl PollFlags {
    /// Converts the flags to readiness, by Tokio's rules and one more.
    #[inline]
    pub(super) fn ready(self) -> Ready {
        let mut ready = Ready::EMPTY;
        // The additional rule: a read fetches a pending error too, so a task that waits for a reply
        // datagram learns that the peer is unreachable.
        if self.input || self.urgent || self.error {
            ready |= Ready::READABLE;
        }
        if self.output {
            ready |= Ready::WRITABLE;
        }
        if self.hung_up || self.input && self.end {
            ready |= Ready::READ_CLOSED;
        }
        // A pipe without a reader reports 'output' and 'error', or 'error' alone.
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

/// Returns the remaining time of a wait that a signal has interrupted.
pub(super) fn remaining(timeout: Option<Duration>, begun: Option<Instant>) -> Option<Duration> {
    let past = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    timeout.map(|timeout| timeout.saturating_sub(past))
}

/// Converts a timeout to milliseconds, rounding up.
pub(super) fn rounded_up(timeout: Duration) -> i32 {
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
    milliseconds.try_into().unwrap_or(i32::MAX)
}

#[cfg(all(test, not(blitz_loom)))]
mod tests {
    use std::time::{Duration, Instant};

    use super::{remaining, rounded_up};

    #[test]
    fn a_time_out_is_rounded_up() {
        assert_eq!(rounded_up(Duration::from_nanos(1)), 1);
        assert_eq!(rounded_up(Duration::from_millis(7)), 7);
        assert_eq!(rounded_up(Duration::MAX), i32::MAX);
    }

    #[test]
    fn the_remaining_wait_never_grows() {
        let begun = Some(Instant::now());
        assert_eq!(remaining(None, begun), None);
        assert_eq!(remaining(Some(Duration::ZERO), None), Some(Duration::ZERO));
        assert!(
            remaining(Some(Duration::MAX), begun)
                .is_some_and(|remaining| remaining <= Duration::MAX)
        );
        assert!(remaining(Some(Duration::from_secs(9)), begun) <= Some(Duration::from_secs(9)));
    }
}
