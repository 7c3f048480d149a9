// The rows of ../src/workloads.rs on Go's scheduler, with the same numbers; those of
// the comparison of locks and channels are in sync.go.
//
// Usage, as for the Rust children: sched-go --child go ROW WORKERS BUDGET_MS
//
// Where Go has no equal, the nearest thing a Go programmer writes stands in:
//   - a task is a goroutine; workers is GOMAXPROCS; a latch is a sync.WaitGroup;
//   - a notifier is a channel of capacity one; spawn-and-join waits on such a channel;
//   - Go has no thread outside its scheduler. 'From outside' and 'from a worker' are
//     the same goroutine spawn; where the Rust rows sleep on an outside thread, main
//     is locked to its thread and sleeps in the kernel.
//
// The garbage collector stays as a user has it.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	spawns       = 30000
	joinsLocal   = 10000
	joinsRemote  = 1000
	depth        = 10000
	yielders     = 200
	yields       = 1000
	pairs        = 1000
	roundTrips   = 100
	sleepers        = 1000
	storms       = 10
	heavyTasks   = 64
	heavySteps   = 150000
	pause        = 2 * time.Millisecond
	parkedTasks  = 1000000
	spawnsATurn  = 64
	wakeWarmUp   = 5
	leastSamples = 50
)

func main() {
	if len(os.Args) != 6 || os.Args[1] != "--child" {
		fail("usage: sched-go --child go ROW WORKERS BUDGET_MS")
	}
	workers, err := strconv.Atoi(os.Args[4])
	if err != nil || workers < 1 {
		fail("not a number of workers: " + os.Args[4])
	}
	budgetMs, err := strconv.Atoi(os.Args[5])
	if err != nil {
		fail("not a number of milliseconds: " + os.Args[5])
	}
	runtime.GOMAXPROCS(workers)
	budget := time.Duration(budgetMs) * time.Millisecond
	switch os.Args[3] {
	case "spawn_many_remote", "spawn_many_local":
		perOp(budget, spawns, spawnAndWait)
	case "spawn_join_local":
		perOp(budget, joinsLocal, func() { spawnAndJoin(joinsLocal) })
	case "spawn_join_remote":
		perOp(budget, joinsRemote, func() { spawnAndJoin(joinsRemote) })
	case "chained_spawn":
		perOp(budget, depth, chainedSpawn)
	case "yield_many":
		perOp(budget, yielders*yields, yieldMany)
	case "ping_pong":
		perOp(budget, pairs*roundTrips*2, pingPong)
	case "wake_storm":
		wakeStorm(budget)
	case "spawn_heavy":
		perOp(budget, heavyTasks, spawnHeavy)
	case "wake_idle":
		wakeIdle(budget)
	case "idle_1m":
		idle1m()
	case "idle_cpu":
		idleCPU()
	default:
		ops, batch := syncRow(os.Args[3])
		if batch == nil {
			fail("no row " + os.Args[3] + " in the Go program")
		}
		perOp(budget, ops, batch)
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}

// metric prints the line that the driver reads; cpu below zero means none.
func metric(name, unit string, value, cpu float64) {
	cpuWord := "-"
	if cpu >= 0 {
		cpuWord = strconv.FormatFloat(cpu, 'f', 3, 64)
	}
	fmt.Printf("metric %s %s %.3f %s\n", name, unit, value, cpuWord)
}

const (
	clockProcessCPU = 2
	clockThreadCPU  = 3
	rusageThread    = 1
)

func cpuNs(clock uintptr) int64 {
	var t syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		fail("no clock for processor time: run this on linux")
	}
	return t.Nano()
}

func voluntarySwitches(who int) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		fail("getrusage failed: run this on linux")
	}
	return usage.Nvcsw
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		fail("no /proc: run this on linux")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		fail("statm has no second number")
	}
	return pages * int64(os.Getpagesize())
}

func perOp(budget time.Duration, ops int, batch func()) {
	batch()
	batch()
	var walls []float64
	start, cpu := time.Now(), cpuNs(clockProcessCPU)
	for len(walls) < 3 || time.Since(start) < budget {
		start := time.Now()
		batch()
		walls = append(walls, float64(time.Since(start).Nanoseconds())/float64(ops))
	}
	perOpCPU := float64(cpuNs(clockProcessCPU)-cpu) / float64(len(walls)*ops)
	metric("-", "ns", median(walls), perOpCPU)
}

func median(values []float64) float64 {
	sort.Float64s(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}

func percentile(values []float64, percent int) float64 {
	sort.Float64s(values)
	rank := (len(values)*percent + 99) / 100
	return values[rank-1]
}

func spawnAndWait() {
	var latch sync.WaitGroup
	latch.Add(spawns)
	for i := 0; i < spawns; i++ {
		go latch.Done()
	}
	latch.Wait()
}

func spawnAndJoin(joins int) {
	for i := 0; i < joins; i++ {
		number, result := i, make(chan int, 1)
		go func() { result <- number }()
		<-result
	}
}

func chain(left int, end chan struct{}) {
	go func() {
		if left == 0 {
			end <- struct{}{}
		} else {
			chain(left-1, end)
		}
	}()
}

func chainedSpawn() {
	end := make(chan struct{}, 1)
	chain(depth, end)
	<-end
}

func yieldMany() {
	var latch sync.WaitGroup
	latch.Add(yielders)
	for i := 0; i < yielders; i++ {
		go func() {
			for j := 0; j < yields; j++ {
				runtime.Gosched()
			}
			latch.Done()
		}()
	}
	latch.Wait()
}

func pingPong() {
	var latch sync.WaitGroup
	latch.Add(2 * pairs)
	for i := 0; i < pairs; i++ {
		ping, pong := make(chan struct{}, 1), make(chan struct{}, 1)
		go func() {
			for j := 0; j < roundTrips; j++ {
				ping <- struct{}{}
				<-pong
			}
			latch.Done()
		}()
		go func() {
			for j := 0; j < roundTrips; j++ {
				<-ping
				pong <- struct{}{}
			}
			latch.Done()
		}()
	}
	latch.Wait()
}

func wakeStorm(budget time.Duration) {
	var latch sync.WaitGroup
	notifiers := make([]chan struct{}, sleepers)
	for i := range notifiers {
		notifier := make(chan struct{}, 1)
		notifiers[i] = notifier
		go func() {
			for range notifier {
				latch.Done()
			}
		}()
	}
	perOp(budget, sleepers*storms, func() {
		for storm := 0; storm < storms; storm++ {
			latch.Add(sleepers)
			for _, notifier := range notifiers {
				notifier <- struct{}{}
			}
			latch.Wait()
		}
	})
	for _, notifier := range notifiers {
		close(notifier)
	}
}

// Keeps the result of burn alive.
var sink uint64

func burn() {
	sum := uint64(1)
	for step := uint64(0); step < heavySteps; step++ {
		sum = sum*6364136223846793005 + step
	}
	atomic.AddUint64(&sink, sum)
}

func spawnHeavy() {
	var latch sync.WaitGroup
	latch.Add(heavyTasks)
	for i := 0; i < heavyTasks; i++ {
		go func() {
			burn()
			latch.Done()
		}()
	}
	latch.Wait()
}

// kernelSleep sleeps as a thread, not as a goroutine: no timer of the runtime runs.
func kernelSleep(span time.Duration) {
	left := syscall.NsecToTimespec(span.Nanoseconds())
	for {
		var rest syscall.Timespec
		err := syscall.Nanosleep(&left, &rest)
		if err == nil {
			return
		}
		// Go's preemption signal ends a sleep early.
		left = rest
	}
}

func wakeIdle(budget time.Duration) {
	runtime.LockOSThread()
	clock := time.Now()
	notifier := make(chan struct{}, 1)
	var polledAtNs int64
	go func() {
		for range notifier {
			atomic.StoreInt64(&polledAtNs, int64(time.Since(clock)))
		}
	}()
	samples := int(budget / pause)
	if samples < leastSamples {
		samples = leastSamples
	}
	var latenciesUs []float64
	var cpu int64
	for sample := 0; sample < samples+wakeWarmUp; sample++ {
		kernelSleep(pause)
		cpuBefore := cpuNs(clockProcessCPU)
		wokenAtNs := int64(time.Since(clock))
		notifier <- struct{}{}
		for atomic.LoadInt64(&polledAtNs) < wokenAtNs {
			kernelSleep(pause)
		}
		if sample >= wakeWarmUp {
			cpu += cpuNs(clockProcessCPU) - cpuBefore
			latenciesUs = append(latenciesUs, float64(atomic.LoadInt64(&polledAtNs)-wokenAtNs)/1e3)
		}
	}
	close(notifier)
	metric("p50", "us", percentile(latenciesUs, 50), float64(cpu)/float64(samples))
	metric("p99", "us", percentile(latenciesUs, 99), -1)
}

func idle1m() {
	spawnAndWait()
	// One channel for all: a channel each would cost more than the goroutine's state,
	// and closing it wakes all of them.
	var allParked, allDone sync.WaitGroup
	gate := make(chan struct{})
	allParked.Add(parkedTasks)
	allDone.Add(parkedTasks)

	bytes := residentBytes()
	start, cpu := time.Now(), cpuNs(clockProcessCPU)
	for i := 0; i < parkedTasks; i++ {
		state := [4]uint64{uint64(i), uint64(i), uint64(i), uint64(i)}
		go func() {
			allParked.Done()
			<-gate
			atomic.AddUint64(&sink, state[3])
			allDone.Done()
		}()
		if i%spawnsATurn == spawnsATurn-1 {
			runtime.Gosched()
		}
	}
	allParked.Wait()
	spawnNs, spawnCPU := perTask(time.Since(start).Nanoseconds()), perTask(cpuNs(clockProcessCPU)-cpu)
	perTaskBytes := perTask(residentBytes() - bytes)

	start, cpu = time.Now(), cpuNs(clockProcessCPU)
	close(gate)
	allDone.Wait()
	wakeNs, wakeCPU := perTask(time.Since(start).Nanoseconds()), perTask(cpuNs(clockProcessCPU)-cpu)
	metric("bytes", "B", perTaskBytes, -1)
	metric("spawn", "ns", spawnNs, spawnCPU)
	metric("wake", "ns", wakeNs, wakeCPU)
}

func perTask(total int64) float64 {
	return float64(total) / parkedTasks
}

func idleCPU() {
	runtime.LockOSThread()
	spawnAndWait()
	kernelSleep(100 * time.Millisecond)
	cpu := cpuNs(clockProcessCPU) - cpuNs(clockThreadCPU)
	switches := voluntarySwitches(syscall.RUSAGE_SELF) - voluntarySwitches(rusageThread)
	kernelSleep(time.Second)
	cpu = cpuNs(clockProcessCPU) - cpuNs(clockThreadCPU) - cpu
	switches = voluntarySwitches(syscall.RUSAGE_SELF) - voluntarySwitches(rusageThread) - switches
	metric("cpu", "us", positive(cpu)/1e3, -1)
	metric("switches", "count", positive(switches), -1)
}

func positive(value int64) float64 {
	if value < 0 {
		return 0
	}
	return float64(value)
}
