module blitz-bench-sched

go 1.19
