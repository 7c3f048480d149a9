//! blitz-io's counts of locks and channels.
blitz_bench_counts::count_sync_on!(blitz_io);
