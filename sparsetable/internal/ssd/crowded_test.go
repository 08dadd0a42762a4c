package ssd_test

import (
	"errors"
	"fmt"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// TestSSDIndexGrows checks that the index of a table that grows to many times its memory grows with
// it, although rows are pinned at all times and some of them, which every pass uses, are never
// released. Buckets must stay small, and new keys must cost few reads. For that, a patient caller
// is asked now and then to leave the table without pinned rows, and a caller that is not patient is
// never asked.
func TestSSDIndexGrows(t *testing.T) {
	for _, c := range []struct {
		passes  int
		patient bool
	}{{120, true}, {20, false}} {
		const size, hot = 4000, 400
		t.Run(fmt.Sprint(c.patient), func(t *testing.T) {
			l := sparsetable.Layout{ValueDim: 16, StateDim: 1}
			o := sparsetable.SSDOptions{Dirs: []string{"/ssd0"}}
			opts := sparsetable.Options{Layout: l, SSD: o, MemoryBytes: smallest(l, o, 2*size) + 1<<20, FS: newSSDDisk(1)}
			tab, err := ssdKindWith(o).Open(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := tab.Close(); err != nil {
					t.Error(err)
				}
			}()
			var last *sparsetable.WorkingSet
			defer func() {
				if last != nil {
					last.Release()
				}
			}()
			waited, next := 0, hot
			for range c.passes {
				keys := make([]uint64, 0, size)
				for i := range hot {
					keys = append(keys, tabletest.SpreadKey(i))
				}
				for ; len(keys) < size; next++ {
					keys = append(keys, tabletest.SpreadKey(next))
				}
				mode := sparsetable.PullCreate
				if c.patient && last != nil {
					mode |= sparsetable.PullPatient
				}
				ws, err := tab.Pull(t.Context(), keys, mode)
				if err != nil && last != nil { // as a trainer does
					if errors.Is(err, sparsetable.ErrCrowded) {
						waited++
					}
					last.Release()
					last = nil
					ws, err = tab.Pull(t.Context(), keys, sparsetable.PullCreate)
				}
				if err != nil {
					t.Fatal(err)
				}
				for i := range keys {
					l.SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
				}
				if last != nil {
					last.Release()
				}
				last = ws
				if st := tab.Stats(); st.MemoryBytes > st.BudgetBytes {
					t.Errorf("%d bytes with a budget of %d", st.MemoryBytes, st.BudgetBytes)
				}
			}
			st := tab.Stats()
			t.Logf("%d rows, of which %d are in memory, in %d slots; %.1f bits of filters a key, of %d absent keys %d cost a read; the caller was asked to wait %d times",
				st.Rows, st.CacheRows, st.Slots, st.FilterBitsPerKey, st.FilterNegatives+st.FalsePositives, st.FalsePositives, waited)
			if c.patient != (waited > 0) || waited > c.passes/4 {
				t.Errorf("the caller was asked to wait %d times in %d passes", waited, c.passes)
			}
			if !c.patient {
				return
			}
			if most := 3 << 10 / int64(8+4*l.Words()); st.Rows > most*st.Slots {
				t.Errorf("%d rows in %d slots: buckets of more than %d rows", st.Rows, st.Slots, most)
			}
			if st.FalsePositiveRate() > .1 {
				t.Errorf("a new key costs a read with a probability of %.2f", st.FalsePositiveRate())
			}
		})
	}
}
