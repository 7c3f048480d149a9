//! blitz-io's counts where somebody watches for tasks that do not let go: what preemption costs
//! where nobody does.
blitz_bench_counts::count_on!(blitz_io, |builder| builder.on_task_stall(|_| ()));
