//! Figures that blitz-io's predecessor, written in Zig, has published for the same operations.

use harness::Claims;

pub(crate) const CLAIMS: Claims = Claims {
    whose: "claimed",
    note: "\n`claimed` is what blitz-io's predecessor, written in Zig, published against \
           Tokio 1.43 on an\nApple M3 Pro with 11 cores: the ratio (theirs and Tokio's \
           time), or bytes for an operation\n(theirs : Tokio's). It is another machine and \
           another version, and how it created its\nchannels is not known: bytes are to be \
           compared with care.\n",
    all: &[
        ("mutex_by_hand", "1.2 (6.6, 7.8 ns)"),
        ("mutex_by_hand.bytes", "0 : 0"),
        ("rwlock_read_by_hand", "1.2 (6.8, 7.9 ns)"),
        ("rwlock_read_by_hand.bytes", "0 : 0"),
        ("rwlock_write_by_hand", "1.2 (6.6, 8.0 ns)"),
        ("rwlock_write_by_hand.bytes", "0 : 0"),
        ("semaphore_by_hand", "1.2 (6.5, 7.5 ns)"),
        ("semaphore_by_hand.bytes", "0 : 0"),
        ("channel_send", "2.2 (2.7, 5.8 ns)"),
        ("channel_send.bytes", "16 : 9"),
        ("channel_recv", "1.6 (6.1, 9.7 ns)"),
        ("channel_recv.bytes", "16 : 9"),
        ("channel_round_trip", "2.0 (6.3, 12.5 ns)"),
        ("channel_round_trip.bytes", "0 : 0"),
        ("oneshot_slot", "3.9 (3.9, 15.4 ns)"),
        ("oneshot_slot.bytes", "0 : 72"),
        ("broadcast_4", "2.2 (22.2, 48.7 ns)"),
        ("broadcast_4.bytes", "16 : 126.9"),
        ("watch_by_hand", "3.3 (13.1, 43.7 ns)"),
        ("watch_by_hand.bytes", "0 : 0"),
        ("once_cell_get", "1.1 (0.4, 0.5 ns)"),
        ("once_cell_get.bytes", "0 : 0"),
        ("once_cell_set", "3.2 (9.5, 30.4 ns)"),
        ("once_cell_set.bytes", "0 : 64"),
        ("barrier", "23.9 (15.4, 368.6 ns)"),
        ("barrier.bytes", "0 : 1064"),
        ("notify_by_hand", "1.0 (9.7, 9.4 ns)"),
        ("notify_by_hand.bytes", "0 : 0"),
        ("mutex_4_threads", "0.70 (115.5, 81.2 ns)"),
        ("mutex_4_threads.bytes", "0.1 : 0.2"),
        ("rwlock_6_threads", "0.88 (108.1, 95.1 ns)"),
        ("rwlock_6_threads.bytes", "0.1 : 0.2"),
        ("semaphore_8_threads", "1.6 (77.5, 127.7 ns)"),
        ("semaphore_8_threads.bytes", "0.2 : 0.2"),
        ("mpmc_8_threads", "0.71 (85.6, 61.1 ns)"),
        ("mpmc_8_threads.bytes", "1.8 : 2.1"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::ROWS;

    #[test]
    fn every_claim_is_of_a_row() {
        for (claimed, _) in CLAIMS.all {
            let row = claimed.strip_suffix(".bytes").unwrap_or(claimed);
            assert!(ROWS.iter().any(|known| known.name == row), "{claimed}");
        }
    }
}
