//! The rows, and the workload of each.

use std::time::Duration;

use harness::{Metric, Row};

use crate::sockets::sockets;
use crate::timers::timers;

pub(crate) const ROWS: [Row; 14] = [
    // Sockets.
    Row::new("tcp_echo_1", "64 bytes there and back, 1 connection, both ends on the runtime"),
    Row::new("tcp_echo_50", "the same, 50 connections at once"),
    Row::new("tcp_echo_500", "the same, 500 connections at once"),
    Row::new("udp_echo", "64 bytes there and back, a datagram each way"),
    Row::new("unix_echo", "the same over a pair of Unix streams"),
    Row::new("tcp_stream_64k", "one of 500 writes of 64 KiB that the other end reads"),
    Row::new("tcp_copy_proxy", "the same through io::copy between two connections"),
    Row::new(
        "tcp_ready_500",
        "a reply when 500 connections always have a request: server on one core, client on another",
    ),
    Row::new(
        "idle_connections",
        "1000 open connections: memory of each, processor of all in a second",
    )
    .slow(),
    // Timers.
    Row::new("timeout_ready", "timeout round a future that is ready"),
    Row::new("timeout_cancel", "timeout armed and dropped: round a yield, 100 tasks at once"),
    Row::new("sleep_100us", "how late sleep(100 us) is"),
    Row::new("sleep_100k", "how late 100,000 sleeps are whose deadlines lie within 0.5 s").slow(),
    Row::new("ticker_yielders", "how late a sleep of 1 ms is beside 64 tasks that yield; a yield"),
];

/// Defines a contender's module for a runtime crate.
macro_rules! contender {
    ($run:ident, $module:ident, $runtime:ident) => {
        mod $module {
            use super::*;

            timers!($runtime);
            sockets!($runtime);
        }

        /// Runs a row; `None` if there is no such row.
        pub(crate) fn $run(row: &str, workers: usize, budget: Duration) -> Option<Vec<Metric>> {
            $module::on_sockets(row, workers, budget)
                .or_else(|| $module::on_timers(row, workers, budget))
        }
    };
}

contender!(on_tokio, tokio_rows, tokio);
#[cfg(feature = "blitz")]
contender!(on_blitz, blitz_rows, blitz_io);

#[cfg(test)]
mod tests {
    use harness::check::every_row_ends;

    use super::*;

    #[test]
    fn every_row_ends_on_tokio() {
        crate::limits::raise();
        every_row_ends(&ROWS, on_tokio);
    }

    #[cfg(feature = "blitz")]
    #[test]
    fn every_row_ends_on_blitz() {
        crate::limits::raise();
        every_row_ends(&ROWS, on_blitz);
    }

    #[test]
    fn an_unknown_row_is_refused() {
        assert!(on_tokio("tcp_echo_2", 1, Duration::ZERO).is_none());
    }

    #[test]
    fn row_names_are_unique_and_lacked_by_contenders_that_there_are() {
        harness::check::names(&crate::COMPARISON);
    }
}
