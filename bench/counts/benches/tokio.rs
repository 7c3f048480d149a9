//! Tokio's counts, to compare with.
blitz_bench_counts::count_on!(tokio);
