// A clock beside goroutines that do not let go: the rows of ../src/workload.rs that Go can have.
//
// usage: preempt-go <hogs> <milliseconds at a time> <computes|sleeps> <milliseconds in all>
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

// What the compiler must not leave out.
var sink uint64

func number(place int) int {
	value, err := strconv.Atoi(os.Args[place])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
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
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "preempt-go <hogs> <milliseconds> <computes|sleeps> <milliseconds in all>")
		os.Exit(1)
	}
	runtime.GOMAXPROCS(2)
	hogs, sleeps := number(1), os.Args[3] == "sleeps"
	long := time.Duration(number(2)) * time.Millisecond
	end := time.Now().Add(time.Duration(number(4)) * time.Millisecond)
	var all sync.WaitGroup
	sums := make([]uint64, hogs)
	for hog := 0; hog < hogs; hog++ {
		all.Add(1)
		go func(sum *uint64) {
			defer all.Done()
			for time.Now().Before(end) {
				*sum ^= turn(long, sleeps)
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
		fmt.Fprintln(os.Stderr, "the clock has not ticked")
		os.Exit(1)
	}
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	at := func(share float64) float64 {
		return times[int(float64(len(times)-1)*share)].Seconds() * 1e3
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		panic(err)
	}
	fmt.Printf("p50 %v\np90 %v\np99 %v\nmax %v\nwork 0\nthreads %v\n", at(0.5), at(0.9), at(0.99), at(1), len(threads))
}
