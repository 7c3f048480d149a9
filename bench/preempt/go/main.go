// A clock beside goroutines that do not let go: the rows of ../src/workload.rs that Go can have.
//
// Usage, as for the Rust children: preempt-go --child go ROW WORKERS BUDGET_MS
//
// The rows set the number of workers themselves. The work of the hogs is not counted, because their
// loop is another compiler's.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const tick = time.Millisecond

const workers = 2

// The load of a row: goroutines that run for so long without yielding.
type load struct {
	hogs   int
	long   time.Duration
	sleeps bool
}

var loads = map[string]load{
	"none":   {0, 100 * time.Millisecond, false},
	"2x100":  {2, 100 * time.Millisecond, false},
	"8x100":  {8, 100 * time.Millisecond, false},
	"8x1000": {8, 1000 * time.Millisecond, false},
	"sleeps": {8, 100 * time.Millisecond, true},
}

// What the compiler must not leave out.
var sink uint64

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}

// One turn of a hog. A sleep is the system's, which holds the thread: Go's own would not.
func turn(long time.Duration, sleeps bool) uint64 {
	if sleeps {
		span := syscall.NsecToTimespec(long.Nanoseconds())
		if err := syscall.Nanosleep(&span, nil); err != nil && err != syscall.EINTR {
			panic(err)
		}
		return 0
	}
	sum := uint64(0)
	for began := time.Now(); time.Since(began) < long; {
		for n := uint64(0); n < 1000; n++ {
			sum ^= n * sum
		}
	}
	return sum
}

func main() {
	if len(os.Args) != 6 || os.Args[1] != "--child" {
		fail("usage: preempt-go --child go ROW WORKERS BUDGET_MS")
	}
	row, known := loads[os.Args[3]]
	if !known {
		fail("no row " + os.Args[3])
	}
	budgetMs, err := strconv.Atoi(os.Args[5])
	if err != nil {
		fail("not a number of milliseconds: " + os.Args[5])
	}
	runtime.GOMAXPROCS(workers)
	end := time.Now().Add(time.Duration(budgetMs) * time.Millisecond)
	var all sync.WaitGroup
	sums := make([]uint64, row.hogs)
	for hog := 0; hog < row.hogs; hog++ {
		all.Add(1)
		go func(sum *uint64) {
			defer all.Done()
			for time.Now().Before(end) {
				*sum ^= turn(row.long, row.sleeps)
				runtime.Gosched()
			}
		}(&sums[hog])
	}
	late := make(chan []time.Duration)
	go func() {
		all := make([]time.Duration, 0, 4096)
		for due := time.Now().Add(tick); due.Before(end); {
			time.Sleep(time.Until(due))
			// Every deadline that has passed counts.
			for now := time.Now(); !due.After(now) && due.Before(end); due = due.Add(tick) {
				all = append(all, now.Sub(due))
			}
		}
		late <- all
	}()
	times := <-late
	all.Wait()
	for _, sum := range sums {
		sink ^= sum
	}
	if len(times) == 0 {
		fail("the clock has not ticked")
	}
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		fail(err.Error())
	}
	metric("p50", "ms", percentile(times, 50))
	metric("p90", "ms", percentile(times, 90))
	metric("p99", "ms", percentile(times, 99))
	metric("max", "ms", percentile(times, 100))
	metric("threads", "threads", float64(len(threads)))
}

// percentile returns, in milliseconds, the smallest of the sorted times that so many per cent of
// them do not exceed.
func percentile(times []time.Duration, percent int) float64 {
	rank := (len(times)*percent + 99) / 100
	if rank < 1 {
		rank = 1
	}
	return times[rank-1].Seconds() * 1e3
}

// metric prints the line that the driver reads; there is no processor time.
func metric(name, unit string, value float64) {
	fmt.Printf("metric %s %s %.3f -\n", name, unit, value)
}
