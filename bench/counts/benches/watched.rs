//! blitz-io's counts with stall reports enabled: the cost of preemption for tasks that yield in
//! time.
blitz_bench_counts::count_on!(blitz_io, |builder| builder.on_task_stall(|_| ()));
