package slots

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Filters that were made smaller have the same bits as filters of that size that were made from the
// keys with as many probes. The same holds for pages with larger filters when they are read.
func TestShrinkFilters(t *testing.T) {
	const slots = 3000 // two chunks
	for _, size := range []int{64, 48, 32, 16} {
		rng := rand.New(rand.NewPCG(uint64(size), 1))
		x := newIndex(t, Options{FilterBytes: size, TargetRows: size})
		for x.Slots() < slots {
			if err := x.Grow(); err != nil {
				t.Fatal(err)
			}
		}
		hashes := make([][]uint64, slots)
		for s := range hashes {
			for range rng.IntN(size) {
				hashes[s] = append(hashes[s], rng.Uint64())
			}
			x.Set(uint32(s), 1)
			x.SetFilter(uint32(s), hashes[s])
		}
		larger, o := pages(x), Options{TargetRows: size, Probes: x.filter.probes}
		for o.FilterBytes = SmallerFilter(size); ; o.FilterBytes = SmallerFilter(o.FilterBytes) {
			if err := x.ShrinkFilters(); err != nil {
				t.Fatal(err)
			}
			want := newIndex(t, o)
			if err := want.Restore(slots); err != nil {
				t.Fatal(err)
			}
			for s, h := range hashes {
				want.Set(uint32(s), 1)
				want.SetFilter(uint32(s), h)
			}
			read := restore(t, o, slots, larger)
			for p := range want.Pages() {
				w := want.EncodePage(p, nil)
				if !bytes.Equal(x.EncodePage(p, nil), w) {
					t.Fatalf("%d bytes made %d: page %d differs", size, o.FilterBytes, p)
				}
				if !bytes.Equal(read.EncodePage(p, nil), w) {
					t.Fatalf("%d bytes read as %d: page %d differs", size, o.FilterBytes, p)
				}
			}
			if x.Bytes() != want.Bytes() || x.FilterBytes() != o.FilterBytes {
				t.Fatalf("%d bytes made %d: %d bytes in all, want %d", size, x.FilterBytes(), x.Bytes(), want.Bytes())
			}
			if o.FilterBytes == 0 {
				break
			}
		}
	}
}

// The share of absent keys that pass filters of 13 rows while these are made smaller is as in the
// package's documentation.
func TestShrunkFalsePositives(t *testing.T) {
	const rows, n, probes = 13, 1 << 14, 200_000
	rng := rand.New(rand.NewPCG(8, 8))
	x := filled(t, Options{FilterBytes: 16, TargetRows: rows, Probes: 4}, n*rows*5/4)
	for _, want := range []float64{.023, .144, 1} {
		passed := 0
		for range probes {
			h := Hash(1<<40 + rng.Uint64N(1<<40))
			if x.MayContain(x.Slot(h), h) {
				passed++
			}
		}
		got := float64(passed) / probes
		t.Logf("filters of %d bytes, %d probes: %.2f %% pass, %.2f bytes a key", x.FilterBytes(), x.filter.probes, 100*got, float64(x.Bytes())/(n*rows*5/4))
		if got < .8*want || got > 1.2*want {
			t.Errorf("filters of %d bytes let %.4f of absent keys through, want %.3f", x.FilterBytes(), got, want)
		}
		if x.FilterBytes() > 0 {
			if err := x.ShrinkFilters(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
