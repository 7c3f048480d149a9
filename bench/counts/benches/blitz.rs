//! blitz-io's counts.
blitz_bench_counts::count_on!(blitz_io);
