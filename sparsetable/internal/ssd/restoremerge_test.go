package ssd_test

import (
	"slices"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

// TestSSDRowsDoNotComeBack delays the restore of clean rows while most rows are dropped from a
// table, and slots whose buckets have no rows left are merged into others, whose buckets do not
// change. The restore must not bring the dropped rows back.
func TestSSDRowsDoNotComeBack(t *testing.T) {
	const rows = 20_000
	today := sparsetable.ExpiryRule{Today: 100, UnseenDays: 50}
	for _, c := range []struct {
		name   string
		lose   bool
		remove func(t *testing.T, r *restarted)
	}{
		{"expired", false, func(t *testing.T, r *restarted) {
			if n, err := r.table.Expire(t.Context(), today); n < rows/3 || err != nil {
				t.Fatalf("%d rows expired: %v", n, err)
			}
		}},
		{"lost", true, func(t *testing.T, r *restarted) {
			if l := r.table.(sparsetable.LossHandler).Lost(); l == nil || l.Rows < rows/3 {
				t.Fatalf("lost %+v", l)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRestarted(t, 1, rows)
			second := blocktest.New(blocktest.Options{Dir: "/ssd1", Seed: 2, UnitBytes: 512})
			third := blocktest.New(blocktest.Options{Dir: "/ssd2", Seed: 3, UnitBytes: 512})
			r.opts.SSD.Dirs, r.others = []string{"/ssd", "/ssd1", "/ssd2"}, append(r.others, second, third)
			r.open()
			r.grow(rows)
			// Slots have either rows that stay or rows that expire, apart from some of the first ones.
			keys := slices.DeleteFunc(tabletest.KeysFrom(0, rows), func(key uint64) bool { return ssd.HashOf(key)&256 != 0 })
			for keys := range slices.Chunk(keys, 1000) {
				ws := r.pull(keys)
				r.update(ws, keys)
				for i := range keys {
					st := stressLayout.Stats(ws.Row(i))
					st.LastSeen = today.Today
					stressLayout.SetStats(ws.Row(i), st)
				}
				ws.Release()
			}
			settle(t, r.table)
			r.snapshot()
			r.close()

			held, arrived := make(chan struct{}), make(chan struct{}, 1)
			r.dev.read = func(int64) error {
				select {
				case arrived <- struct{}{}:
				default:
				}
				<-held
				return nil
			}
			for _, dev := range []*blocktest.Device{second, third} {
				for _, name := range must(dev.List())(t) {
					if c.lose && sparsetable.HasRows(name) && !isDelta(name) {
						if err := dev.Remove(name); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			r.opts.SSD.AllowLost = c.lose
			r.open()
			<-arrived
			slots := r.table.Stats().Slots
			c.remove(t, r)
			left := map[uint64]float32{}
			if err := r.table.Scan(t.Context(), func(key uint64, row []float32) error {
				left[key] = row[0]
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := ssd.ReshapeAmidRestore(t.Context(), r.table); err != nil {
				t.Fatal(err)
			}
			close(held)
			ssd.WaitRestored(r.table)
			r.check(left)
			if err := ssd.Reshape(t.Context(), r.table); err != nil {
				t.Fatal(err)
			}
			r.check(left)
			if st := r.table.Stats(); st.RestoredRows == 0 || st.Slots > slots*2/3 {
				t.Errorf("%d rows were restored, and %d of %d slots are left", st.RestoredRows, st.Slots, slots)
			}
			r.close()
		})
	}
}
