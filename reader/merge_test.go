package reader

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// mergeBatches are the unique keys of mini-batches of passes, some of them in several ones.
func mergeBatches(batches, keys int) (all [][]uint64) {
	for n := range uint64(batches) {
		seen := map[uint64]bool{}
		var list []uint64
		for i := uint64(0); len(list) < keys; i++ {
			x := random(1, 3, n, i)
			key := mix(x >> (42 + x%22)) // of 22 fields, of which each has twice as many values as the one before
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
func withHelpers(m *merger, helpers int, f func()) {
	m.idle = make(chan *merger)
	var group sync.WaitGroup
	for range helpers {
		group.Go(func() {
			for m := range m.idle {
				m.help()
			}
		})
	}
	f()
	close(m.idle)
	group.Wait()
}

// TestMergerWithHelp numbers keys as one goroutine alone does, whoever helps.
func TestMergerWithHelp(t *testing.T) {
	batches := append(mergeBatches(6, 3*chunkKeys+17), nil, []uint64{0}, mergeBatches(1, 2*chunkKeys)[0])
	for _, helpers := range []int{0, 1, 5} {
		m, alone := new(merger), new(keyTable)
		withHelpers(m, helpers, func() {
			for pass := range 20 {
				m.table.reset(m.table.keys)
				alone.reset(alone.keys)
				for i := range batches {
					keys := batches[(pass+i)%len(batches)]
					got, want := make([]int32, len(keys)), make([]int32, len(keys))
					m.number(keys, got)
					alone.numberAll(keys, want)
					if !slices.Equal(got, want) || !slices.Equal(m.table.keys, alone.keys) {
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
	all := mergeBatches(batches, keys)
	rows := make([]int32, keys)
	for _, helpers := range []int{0, 1, 3, 7} {
		b.Run(fmt.Sprintf("helpers=%d", helpers), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			m := new(merger)
			withHelpers(m, helpers, func() {
				own, total := clock(unix.CLOCK_THREAD_CPUTIME_ID), clock(unix.CLOCK_PROCESS_CPUTIME_ID)
				defer func() {
					n := float64(b.N) * batches * keys
					b.ReportMetric((clock(unix.CLOCK_THREAD_CPUTIME_ID)-own)/n, "serial-ns/key")
					b.ReportMetric((clock(unix.CLOCK_PROCESS_CPUTIME_ID)-total)/n, "cpu-ns/key")
				}()
				for b.Loop() {
					m.table.reset(m.table.keys)
					for _, list := range all {
						m.number(list, rows)
					}
				}
			})
		})
	}
}
