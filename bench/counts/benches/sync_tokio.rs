//! Tokio's counts of locks and channels, to compare with.
blitz_bench_counts::count_sync_on!(tokio);
