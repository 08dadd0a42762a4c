package main

import (
	"math"
	"slices"
	"testing"
)

// zipfShares are the share of the most popular part of keys in the lookups, and
// the unique keys expected of a mini-batch, by the law itself.
func zipfShares(keys, lookups int, s, part float64) (top, unique float64) {
	total := 0.0
	for r := keys - 1; r >= 0; r-- { // small ones first, for precision
		total += math.Pow(float64(1+r), -s)
	}
	for r := keys - 1; r >= 0; r-- {
		p := math.Pow(float64(1+r), -s) / total
		if float64(r) < part*float64(keys) {
			top += p
		}
		unique += -math.Expm1(float64(lookups) * math.Log1p(-p))
	}
	return top, unique
}

func closeTrace(t *testing.T, tr *trace) {
	t.Helper()
	if err := tr.close(); err != nil {
		t.Error(err)
	}
}

// The full size has the shares that the workload is defined by: 90 % of the
// lookups on 1 % of the keys, about 27,606 unique keys a mini-batch.
func TestTraceAtFullSize(t *testing.T) {
	const keys, lookups, s = 20_000_000, 4096 * 26, 1.125
	top, unique := zipfShares(keys, lookups, s, 0.01)
	if top < 0.895 || top > 0.91 {
		t.Errorf("%.4f of the lookups on 1 %% of the keys, want 0.90", top)
	}
	if math.Abs(unique-27_606) > 60 {
		t.Errorf("%.0f unique keys expected in a batch, want about 27,606", unique)
	}
	tr, err := newTrace(keys, 4, lookups, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer closeTrace(t, tr)
	// The standard deviation of a batch is some 100 keys.
	if mean := float64(len(tr.ranks)) / 4; math.Abs(mean-unique) > 300 {
		t.Errorf("%.0f unique keys drawn in a batch, %.0f expected", mean, unique)
	}
}

// Lookups are drawn as the law says: a batch of one lookup is that lookup.
func TestTraceFollowsZipf(t *testing.T) {
	const keys, draws, s = 1000, 200_000, 1.3
	tr, err := newTrace(keys, draws, 1, s, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer closeTrace(t, tr)
	counts := make([]int, keys)
	for b := range draws {
		counts[tr.batch(b)[0]]++
	}
	total := 0.0
	for r := range keys {
		total += math.Pow(float64(1+r), -s)
	}
	for _, r := range []int{0, 1, 10, 100} {
		want := draws * math.Pow(float64(1+r), -s) / total
		if got := float64(counts[r]); math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("rank %d was drawn %.0f times, want about %.0f", r, got, want)
		}
	}
}

func TestTraceIsUniqueAndRepeatable(t *testing.T) {
	draw := func(seed int64) [][]uint64 {
		tr, err := newTrace(5000, 20, 700, 1.125, seed)
		if err != nil {
			t.Fatal(err)
		}
		defer closeTrace(t, tr)
		var all [][]uint64
		total := 0
		for b := range tr.batches() {
			keys := tr.appendKeys(nil, b)
			sorted := slices.Sorted(slices.Values(keys))
			if n := len(slices.Compact(sorted)); n != len(keys) {
				t.Fatalf("batch %d has %d keys, %d of them unique", b, len(keys), n)
			}
			total += len(keys)
			all = append(all, keys)
		}
		if total != len(tr.ranks) {
			t.Fatalf("%d keys in batches, ranks says %d", total, len(tr.ranks))
		}
		return all
	}
	equal := func(a, b [][]uint64) bool { return slices.EqualFunc(a, b, slices.Equal[[]uint64]) }
	if !equal(draw(1), draw(1)) {
		t.Error("one seed gave two traces")
	}
	if equal(draw(1), draw(2)) {
		t.Error("two seeds gave one trace")
	}
}

func TestLoadOrderVisitsEveryRank(t *testing.T) {
	for _, keys := range []int{2, 3, 10, 1000, 4096, 30_030} {
		seen := make([]bool, keys)
		order := loadOrder(keys)
		for i := range keys {
			r := order(i)
			if seen[r] {
				t.Fatalf("%d keys: rank %d twice", keys, r)
			}
			seen[r] = true
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for r := range uint64(100_000) {
		seen[keyOf(r)] = true
	}
	if len(seen) != 100_000 {
		t.Errorf("100000 ranks gave %d keys", len(seen))
	}
}
