package process

import (
	"math"
	"testing"
)

// TestGarbageLimit: the limit leaves a share of the memory free, and follows what is free.
func TestGarbageLimit(t *testing.T) {
	for _, c := range []struct{ has, resident, free, want int64 }{ // in MiB
		{100, 260, -1, math.MaxInt64 >> 20},
		{100, 260, 401, 459},
		{100, 260, 60, 140},
		{140, 300, 20, 140},
		{140, 320, 0, 120},
		{10, 320, 0, 0},
		{2000, 60000, 256, 2000},
	} {
		if got := garbageLimit(c.has<<20, c.resident<<20, c.free<<20) >> 20; got != c.want {
			t.Errorf("Go has %d of %d MiB, %d are free: a limit of %d, want %d", c.has, c.resident, c.free, got, c.want)
		}
	}
}

// TestMostMemory: it is what the process has and what is free, which other processes change.
func TestMostMemory(t *testing.T) {
	before, most, after := FreeMemory(), MostMemory(), FreeMemory()
	if after < 0 {
		t.Skip("the system does not say what is free")
	}
	if now := MemoryOrZero().Now; most <= 0 || most < min(before, after)/2 || most > 2*max(before, after)+now {
		t.Errorf("%d bytes, of which %d were free, and then %d, and %d the process's own", most, before, after, now)
	}
}
