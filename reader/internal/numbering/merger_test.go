package numbering

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"

	"aibox/internal/testseed"
)

// mergeBatches are the unique keys of mini-batches of passes, some of them in several ones.
func mergeBatches(t testing.TB, batches, keys int) (all [][]uint64) {
	random := testseed.Rand(t)
	for range batches {
		seen := map[uint64]bool{}
		var list []uint64
		for len(list) < keys {
			x := random.Uint64()
			key := xxhash.Sum64(binary.LittleEndian.AppendUint64(nil, x>>(42+x%22))) // of 22 fields, of which each has twice as many values as the one before
			if !seen[key] {
				seen[key] = true
				list = append(list, key)
			}
		}
		all = append(all, list)
	}
	return all
}

// withHelpers runs f while so many goroutines wait to help.
func withHelpers(helpers int, f func(m *Merger)) {
	idle := make(chan *Merger)
	var group sync.WaitGroup
	for range helpers {
		group.Go(func() {
			for m := range idle {
				m.Help()
			}
		})
	}
	f(NewMerger(idle))
	close(idle)
	group.Wait()
}

// TestMergerWithHelp numbers keys as one goroutine alone does, whoever helps.
func TestMergerWithHelp(t *testing.T) {
	batches := append(mergeBatches(t, 6, 3*chunkKeys+17), nil, []uint64{0}, mergeBatches(t, 1, 2*chunkKeys)[0])
	var low, high []uint64 // with the same tags, and few slots where searches begin
	for i := range uint64(2*chunkKeys + 1) {
		low, high = append(low, i<<8), append(high, ^(i<<8))
	}
	batches = append(batches, low[chunkKeys:], low, high[chunkKeys:], high)
	for _, helpers := range []int{0, 1, 5} {
		alone := new(Table)
		withHelpers(helpers, func(m *Merger) {
			for pass := range 20 {
				m.Begin(m.Keys())
				alone.Reset(alone.Keys())
				for i := range batches {
					keys := batches[(pass+i)%len(batches)]
					got, want := make([]int32, len(keys)), make([]int32, len(keys))
					m.Number(keys, got)
					alone.Number(keys, want)
					if !slices.Equal(got, want) || !slices.Equal(m.Keys(), alone.Keys()) {
						t.Fatalf("%d helpers, pass %d, mini-batch %d: other numbers than those that one goroutine gives", helpers, pass, i)
					}
				}
			}
		})
	}
}

// BenchmarkMerge numbers the keys of passes of 16 mini-batches. It reports the processor time of
// the goroutine that calls, and of all.
func BenchmarkMerge(b *testing.B) {
	const batches, keys = 16, 40_000
	all := mergeBatches(b, batches, keys)
	rows := make([]int32, keys)
	for _, helpers := range []int{0, 1, 3, 7} {
		b.Run(fmt.Sprintf("helpers=%d", helpers), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			withHelpers(helpers, func(m *Merger) {
				own, total := clock(unix.CLOCK_THREAD_CPUTIME_ID), clock(unix.CLOCK_PROCESS_CPUTIME_ID)
				defer func() {
					n := float64(b.N) * batches * keys
					b.ReportMetric((clock(unix.CLOCK_THREAD_CPUTIME_ID)-own)/n, "serial-ns/key")
					b.ReportMetric((clock(unix.CLOCK_PROCESS_CPUTIME_ID)-total)/n, "cpu-ns/key")
				}()
				for b.Loop() {
					m.Begin(m.Keys())
					for _, list := range all {
						m.Number(list, rows)
					}
				}
			})
		})
	}
}

// clock is the time of a clock in nanoseconds.
func clock(id int32) float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err)
	}
	return float64(t.Nano())
}
