package slots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// pages returns all pages of x, encoded.
func pages(x *Index) [][]byte {
	var all [][]byte
	for p := range x.Pages() {
		all = append(all, x.EncodePage(p, nil))
	}
	return all
}

// restore makes an index from pages; a page that is nil is missing.
func restore(tb testing.TB, o Options, slots uint32, all [][]byte) *Index {
	tb.Helper()
	y := newIndex(tb, o)
	if err := y.Restore(slots); err != nil {
		tb.Fatal(err)
	}
	for p, b := range all {
		if err := y.DecodePage(uint32(p), b); err != nil {
			tb.Fatal(err)
		}
	}
	return y
}

// random returns an index of n slots with random contents, where some slots have no bucket.
func random(tb testing.TB, o Options, n uint32, rng *rand.Rand) *Index {
	tb.Helper()
	x := newIndex(tb, o)
	for x.Slots() < n {
		if err := x.Grow(); err != nil {
			tb.Fatal(err)
		}
	}
	for s := range n {
		if rng.IntN(8) == 0 {
			continue
		}
		x.Set(s, 1+rng.Uint64())
		for range 20 {
			x.Add(s, rng.Uint64())
		}
	}
	return x
}

func TestPageRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, o := range []Options{{}, {FilterBytes: 32}, {FilterBytes: 64, PageSlots: 1}, {FilterBytes: 8, PageSlots: 2048}} {
		for _, n := range []uint32{1, 127, 128, 129, 5000} {
			x := random(t, o, n, rng)
			all := pages(x)
			y := restore(t, o, n, all)
			if y.DirtyPages() != 0 {
				t.Errorf("%d pages are dirty after reading", y.DirtyPages())
			}
			for p, b := range pages(y) {
				if !bytes.Equal(b, all[p]) {
					t.Fatalf("%+v, %d slots: page %d differs", o, n, p)
				}
				if len(b) > x.MaxPageBytes() {
					t.Fatalf("page of %d bytes, at most %d announced", len(b), x.MaxPageBytes())
				}
			}
		}
	}
}

// Pages that were written with other filters are read with filters that deny nothing, until the
// filters are set anew.
func TestPageOfOtherFilters(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, o := range []Options{{FilterBytes: 24}, {FilterBytes: 64}, {FilterBytes: 32, Probes: 3}, {}} {
		x := random(t, Options{FilterBytes: 32, TargetRows: 100}, 200, rng)
		y := restore(t, o, 200, pages(x))
		for s := range uint32(200) {
			if y.Location(s) != x.Location(s) {
				t.Fatalf("slot %d: location %d", s, y.Location(s))
			}
			h := rng.Uint64()
			if has := x.Location(s) != 0; o.FilterBytes > 0 && (y.MayContain(s, h) != has || y.FilterUnknown(s) != has) {
				t.Fatalf("slot %d: may contain %v, unknown %v, has a bucket %v", s, y.MayContain(s, h), y.FilterUnknown(s), has)
			}
			y.SetFilter(s, []uint64{h})
			if y.FilterUnknown(s) || !y.MayContain(s, h) {
				t.Fatalf("slot %d: the new filter does not count", s)
			}
		}
	}
}

// Pages that were written with smaller filters, because memory was short, are read with filters
// that give the same answer for every key.
func TestPageOfSmallerFilters(t *testing.T) {
	const slots = 200
	rng := rand.New(rand.NewPCG(2, 3))
	for _, c := range [][2]int{{8, 16}, {8, 64}, {16, 32}, {24, 48}} {
		x := random(t, Options{FilterBytes: c[0], TargetRows: 10, Probes: 4}, slots, rng)
		keys := make([][]uint64, slots)
		for s := range uint32(slots) {
			if x.Location(s) == 0 {
				continue
			}
			for range 10 {
				keys[s] = append(keys[s], rng.Uint64())
			}
			x.SetFilter(s, keys[s])
		}
		y := restore(t, Options{FilterBytes: c[1], TargetRows: 10, Probes: 4}, slots, pages(x))
		denied := 0
		for s := range uint32(slots) {
			for _, h := range keys[s] {
				if !y.MayContain(s, h) {
					t.Fatalf("from %d to %d bytes: the filter of slot %d lost a key", c[0], c[1], s)
				}
			}
			for range 100 {
				h := rng.Uint64()
				if x.MayContain(s, h) != y.MayContain(s, h) {
					t.Fatalf("from %d to %d bytes: slot %d may contain %x: %v, before %v", c[0], c[1], s, h, y.MayContain(s, h), x.MayContain(s, h))
				}
				if !y.MayContain(s, h) && y.Location(s) != 0 {
					denied++
				}
			}
		}
		if denied == 0 {
			t.Errorf("from %d to %d bytes: the filters deny nothing", c[0], c[1])
		}
	}
}

// Every flipped bit and every truncation is detected, and leaves the index unchanged.
func TestPageDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	o := Options{FilterBytes: 8, PageSlots: 4}
	x := random(t, o, 10, rng)
	good := x.EncodePage(1, nil)
	y := restore(t, o, 10, pages(x))
	before := y.EncodePage(1, nil)
	check := func(page uint32, b []byte) {
		t.Helper()
		var damaged *PageError
		if err := y.DecodePage(page, b); !errors.As(err, &damaged) || damaged.Page != page {
			t.Fatalf("%x: %v", b, err)
		}
		if !bytes.Equal(y.EncodePage(1, nil), before) {
			t.Fatal("the index has changed")
		}
	}
	for i := range 8 * len(good) {
		b := bytes.Clone(good)
		b[i/8] ^= 1 << (i % 8)
		check(1, b)
	}
	for n := range good {
		check(1, good[:n])
	}
	check(0, good)
	check(2, good) // which has two slots only
	check(3, good) // which there is not
	check(1, x.EncodePage(2, nil))
}

// FuzzDecodePage makes the checksum of each input right, since it would reject nearly all inputs
// otherwise.
func FuzzDecodePage(f *testing.F) {
	rng := rand.New(rand.NewPCG(4, 1))
	o := Options{FilterBytes: 16, PageSlots: 4}
	x := random(f, o, 6, rng)
	f.Add(x.EncodePage(0, nil))
	f.Add(x.EncodePage(1, nil))
	f.Add(random(f, Options{FilterBytes: 32, PageSlots: 4}, 6, rng).EncodePage(0, nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(b) - 4; n >= 0 {
			b = binary.LittleEndian.AppendUint32(bytes.Clone(b[:n]), crc32.Checksum(b[:n], castagnoli))
		}
		y := newIndex(t, o)
		if err := y.Restore(6); err != nil {
			t.Fatal(err)
		}
		for p := range y.Pages() {
			before := y.EncodePage(p, nil)
			err := y.DecodePage(p, b)
			after := y.EncodePage(p, nil)
			if err != nil && !bytes.Equal(before, after) {
				t.Fatalf("page %d changed in spite of %v", p, err)
			}
			if err == nil && b[6] == 16 && b[7] == byte(y.filter.probes) && !bytes.Equal(after, b) {
				t.Fatalf("page %d was read as %x", p, after)
			}
		}
	})
}
