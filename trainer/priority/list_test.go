package priority

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
)

// table is the rows of a table, all in memory.
type table struct {
	layout sparsetable.Layout
	rows   map[uint64][]float32
}

func newTable(format sparsetable.ValueFormat) *table {
	return &table{sparsetable.Layout{ValueDim: 3, StateDim: 2, Format: format}, map[uint64][]float32{}}
}

// pass is the rows of some keys.
type pass struct {
	t    *table
	keys []uint64
}

func (p pass) Row(i int) []float32 {
	row := p.t.rows[p.keys[i]]
	if row == nil {
		row = make([]float32, p.t.layout.Words())
		p.t.rows[p.keys[i]] = row
	}
	return row
}

// access changes the row of a key as n accesses do, and its values by by.
func (t *table) access(key uint64, n uint32, by float32) {
	row := t.rows[key]
	s := t.layout.Stats(row)
	s.Count += n
	t.layout.SetStats(row, s)
	values := make([]float32, t.layout.ValueDim)
	t.layout.LoadValues(values, row)
	for i := range values {
		values[i] += by
	}
	t.layout.StoreValues(row, values, key, sparsetable.NewRounding(1, uint64(s.Count)))
}

// train has a list watch a pass in which each key is accessed as often as its value says, and
// is moved by as much.
func (t *table) train(l List, accesses map[uint64]int) {
	keys := slices.Sorted(maps.Keys(accesses))
	p := pass{t, keys}
	l.Begin(keys, p)
	for _, k := range keys {
		if n := accesses[k]; n > 0 {
			t.access(k, uint32(n), float32(n)/4)
		}
	}
	l.End(keys, p)
}

// oracle is the slow form of mfu and scar: a figure for each row.
type oracle struct {
	kind  string
	t     *table
	saved map[uint64][]float32
}

// figure is the accesses to a row, or the norm of its change, since it was saved.
func (o *oracle) figure(key uint64) float64 {
	row, then := o.t.rows[key], o.saved[key]
	if then == nil {
		then = make([]float32, o.t.layout.Words())
	}
	if o.kind == MFU {
		return float64(o.t.layout.Stats(row).Count - o.t.layout.Stats(then).Count)
	}
	a, b := make([]float32, o.t.layout.ValueDim), make([]float32, o.t.layout.ValueDim)
	o.t.layout.LoadValues(a, row)
	o.t.layout.LoadValues(b, then)
	sum := 0.0
	for i := range a {
		sum += float64(a[i]-b[i]) * float64(a[i]-b[i])
	}
	return math.Sqrt(sum)
}

func (o *oracle) save(keys []uint64) {
	for _, k := range keys {
		o.saved[k] = slices.Clone(o.t.rows[k])
	}
}

// TestChoose: mfu and scar lists choose the rows that a figure for each row of the table chooses,
// through any history of passes and saves.
func TestChoose(t *testing.T) {
	rng := testseed.Rand(t)
	for range 60 {
		kind, format := [...]string{MFU, SCAR}[rng.IntN(2)], sparsetable.ValueFormats()[rng.IntN(3)]
		f, err := sparsetable.ParseValueFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		tab := newTable(f)
		l, o := New(kind, tab.layout, 1<<20, 1), &oracle{kind, tab, map[uint64][]float32{}}
		for range 1 + rng.IntN(60) {
			switch rng.IntN(8) {
			default:
				tab.train(l, drawPass(rng, 300))
			case 0:
				l.Clear()
				o.save(slices.Collect(maps.Keys(tab.rows)))
			case 1:
				n := rng.IntN(40)
				got := l.Choose(n)
				var want []float64
				for k := range tab.rows {
					if x := o.figure(k); x > 0 {
						want = append(want, x)
					}
				}
				slices.SortFunc(want, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
				want = want[:min(n, len(want))]
				var have []float64
				for _, k := range got {
					have = append(have, o.figure(k))
				}
				slices.SortFunc(have, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
				if !slices.EqualFunc(have, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6*(1+b) }) {
					t.Fatalf("%s, %s: of %d rows chose %v, want %v", kind, format, n, have, want)
				}
				if slices.Sort(got); len(slices.Compact(got)) != len(have) {
					t.Fatalf("a row was chosen twice: %v", got)
				}
				got = got[:rng.IntN(len(got)+1)]
				l.Saved(got)
				o.save(got)
			}
		}
	}
}

func drawPass(rng *rand.Rand, keys int) map[uint64]int {
	m := map[uint64]int{}
	for range 1 + rng.IntN(40) {
		m[uint64(rng.IntN(1+rng.IntN(keys)))*0x9E3779B97F4A7C15] = rng.IntN(5)
	}
	return m
}

// TestLimit checks that a list never takes more memory than its limit, and that an mfu list keeps
// the rows that are accessed far more often than others.
func TestLimit(t *testing.T) {
	rng := testseed.Rand(t)
	for _, kind := range []string{MFU, SSU, SCAR} {
		for _, limit := range []int64{0, 100, 5000, 60_000} {
			tab := newTable(sparsetable.Float32)
			l := New(kind, tab.layout, limit, 7)
			for range 300 {
				m := map[uint64]int{1: 50, 2: 50, 3: 50}
				for range 20 {
					m[rng.Uint64()] = 1
				}
				tab.train(l, m)
				if n := l.Bytes(); n > max(limit, 200)+4*32 { // one entry, and the counts of a pass
					t.Fatalf("%s: %d bytes, limit %d", kind, n, limit)
				}
			}
			if got := l.Choose(1 << 20); len(got) == 0 || kind == MFU && limit >= 5000 && !containsAll(l.Choose(3), 1, 2, 3) {
				t.Errorf("%s with a limit of %d: chose %v", kind, limit, got)
			}
		}
	}
}

func containsAll(list []uint64, keys ...uint64) bool {
	return !slices.ContainsFunc(keys, func(k uint64) bool { return !slices.Contains(list, k) })
}

// TestSSU: the list has as many rows as are to be chosen, rows with many accesses are more
// likely to be in it, rows that were not accessed are not, and the same seed gives the same list.
func TestSSU(t *testing.T) {
	counts := map[uint64]int{}
	for seed := range uint64(200) {
		var lists [2][]uint64
		for i := range lists {
			tab := newTable(sparsetable.Float32)
			l := New(SSU, tab.layout, 1<<20, seed)
			l.Resize(10)
			rng := rand.New(rand.NewPCG(seed, 3))
			for range 50 {
				m := map[uint64]int{999: 0}
				for k := range uint64(100) {
					if rng.IntN(100) < 1+10*int(k/90) {
						m[k] = 1
					}
				}
				tab.train(l, m)
			}
			lists[i] = l.Choose(10)
			if len(lists[i]) != 10 || len(l.Choose(4)) != 4 {
				t.Fatalf("chose %v", lists[i])
			}
		}
		if !slices.Equal(lists[0], lists[1]) {
			t.Fatalf("seed %d: %v and %v", seed, lists[0], lists[1])
		}
		for _, k := range lists[0] {
			counts[k]++
		}
	}
	rare, often := 0, 0
	for k, n := range counts {
		switch {
		case k == 999:
			t.Error("a row that was not accessed is in the list")
		case k < 90:
			rare += n
		default:
			often += n
		}
	}
	if often*9 < 3*rare { // by row, 11 times as many accesses
		t.Errorf("rows that are accessed often are %d times in a list, the others, nine times as many, %d times", often, rare)
	}
}
