module blitz-bench-preempt

go 1.19
