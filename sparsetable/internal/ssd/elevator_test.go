package ssd_test

import (
	"fmt"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
)

// If passes are announced well ahead, the elevator reads nearly all rows before their pass, several
// with each read, and the rows that leave the cache are written into buckets that it has read, so
// that no bucket is read a second time. The same must hold if passes are announced as far ahead as
// the table asks for, and if a pass is so large that the cache has room for the missing rows of
// only a few passes.
func TestSSDElevator(t *testing.T) {
	for _, c := range []struct{ batch, ahead, warm int }{{600, 20, 60}, {1000, 0, 80}, {2500, 0, 60}} {
		t.Run(fmt.Sprint(c.batch), func(t *testing.T) { testElevator(t, c.batch, c.ahead, c.warm) })
	}
}

// testElevator pulls passes of batch keys, each announced that many passes ahead (0: as many as the
// table asks for), and checks the figures of the passes after the first ones, which warm the cache
// up.
func testElevator(t *testing.T, batch, ahead, warm int) {
	const passes, last = 160, 140
	rng := testseed.Rand(t)
	tab := outgrown(t, 10<<20)
	order := rng.Perm(carryRows)
	var all [][]uint64
	var rows [][]int
	for n := range passes {
		var keys []uint64
		var at []int
		for i := range batch { // all rows in turn, so that nothing but the window helps
			r := order[(n*batch+i)%carryRows]
			keys, at = append(keys, tabletest.SpreadKey(r)), append(at, r)
		}
		all, rows = append(all, keys), append(rows, at)
	}
	want := make([]float32, carryRows)
	for i := range want {
		want[i] = float32(i)
	}
	var start sparsetable.Stats
	announced := 0
	far := func() int { return ahead }
	if ahead == 0 {
		far = func() int { return tab.Lookahead(batch) }
	}
	for n := range passes {
		for ; announced < min(passes, n+far()); announced++ {
			tab.Announce(all[announced])
		}
		if n == warm {
			start = tab.Stats()
		}
		ws, err := tab.Pull(t.Context(), all[n], sparsetable.PullCreate)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rows[n] {
			row := ws.Row(i)
			if row[0] != want[r] {
				t.Fatalf("pass %d: row %d holds %v, want %v", n, r, row[0], want[r])
			}
			row[0] += float32(n)
			want[r] = row[0]
		}
		ws.Release()
		if n == last {
			break // the window is no longer full
		}
	}
	st := tab.Stats()
	pulled := float64(batch * (last - warm + 1))
	hits := float64(st.Hits-start.Hits) / pulled
	reads := float64(st.DeviceReads-start.DeviceReads) / pulled
	flushed, again := st.FlushedRows-start.FlushedRows, st.RewriteReads-start.RewriteReads
	t.Logf("%.3f of the rows came before their pass, %.2f reads a row, %d rows written, %d buckets read again for that", hits, reads, flushed, again)
	if hits < .9 {
		t.Errorf("%.3f of the rows came before their pass", hits)
	}
	if reads > .5 {
		t.Errorf("%.2f reads a row", reads)
	}
	if flushed < int64(pulled)/4 || again > flushed/5 {
		t.Errorf("%d rows written, %d buckets read again for that", flushed, again)
	}
}
