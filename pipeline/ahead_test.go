package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestRunAhead: a source goes as far ahead as is asked for and bytes allow, and
// never less far than the queue's depth.
func TestRunAhead(t *testing.T) {
	for _, c := range []struct {
		name         string
		items, bytes int
		size         func(n int) int64
		want         int64 // items that wait while nothing is taken
	}{
		{"asked for", 6, 1000, func(int) int64 { return 10 }, 6},
		{"bytes", 10, 55, func(int) int64 { return 10 }, 5},
		{"bytes as if the next were the largest", 10, 100, func(n int) int64 { return []int64{10, 40, 10, 10, 10}[n%5] }, 4},
		{"too large", 10, 5, func(int) int64 { return 10 }, 3},
		{"nothing asked for", 0, 1000, func(int) int64 { return 10 }, 3},
		{"more than MaxItems", 100, 1 << 20, func(int) int64 { return 10 }, 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			const depth, all = 2, 60
			var emitted, taken, bytes atomic.Int64
			p := New(t.Context())
			src := Source(p, "src", func(_ context.Context, emit func(int) error) error {
				for n := range all {
					bytes.Add(c.size(n))
					emitted.Add(1)
					if err := emit(n); err != nil {
						return err
					}
				}
				return nil
			})
			src.RunAhead(Ahead[int]{Items: func() int { return c.items }, MaxItems: 20, Bytes: int64(c.bytes), Size: c.size})
			sink(p, "sink", src, depth, func(_ context.Context, n int) error {
				if n != int(taken.Load()) {
					t.Errorf("%s: item %d came as number %d", c.name, n, taken.Load())
				}
				taken.Add(1)
				bytes.Add(-c.size(n))
				synctest.Wait() // the source goes as far as it may
				if most := max(int64(c.bytes), (depth+1)*c.size(1)); bytes.Load() > most {
					t.Errorf("%s: %d bytes wait, at most %d may", c.name, bytes.Load(), most)
				}
				if wait := emitted.Load() - taken.Load(); n == 0 && wait != c.want || wait > max(int64(c.items), depth+1) {
					t.Errorf("%s: %d items wait, want %d", c.name, wait, c.want)
				}
				return nil
			})
			if err := p.Run(); err != nil || taken.Load() != all {
				t.Errorf("%s: %d items, %v", c.name, taken.Load(), err)
			}
			if st := p.Stats(); st[1].QueueCap < int(c.want) && c.size(0) == c.size(1) || st[0].Blocked < 0 {
				t.Errorf("%s: a queue of %d, %d items may wait", c.name, st[1].QueueCap, c.want)
			}
		})
	}
}

// TestRunAheadEnds: a source that waits ends with the run, and every item is given
// to the sink or dropped.
func TestRunAheadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		emitted, ended := 0, 0
		p := New(t.Context())
		src := Source(p, "src", func(_ context.Context, emit func(int) error) error {
			for n := 0; ; n++ {
				emitted++
				if err := emit(n); err != nil {
					return err
				}
			}
		})
		src.RunAhead(Ahead[int]{Items: func() int { return 9 }, MaxItems: 20, Bytes: 1000, Size: func(int) int64 { return 1 }})
		src.OnDrop(func(int) { ended++ })
		sink(p, "sink", src, 1, func(_ context.Context, n int) error {
			synctest.Wait()
			if ended++; n == 4 {
				return broken
			}
			return nil
		})
		if err := p.Run(); !errors.Is(err, broken) || emitted != ended || emitted != 5+9 {
			t.Errorf("%d items emitted, %d ended, %v", emitted, ended, err)
		}
	})
}
