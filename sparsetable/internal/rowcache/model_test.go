package rowcache

import (
	"math/rand/v2"
	"testing"
)

// mix is the finalizer of MurmurHash3, as the slots of the SSD index use it.
func mix(k uint64) uint64 {
	k ^= k >> 33
	k *= 0xff51afd7ed558ccd
	k ^= k >> 33
	k *= 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}

// modelRow is the model's state of a row.
type modelRow struct {
	ref   uint32
	pins  int
	flags Flags
	value float32
}

// change changes a row's flags: a row that becomes dirty is no longer Old, and only a row that
// stays dirty stays Saved.
func (r *modelRow) change(set, unset Flags) {
	if set&^r.flags&Dirty != 0 {
		unset |= Old
	}
	was := r.flags
	r.flags = r.flags&^unset | set
	if was&r.flags&Dirty == 0 {
		r.flags &^= Saved
	}
}

// model applies the same operations to a cache and to a Go map.
type model struct {
	t     *testing.T
	rng   *rand.Rand
	c     *Cache
	words int
	rows  map[uint64]*modelRow
	byRef map[uint32]uint64
	sets  [][]uint64 // keys of the passes in flight
	refs  [][]uint32
	taken []uint32
	pass  int64
	ahead [][]uint64 // keys of the passes to come
}

func (m *model) keys() []uint64 {
	n := 1 + m.rng.IntN(60)
	var keys []uint64
	have := map[uint64]bool{}
	for range n {
		k := uint64(m.rng.IntN(40))
		if m.rng.IntN(2) == 0 {
			k = uint64(m.rng.IntN(3000))
		}
		if !have[k] {
			have[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

func hashesOf(keys []uint64) []uint64 {
	h := make([]uint64, len(keys))
	for i, k := range keys {
		h[i] = mix(k)
	}
	return h
}

func (m *model) announce() {
	keys := m.keys()
	if _, err := m.c.Announce(m.pass+int64(len(m.ahead)), keys, nil); err != nil {
		m.t.Fatal(err)
	}
	m.ahead = append(m.ahead, keys)
}

func (m *model) pull() {
	if len(m.ahead) == 0 {
		m.announce()
	}
	keys := m.ahead[0]
	m.ahead = m.ahead[1:]
	hashes := hashesOf(keys)
	refs := make([]uint32, len(keys))
	found := m.c.Find(m.pass, keys, hashes, refs)
	m.pass++
	missing := 0
	for i, k := range keys {
		r := m.rows[k]
		switch {
		case r == nil && refs[i] != 0:
			m.t.Fatalf("key %d is not cached, but found", k)
		case r == nil:
			missing++
		case refs[i] != r.ref:
			m.t.Fatalf("key %d: reference %d, want %d", k, refs[i], r.ref)
		default:
			r.pins++
		}
	}
	if found != len(keys)-missing {
		m.t.Fatalf("found %d, want %d", found, len(keys)-missing)
	}
	used := make([]uint32, len(keys))
	for i := range used {
		used[i] = m.rng.Uint32N(1000)
	}
	before := append([]uint32(nil), refs...)
	marked := m.rng.IntN(2) == 0
	added, err := m.c.Insert(keys, hashes, used, refs, marked)
	if err != nil {
		m.t.Fatal(err)
	}
	for i, k := range keys {
		if before[i] != 0 || refs[i] == 0 {
			continue
		}
		added--
		missing--
		if other, ok := m.byRef[refs[i]]; ok {
			m.t.Fatalf("keys %d and %d share reference %d", k, other, refs[i])
		}
		row := m.c.Row(refs[i])
		for _, v := range row {
			if v != 0 {
				m.t.Fatalf("new row of key %d holds %v", k, row)
			}
		}
		r := &modelRow{ref: refs[i], pins: 1, value: m.rng.Float32()}
		if marked {
			r.flags = Mark2
		}
		for j := range row {
			row[j] = r.value
		}
		m.rows[k], m.byRef[refs[i]] = r, k
	}
	if added != 0 {
		m.t.Fatalf("%d rows more were reported than added", added)
	}
	if missing > 0 {
		if room := m.c.Stats(); room.Bytes+m.c.slabBytes+segmentBytes <= room.MaxBytes && room.Rows < room.FitRows {
			m.t.Fatalf("%d rows were refused though there is room: %+v", missing, room)
		}
		m.evict(missing)
	}
	m.sets, m.refs = append(m.sets, keys), append(m.refs, refs)
}

func (m *model) release() {
	if len(m.sets) == 0 {
		return
	}
	i := m.rng.IntN(len(m.sets))
	keys, refs := m.sets[i], m.refs[i]
	m.sets[i], m.refs[i] = m.sets[len(m.sets)-1], m.refs[len(m.refs)-1]
	m.sets, m.refs = m.sets[:len(m.sets)-1], m.refs[:len(m.refs)-1]
	dirty := m.rng.IntN(3) > 0
	for j, k := range keys {
		if refs[j] == 0 {
			continue
		}
		r := m.rows[k]
		r.pins--
		if dirty {
			r.change(Dirty, Saved)
			r.value = m.rng.Float32()
			row := m.c.Row(refs[j])
			for w := range row {
				row[w] = r.value
			}
		}
	}
	m.c.Release(refs, dirty)
}

// evict takes victims; settle later decides whether they stay.
func (m *model) evict(n int) {
	old := len(m.taken)
	m.taken = m.c.Victims(n, m.taken)
	if len(m.taken)-old > n {
		m.t.Fatalf("%d victims, asked for %d", len(m.taken)-old, n)
	}
	for _, ref := range m.taken[old:] {
		r := m.rows[m.byRef[ref]]
		if r == nil || r.ref != ref {
			m.t.Fatalf("victim %d is no row", ref)
		}
		if r.pins > 0 {
			m.t.Fatalf("victim %d is pinned by %d passes", ref, r.pins)
		}
		if r.flags&Taken != 0 {
			m.t.Fatalf("victim %d was taken before", ref)
		}
		r.flags |= Taken
	}
	if got := len(m.taken) - old; got < n {
		for _, r := range m.rows {
			if r.pins == 0 && r.flags&Taken == 0 {
				m.t.Fatalf("%d victims, asked for %d, though row %d is idle", got, n, r.ref)
			}
		}
	}
}

func (m *model) settle() {
	if m.rng.IntN(4) > 0 { // write them
		m.c.Change(m.taken, Change{Clear: Dirty})
		for _, ref := range m.taken {
			m.rows[m.byRef[ref]].change(0, Dirty)
		}
	}
	want := 0
	for _, ref := range m.taken {
		k := m.byRef[ref]
		r := m.rows[k]
		r.flags &^= Taken
		if r.pins == 0 && r.flags&Dirty == 0 {
			want++
			delete(m.rows, k)
			delete(m.byRef, ref)
		}
	}
	if m.rng.IntN(10) == 0 && want == 0 {
		m.c.Keep(m.taken)
	} else if got := m.c.Drop(m.taken); got != want {
		m.t.Fatalf("%d rows dropped, want %d", got, want)
	}
	m.taken = m.taken[:0]
}

// slot compares the rows in one slot of the SSD index.
func (m *model) slot() {
	mask := uint64(1)<<m.rng.IntN(14) - 1
	slot := m.rng.Uint64() & mask
	want := 0
	for k := range m.rows {
		if mix(k)&mask == slot {
			want++
		}
	}
	set := []Flags{0, Old, Mark2, Dirty, Saved}[m.rng.IntN(5)]
	unset := []Flags{0, Old, Mark2, Dirty, Saved}[m.rng.IntN(5)] &^ set
	got := 0
	m.c.ForEachOfSlot(slot, mask, func(e Entry) Change {
		if mix(e.Key)&mask != slot {
			m.t.Fatalf("key %d is not in slot %d", e.Key, slot)
		}
		m.same(e)
		r := m.rows[e.Key]
		r.change(set&^Old, unset)
		got++
		return Change{Set: set, Clear: unset}
	})
	if got != want {
		m.t.Fatalf("slot %d of mask %#x has %d rows, want %d", slot, mask, got, want)
	}
}

func (m *model) same(e Entry) {
	r := m.rows[e.Key]
	if r == nil {
		m.t.Fatalf("row of key %d should not be there", e.Key)
	}
	if e.Ref != r.ref || e.Pins != r.pins || e.Flags != r.flags|Live {
		m.t.Fatalf("key %d: %+v, want %+v", e.Key, e, *r)
	}
	if len(e.Row) != m.words || e.Row[0] != r.value || e.Row[m.words-1] != r.value {
		m.t.Fatalf("key %d: row %v, want all %v", e.Key, e.Row, r.value)
	}
}

// check compares everything.
func (m *model) check() {
	n := 0
	m.c.ForEach(func(e Entry) Change { m.same(e); n++; return Change{} })
	if n != len(m.rows) {
		m.t.Fatalf("%d rows, want %d", n, len(m.rows))
	}
	s := m.c.Stats()
	var idle, dirty, taken, unsaved int64
	for _, r := range m.rows {
		if r.pins == 0 && r.flags&Taken == 0 {
			idle++
		}
		if r.flags&Dirty != 0 {
			dirty++
		}
		if r.flags&(Dirty|Old) == Dirty|Old {
			unsaved++
		}
		if r.flags&Taken != 0 {
			taken++
		}
	}
	if s.Rows != int64(n) || s.Idle != idle || s.Dirty != dirty || s.Taken != taken {
		m.t.Fatalf("stats %+v, want %d rows, %d idle, %d dirty, %d taken", s, n, idle, dirty, taken)
	}
	if n := m.c.Unsaved(); n != unsaved {
		m.t.Fatalf("%d unsaved rows, want %d", n, unsaved)
	}
	if err := m.c.Check(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) resize(least, most int64) {
	least += m.c.mu.win.bytes()
	n := least + m.rng.Int64N(most-least+1)
	if err := m.c.SetMaxBytes(n); err != nil {
		m.t.Fatal(err)
	}
	// References of idle rows may change now.
	m.settle()
	kept, err := m.c.Shrink()
	if err != nil {
		m.t.Fatal(err)
	}
	if b := m.c.Bytes(); kept && b > n || !kept && b+m.c.mu.win.waiting <= n {
		m.t.Fatalf("Shrink says %v at %d bytes of %d", kept, b, n)
	}
	clear(m.byRef)
	m.c.ForEach(func(e Entry) Change {
		r := m.rows[e.Key]
		if r == nil || r.pins > 0 && r.ref != e.Ref {
			m.t.Fatalf("Shrink moved %+v, which was %+v", e, r)
		}
		r.ref = e.Ref
		m.byRef[e.Ref] = e.Key
		return Change{}
	})
}

func TestModel(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for _, policy := range Policies() {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				runModel(t, policy, seed)
			}
		})
	}
}

func runModel(t *testing.T, policy string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	o := Options{Words: 1 + rng.IntN(30), MaxBytes: 180<<10 + rng.Int64N(300<<10), Policy: policy, Hash: mix, LookaheadPasses: rng.IntN(80), NoteMissing: rng.IntN(2) == 0}
	c, err := New(o)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	m := &model{t: t, rng: rng, c: c, words: o.Words, rows: map[uint64]*modelRow{}, byRef: map[uint32]uint64{}}
	defer func() {
		if t.Failed() {
			t.Logf("policy %s, seed %d, options %+v", policy, seed, o)
		}
	}()
	least := c.minBytes()
	for step := range 400 {
		switch m.rng.IntN(12) {
		case 0, 1, 2:
			m.pull()
		case 3, 4:
			m.release()
		case 5:
			m.evict(m.rng.IntN(40))
		case 6:
			m.settle()
		case 7, 8:
			m.slot()
		case 9:
			switch {
			case len(m.ahead) < 70 && m.rng.IntN(20) > 0:
				m.announce()
			case m.rng.IntN(4) == 0:
				m.c.Forget()
				m.ahead, m.pass = nil, m.c.Next()
			}
		case 10:
			m.check()
			m.save()
		case 11:
			if m.rng.IntN(4) == 0 {
				m.resize(least, o.MaxBytes)
			}
		}
		if b := c.Bytes(); b > o.MaxBytes {
			t.Fatalf("step %d: %d bytes, budget %d", step, b, o.MaxBytes)
		}
	}
	for len(m.sets) > 0 {
		m.release()
	}
	m.check()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
