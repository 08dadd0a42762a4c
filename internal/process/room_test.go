package process

import (
	"math"
	"testing"
)

// TestRoom: a cache leaves twice as much free as garbage does, and gives memory back where less is
// free than garbage leaves.
func TestRoom(t *testing.T) {
	for _, c := range []struct{ resident, free, want int64 }{ // in MiB
		{260, -1, math.MaxInt64 >> 20},
		{100, 1500, 1300},
		{1400, 200, 0},
		{1500, 100, 0},
		{1549, 51, -99},
		{1499, 101, 0},
		{1600, 0, -150},
		{60000, 700, 188},
		{60000, 500, 0},
		{60000, 100, -284},
	} {
		got := roomIn(c.resident<<20, c.free<<20)
		if got>>20 != c.want {
			t.Errorf("%d MiB are resident and %d free: room for %d, want %d", c.resident, c.free, got>>20, c.want)
		}
	}
}
