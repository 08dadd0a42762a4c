package slots

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
)

func newIndex(tb testing.TB, o Options) *Index {
	tb.Helper()
	x, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := x.Close(); err != nil {
			tb.Error(err)
		}
	})
	return x
}

// split splits a slot as a table does: it makes the next slot and divides the rows.
func split(tb testing.TB, x *Index, buckets map[uint32]map[uint64]bool) {
	tb.Helper()
	from, to := x.NextSplit()
	if err := x.Grow(); err != nil {
		tb.Fatal(err)
	}
	if x.Location(to) != 0 {
		tb.Fatalf("new slot %d has a bucket at %d", to, x.Location(to))
	}
	rows := buckets[from]
	delete(buckets, from)
	for k := range rows {
		s := x.Slot(Hash(k))
		if s != from && s != to {
			tb.Fatalf("split of %d into %d moved key %d to %d", from, to, k, s)
		}
		put(buckets, s, k)
	}
	for _, s := range []uint32{from, to} {
		rewrite(x, s, buckets[s], x.Location(from)+1)
	}
}

// merge undoes split.
func merge(tb testing.TB, x *Index, buckets map[uint32]map[uint64]bool) {
	tb.Helper()
	from, into := x.NextMerge()
	if err := x.Shrink(); err != nil {
		tb.Fatal(err)
	}
	for k := range buckets[from] {
		if s := x.Slot(Hash(k)); s != into {
			tb.Fatalf("merge of %d into %d moved key %d to %d", from, into, k, s)
		}
		put(buckets, into, k)
	}
	delete(buckets, from)
	rewrite(x, into, buckets[into], uint64(from)+1)
}

func put(buckets map[uint32]map[uint64]bool, s uint32, k uint64) {
	if buckets[s] == nil {
		buckets[s] = map[uint64]bool{}
	}
	buckets[s][k] = true
}

func rewrite(x *Index, s uint32, rows map[uint64]bool, location uint64) {
	var hashes []uint64
	for k := range rows {
		hashes = append(hashes, Hash(k))
	}
	if len(rows) == 0 {
		location = 0
	}
	x.Set(s, location)
	x.SetFilter(s, hashes)
}

// This test compares the index with a map over thousands of inserts and splits. Every key must stay
// in the slot that the index says, splits must not move other keys, and filters must not deny any
// key.
func TestModel(t *testing.T) {
	for _, filterBytes := range []int{0, 8, 24, 32, 64} {
		for seed := range uint64(3) {
			rng := rand.New(rand.NewPCG(seed, 7))
			x := newIndex(t, Options{FilterBytes: filterBytes, TargetRows: 6, PageSlots: 16})
			buckets := map[uint32]map[uint64]bool{}
			keys := map[uint64]bool{}
			for range 1500 {
				k := rng.Uint64()
				if rng.IntN(2) == 0 {
					k = rng.Uint64N(5000) // neighbours, too
				}
				keys[k] = true
				s := x.Slot(Hash(k))
				put(buckets, s, k)
				rewrite(x, s, buckets[s], 1+rng.Uint64())
				for x.ShouldSplit(int64(len(keys))) {
					split(t, x, buckets)
					for k := range keys {
						if s := x.Slot(Hash(k)); !buckets[s][k] {
							t.Fatalf("filters of %d, seed %d, %d slots: key %d is not in its slot %d", filterBytes, seed, x.Slots(), k, s)
						}
					}
				}
			}
			checkAgainst(t, x, buckets, keys, rng)
			for x.Slots() > 3 {
				merge(t, x, buckets)
				if x.Slots()%50 == 0 {
					checkAgainst(t, x, buckets, keys, rng)
				}
			}
			for x.ShouldSplit(int64(len(keys))) {
				split(t, x, buckets)
			}
			checkAgainst(t, x, buckets, keys, rng)
			for x.FilterBytes() > 0 {
				if err := x.ShrinkFilters(); err != nil {
					t.Fatal(err)
				}
				checkPresent(t, x, keys)
			}
		}
	}
}

func checkPresent(t *testing.T, x *Index, keys map[uint64]bool) {
	t.Helper()
	for k := range keys {
		if s := x.Slot(Hash(k)); !x.MayContain(s, Hash(k)) || x.Location(s) == 0 {
			t.Fatalf("filters of %d bytes: key %d is denied", x.FilterBytes(), k)
		}
	}
}

// checkAgainst compares the results of all methods of x that read with the buckets.
func checkAgainst(t *testing.T, x *Index, buckets map[uint32]map[uint64]bool, keys map[uint64]bool, rng *rand.Rand) {
	t.Helper()
	var hashes []uint64
	for k := range keys {
		hashes = append(hashes, Hash(k))
	}
	present := len(hashes)
	for range 1000 {
		hashes = append(hashes, rng.Uint64())
	}
	slots := make([]uint32, len(hashes))
	locations := make([]uint64, len(hashes))
	negatives := x.Lookup(hashes, slots, locations)
	want := 0
	for i, h := range hashes {
		s := x.Slot(h)
		maybe := x.MayContain(s, h)
		if i < present && (!maybe || locations[i] == 0) {
			t.Fatalf("hash %#x is denied", h)
		}
		location := x.Location(s)
		if !maybe {
			if location != 0 {
				want++
			}
			location = 0
		}
		if slots[i] != s || locations[i] != location {
			t.Fatalf("hash %#x: Lookup says slot %d, location %d; want %d, %d", h, slots[i], locations[i], s, location)
		}
	}
	if negatives != want {
		t.Fatalf("Lookup counts %d negatives, want %d", negatives, want)
	}
	if x.Slots() > 200 && (negatives > 500) != (x.FilterBytes() > 0) {
		t.Errorf("filters of %d bytes deny %d of 1000 random keys", x.FilterBytes(), negatives)
	}
	st := x.Stats(func(location uint64) int { return 1 + int(location%3) })
	full := uint32(0)
	for _, rows := range buckets {
		if len(rows) > 0 {
			full++
		}
	}
	if st.Slots != x.Slots() || st.Slots-st.Empty != full || x.Slots() > 200 && st.Unknown != 0 || st.Sizes[1]+st.Sizes[2]+st.Sizes[3] != full || st.MaxSize > 3 {
		t.Errorf("%+v; want %d slots, %d with a bucket", st, x.Slots(), full)
	}
}

// For any number of slots, one more slot sends each key to the slot where it was, or from the slot
// that was split to the new one. About half of the keys of that slot go to the new one.
func TestRoute(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 2_000 {
		n := uint32(i + 1)
		if i >= 1_000 {
			n = 1 + rng.Uint32N(maxSlots-1)
		}
		x, y := &Index{n: n, mask: maskOf(n)}, &Index{n: n + 1, mask: maskOf(n + 1)}
		from, to := x.NextSplit()
		if to != n || from >= n {
			t.Fatalf("%d slots: split of %d into %d", n, from, to)
		}
		moved := 0
		for j := range 64 {
			h := rng.Uint64()
			if j >= 32 { // one of the slot's that splits
				h = h&^uint64(x.mask>>1) | uint64(from)
			}
			a, b := x.Slot(h), y.Slot(h)
			if a >= n {
				t.Fatalf("%d slots: hash %#x goes to %d", n, h, a)
			}
			if a != b && (a != from || b != to) {
				t.Fatalf("%d slots: the split of %d into %d takes hash %#x from %d to %d", n, from, to, h, a, b)
			}
			if j >= 32 && b == to {
				moved++
			}
		}
		if moved < 2 || moved > 30 {
			t.Fatalf("%d slots: of 32 keys in slot %d, %d moved", n, from, moved)
		}
	}
}

func TestHashIsBijective(t *testing.T) {
	seen := map[uint64]bool{}
	for k := range uint64(100_000) {
		seen[Hash(k)] = true
	}
	if len(seen) != 100_000 {
		t.Errorf("100000 keys have %d hashes", len(seen))
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{FilterBytes: -8}, {FilterBytes: 12}, {FilterBytes: 72}, {TargetRows: -1}, {PageSlots: 3}, {PageSlots: 4096}, {Probes: 6}, {Probes: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v passes", o)
		}
	}
}

// An index knows its size in memory, and cannot have more than 2^31 slots.
func TestMemory(t *testing.T) {
	const n = 24 << 10 // slots of whole chunks
	x := newIndex(t, Options{FilterBytes: 32})
	for x.Slots() < n {
		if err := x.Grow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Restore(maxSlots + 1); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if want := int64(n)*40 + int64(n)/8; x.Bytes() < want || x.Bytes() > want+2048 {
		t.Errorf("%d slots take %d bytes, of which %d are their own", n, x.Bytes(), want)
	}
	if est := BytesFor(Options{FilterBytes: 32}, int64(n)*24); est > x.Bytes() || est < x.Bytes()-2048 {
		t.Errorf("BytesFor says %d, Bytes %d", est, x.Bytes())
	}
	if x.FilterTotalBytes() != int64(n)*32 {
		t.Errorf("filters take %d bytes", x.FilterTotalBytes())
	}
	x.Set(n-1, 5)
	if x.Location(n-1) != 5 || x.MayContain(n-1, 1) {
		t.Error("the last slot does not work")
	}
	for x.FilterBytes() > 0 {
		if err := x.ShrinkFilters(); err != nil {
			t.Fatal(err)
		}
		if want := int64(n)*int64(8+x.FilterBytes()) + int64(n)/8; x.Bytes() < want || x.Bytes() > want+4096 {
			t.Errorf("with filters of %d bytes %d slots take %d", x.FilterBytes(), n, x.Bytes())
		}
	}
	if x.FilterTotalBytes() != 0 || !x.MayContain(n-1, 1) || x.FilterUnknown(n-1) {
		t.Error("filters are still there")
	}
	if err := x.Grow(); err != nil {
		t.Errorf("without filters: %v", err)
	}
}

// Readers, which take a read lock for each batch, run beside one writer. Each key must be found in
// a slot that has it. The race detector also checks the accesses to memory.
func TestConcurrent(t *testing.T) {
	x := newIndex(t, Options{FilterBytes: 16, TargetRows: 4, PageSlots: 32})
	buckets := map[uint32]map[uint64]bool{}
	const keys = 4000
	hashes := make([]uint64, keys)
	for k := range hashes {
		hashes[k] = Hash(uint64(k))
		put(buckets, 0, uint64(k))
	}
	rewrite(x, 0, buckets[0], 1)
	var mu sync.RWMutex
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			slots, locations := make([]uint32, keys), make([]uint64, keys)
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.RLock()
				x.Lookup(hashes, slots, locations)
				for k, l := range locations {
					if l == 0 || !buckets[slots[k]][uint64(k)] {
						t.Errorf("key %d: slot %d, location %d", k, slots[k], l)
					}
				}
				mu.RUnlock()
			}
		})
	}
	for x.Slots() < 600 {
		mu.Lock()
		split(t, x, buckets)
		mu.Unlock()
	}
	close(done)
	readers.Wait()
}

func TestNoAllocations(t *testing.T) {
	x := newIndex(t, Options{FilterBytes: 32})
	hashes, slots, locations := make([]uint64, 1000), make([]uint32, 1000), make([]uint64, 1000)
	if n := testing.AllocsPerRun(10, func() {
		x.Lookup(hashes, slots, locations)
		x.Set(0, 1)
		x.SetFilter(0, hashes)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The hashes of a slot are those whose lowest bits, under the slot's mask, are its number. A slot
// that does not exist has no location.
func TestMasksOfSlots(t *testing.T) {
	for n := uint32(1); n < 70; n++ {
		for hash := range uint64(300) {
			slot := SlotAmong(hash, n)
			for other := range n {
				if of := (hash^uint64(other))&SlotMask(other, n) == 0; of != (other == slot) {
					t.Fatalf("%d slots: hash %d is of slot %d, but of slot %d by its mask: %v", n, hash, slot, other, of)
				}
			}
		}
	}
	x, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	x.Set(0, 7)
	if !x.LiesAt(0, 7) || x.LiesAt(0, 8) || x.LiesAt(1, 0) {
		t.Errorf("the bucket of slot 0 lies at 7: %v, at 8: %v; slot 1 lies nowhere: %v", x.LiesAt(0, 7), x.LiesAt(0, 8), x.LiesAt(1, 0))
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
