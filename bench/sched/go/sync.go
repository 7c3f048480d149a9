// The rows of ../../sync/src/on_tasks.rs that Go has, with the same numbers.
package main

import (
	"runtime"
	"sync"
)

const (
	messages    = 100000
	room        = 128
	ring        = 1000
	tokenRounds = 50
	lockers     = 100
	turns       = 200
	held        = 10
)

// syncRow is a row of the comparison of locks and channels: its batch, and how many
// operations that is. Nil if there is none of that name.
func syncRow(row string) (ops int, batch func()) {
	switch row {
	case "ping_pong_oneshot":
		return pairs, pingPongOneshot
	case "mpsc_bounded_spsc":
		return messages, func() { bounded(1) }
	case "mpsc_bounded_4p":
		return messages, func() { bounded(4) }
	case "ring_mpsc_1000":
		return ring * tokenRounds, tokenRing
	case "mutex_100":
		return lockers * turns, mutex100
	}
	return 0, nil
}

// A oneshot is a channel of capacity one.
func pingPongOneshot() {
	var latch sync.WaitGroup
	latch.Add(pairs)
	for i := 0; i < pairs; i++ {
		go func() {
			ping, pong := make(chan uint64, 1), make(chan uint64, 1)
			go func() { pong <- <-ping + 1 }()
			ping <- 1
			if <-pong != 2 {
				fail("a pair got a wrong reply")
			}
			latch.Done()
		}()
	}
	latch.Wait()
}

func bounded(producers int) {
	channel := make(chan int, room)
	var sending sync.WaitGroup
	sending.Add(producers)
	for i := 0; i < producers; i++ {
		go func() {
			for j := 0; j < messages/producers; j++ {
				channel <- j
			}
			sending.Done()
		}()
	}
	go func() {
		sending.Wait()
		close(channel)
	}()
	received := 0
	for range channel {
		received++
	}
	if received != messages {
		fail("messages were lost")
	}
}

func tokenRing() {
	var latch sync.WaitGroup
	latch.Add(ring)
	channels := make([]chan int, ring)
	for i := range channels {
		channels[i] = make(chan int, 1)
	}
	for i := range channels {
		mine, next := channels[i], channels[(i+1)%ring]
		go func() {
			for round := 0; round < tokenRounds; round++ {
				next <- <-mine + 1
			}
			latch.Done()
		}()
	}
	channels[0] <- 0
	latch.Wait()
}

func mutex100() {
	var latch sync.WaitGroup
	var mutex sync.Mutex
	count := 0
	latch.Add(lockers)
	for i := 0; i < lockers; i++ {
		go func() {
			for turn := 0; turn < turns; turn++ {
				mutex.Lock()
				count++
				if turn%held == 0 {
					runtime.Gosched()
				}
				mutex.Unlock()
			}
			latch.Done()
		}()
	}
	latch.Wait()
	if count != lockers*turns {
		fail("the lock let two in")
	}
}
