package slots

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// change makes one random change to x.
func change(tb testing.TB, x *Index, rng *rand.Rand) {
	tb.Helper()
	s := rng.Uint32N(x.Slots())
	switch rng.IntN(6) {
	case 0:
		x.Set(s, rng.Uint64())
	case 1:
		x.SetFilter(s, []uint64{rng.Uint64(), rng.Uint64()})
	case 2:
		x.Add(s, rng.Uint64())
	case 3:
		x.ResetFilter(s)
	case 4:
		for range 1 + rng.IntN(20) { // over a page's edge now and then
			if err := x.Grow(); err != nil {
				tb.Fatal(err)
			}
		}
	case 5:
		for range min(1+rng.Uint32N(20), x.Slots()-1) {
			_, into := x.NextMerge()
			if err := x.Shrink(); err != nil {
				tb.Fatal(err)
			}
			x.Set(into, rng.Uint64())
			x.Add(into, rng.Uint64())
		}
	}
}

// Captures are taken while the index changes, and some of them fail. Together they must give the
// index at the beginning of the last capture that did not fail.
func TestCapture(t *testing.T) {
	o := Options{FilterBytes: 8, PageSlots: 8}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		x := newIndex(t, o)
		stored := map[uint32][]byte{} // what a catalog would hold
		for round := range 12 {
			at := fmt.Sprintf("seed %d, round %d", seed, round)
			for range rng.IntN(60) {
				change(t, x, rng)
			}
			want := pages(x)
			slots, dirty := x.Slots(), x.DirtyPages()
			c := x.BeginCapture()
			if x.DirtyPages() != 0 || c.Left() != dirty || c.Slots() != slots {
				t.Fatalf("%s: %d dirty, %d left of %d, %d slots of %d", at, x.DirtyPages(), c.Left(), dirty, c.Slots(), slots)
			}
			taken := map[uint32][]byte{}
			fail := rng.IntN(3) == 0
			var buf []byte
			last := int64(-1)
			for {
				for range rng.IntN(8) {
					change(t, x, rng)
				}
				left := c.Left()
				page, data, ok := c.Next(buf[:0])
				if !ok {
					if left != 0 {
						t.Fatalf("%s: %d pages are left", at, left)
					}
					break
				}
				if c.Left() != left-1 {
					t.Fatalf("%s: %d left after %d", at, c.Left(), left)
				}
				if int64(page) <= last {
					t.Fatalf("%s: page %d comes after %d", at, page, last)
				}
				last = int64(page)
				taken[page], buf = bytes.Clone(data), data
				if fail && rng.IntN(4) == 0 {
					break
				}
			}
			if fail {
				c.Abort()
				if x.DirtyPages() < min(dirty, int(x.Pages())) && x.Slots() >= slots {
					t.Fatalf("%s: %d dirty pages after a failure, %d before", at, x.DirtyPages(), dirty)
				}
				if x.DirtyPages() > int(x.Pages()) {
					t.Fatalf("%s: %d pages of %d are dirty", at, x.DirtyPages(), x.Pages())
				}
				continue
			}
			c.Done()
			maps.Copy(stored, taken)
			for p, b := range want {
				if !bytes.Equal(stored[uint32(p)], b) {
					t.Fatalf("%s: page %d is not as it was", at, p)
				}
			}
		}
	}
}

// Copies of pages count as memory, and only pages that change are copied.
func TestCaptureMemory(t *testing.T) {
	x := random(t, Options{FilterBytes: 32}, 128*20, rand.New(rand.NewPCG(1, 2)))
	c := x.BeginCapture()
	before := x.Bytes()
	for range 3 {
		x.Set(5, 1)
		x.Add(200, 1)
	}
	page := int64(x.MaxPageBytes())
	if grown := x.Bytes() - before; grown != 2*page {
		t.Errorf("two copies take %d bytes, want %d", grown, 2*page)
	}
	for {
		if _, _, ok := c.Next(nil); !ok {
			break
		}
	}
	x.Set(5, 2) // has been taken
	if grown := x.Bytes() - before; grown != 2*page {
		t.Errorf("after all pages were taken: %d bytes, want %d", grown, 2*page)
	}
	c.Done()
	if x.Bytes() >= before {
		t.Errorf("%d bytes after the capture, %d at its begin", x.Bytes(), before)
	}
	if x.DirtyPages() != 2 {
		t.Errorf("%d dirty pages", x.DirtyPages())
	}
}
