package rowcache

import (
	"slices"
	"testing"
)

// save saves a part of the rows that are to be saved, or all of them, after which it begins a new
// save.
func (m *model) save() {
	p := Pick{Idle: m.rng.IntN(2) == 0, MinUses: m.rng.IntN(4)}
	all := m.rng.IntN(2) == 0
	if all {
		p = Pick{}
	}
	if m.rng.IntN(4) > 0 || all {
		p.Has = Dirty | Old
	} else {
		p.Has, p.Lacks = Old, Dirty
	}
	want := map[uint64]bool{}
	for k, r := range m.rows {
		f := r.flags | Live
		busy := r.pins > 0 || f&Taken != 0
		if f&p.Has == p.Has && f&p.Lacks == 0 && !(p.Idle && busy) && int(decodeUses(uses(m.c.meta(r.ref).state))) >= p.MinUses {
			want[k] = true
		}
	}
	h := m.c.Histogram(p)
	if h.Rows() != int64(len(want)) {
		m.t.Fatalf("%+v: %d rows counted, want %d", p, h.Rows(), len(want))
	}
	most := 1 + m.rng.IntN(100)
	for at, end := uint32(0), false; !end; {
		n := 0
		at, end = m.c.VisitFrom(at, p, most, func(e Entry) Change {
			m.same(e)
			if !want[e.Key] {
				m.t.Fatalf("%+v: %+v was not to be picked, or twice", p, e)
			}
			delete(want, e.Key)
			m.rows[e.Key].change(0, Old)
			n++
			return Change{Clear: Old}
		})
		if n > most {
			m.t.Fatalf("%d rows picked, asked for %d", n, most)
		}
	}
	if len(want) > 0 {
		m.t.Fatalf("%+v: %d rows were not picked", p, len(want))
	}
	if m.c.Unsaved() == 0 {
		m.c.BeginSave()
		for _, r := range m.rows {
			r.flags ^= Old
		}
	}
	var keys []uint64
	for range 50 {
		keys = append(keys, uint64(m.rng.IntN(3000)))
	}
	in := make([]bool, len(keys))
	m.c.Contains(keys, hashesOf(keys), in)
	for i, k := range keys {
		if in[i] != (m.rows[k] != nil) {
			m.t.Fatalf("key %d is cached: %v", k, in[i])
		}
	}
}

func TestClasses(t *testing.T) {
	h := UsesHistogram{}
	for u, n := range map[int]int64{1: 1000, 2: 400, 5: 300, 9: 200, 30: 50, 200: 50} {
		h.rows[u] += n
		h.total += n
	}
	big := int(decodeUses(200))
	for _, c := range []struct {
		rows    int64
		classes int
		want    []int
	}{
		{2000, 4, []int{5, 2, 1}},
		{1000, 4, []int{9, 5, 2}},
		{100, 2, []int{big, 30}},
		{100, 1, []int{30}},
		{10, 3, []int{big}},
		{1 << 40, 1, []int{1}},
		{0, 3, nil},
	} {
		if got := slices.Collect(h.Classes(c.rows, c.classes)); !slices.Equal(got, c.want) {
			t.Errorf("%d rows in %d classes: %v, want %v", c.rows, c.classes, got, c.want)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for n := range 10000 {
		u := atLeast(n)
		if int(decodeUses(u)) < n || u > 0 && int(decodeUses(u-1)) >= n {
			t.Fatalf("%d uses: counter %d, of %d and %d uses", n, u, decodeUses(u-1), decodeUses(u))
		}
	}
}

func TestBeginSavePanics(t *testing.T) {
	c := newCache(t, Options{Words: 4, MaxBytes: 200 << 10, Policy: LRULFU, Hash: mix})
	refs := make([]uint32, 1)
	if _, err := c.Insert([]uint64{7}, []uint64{mix(7)}, nil, refs, false); err != nil {
		t.Fatal(err)
	}
	c.Release(refs, true)
	c.BeginSave()
	defer func() {
		if recover() == nil {
			t.Error("BeginSave forgets a row that is to be saved")
		}
	}()
	c.BeginSave()
}
