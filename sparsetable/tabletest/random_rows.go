package tabletest

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"aibox/sparsetable"
)

// someKeys returns keys in random order, sometimes with duplicates.
func (r *runner) someKeys() []uint64 {
	n := r.rng.IntN(len(r.keys) + 1)
	if r.rng.IntN(2) == 0 {
		n = min(n, 8)
	}
	keys := make([]uint64, n)
	for i, j := range r.rng.Perm(len(r.keys))[:n] {
		keys[i] = r.keys[j]
	}
	if n > 0 && r.rng.IntN(8) == 0 {
		for range 1 + r.rng.IntN(3) {
			keys = slices.Insert(keys, r.rng.IntN(len(keys)+1), keys[r.rng.IntN(len(keys))])
		}
	}
	return keys
}

// want is the row that a pull with PullCreate must return for key.
func (r *runner) want(key uint64) []float32 {
	if row := r.rows[key]; row != nil {
		return row
	}
	row := make([]float32, r.layout.Words())
	initRow(key, row)
	return row
}

func equalRows(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// announce announces passes to the table, some of which will come and some will not. Sometimes it
// gives the table a moment to read ahead.
func (r *runner) announce() {
	for range 1 + r.rng.IntN(4) {
		keys := r.someKeys()
		r.note("announce %d keys", len(keys))
		r.announced = append(r.announced, slices.Clone(keys))
		r.table.Announce(slices.Clone(keys)) // the table may keep the slice
	}
	if r.rng.IntN(2) == 0 {
		time.Sleep(200 * time.Microsecond)
	}
}

// readOnly opens a snapshot for reading only, and announces and looks up rows.
func (r *runner) readOnly() {
	if len(r.saved) == 0 {
		return
	}
	r.close()
	r.reopenFor(r.anyID(), true)
	for range 3 {
		r.announce()
		for _, keys := range r.announced {
			if r.rng.IntN(5) > 0 { // else the announced pass never comes
				r.lookupKeys(keys)
			}
		}
		r.announced = nil
	}
	r.close()
	r.reopen(r.anyID())
}

// forget tells the table that the announced passes will not come.
func (r *runner) forget() {
	r.note("forget the announced passes")
	r.table.ForgetAnnounced()
	r.announced = nil
	if st := r.table.Stats(); st.AnnouncedPasses != 0 {
		r.fatalf("%d passes are still announced, but all were forgotten", st.AnnouncedPasses)
	}
}

// runBackground makes the table do now what it otherwise does in the background.
func (r *runner) runBackground() {
	if r.k.RunBackground == nil {
		return
	}
	what, err := r.k.RunBackground(r.t.Context(), r.table, r.rng)
	r.note("%s", what)
	if err != nil {
		r.fatalf("%s: %v", what, err)
	}
}

func (r *runner) pull() {
	keys := r.someKeys()
	if n := len(r.announced); n > 0 && r.rng.IntN(2) == 0 {
		at := min(n-1, r.rng.IntN(2)) // one of them is given up
		keys, r.announced = r.announced[at], r.announced[at+1:]
	}
	r.note("pull %d keys", len(keys))
	mode := sparsetable.PullCreate
	if r.rng.IntN(2) == 0 {
		mode |= sparsetable.PullAhead
	}
	ws, err := r.table.Pull(r.t.Context(), keys, mode)
	if r.opts.MemoryBytes > 0 && errors.Is(err, sparsetable.ErrBudget) {
		r.note("refused: %v", err)
		r.sum.Refused++
		return
	}
	if err != nil {
		r.fatalf("Pull: %v", err)
	}
	if ws.Len() != len(keys) {
		r.fatalf("%d rows for %d keys", ws.Len(), len(keys))
	}
	p := pinnedSet{slices.Clone(keys), ws}
	clear(keys) // the table must not retain it
	r.pinned = append(r.pinned, p)
	r.checkSet(p)
}

func (r *runner) checkSet(p pinnedSet) {
	for i, key := range p.keys {
		if !p.set.Found(i) {
			r.fatalf("key %d is not found in a pinned set", key)
		}
		if got, want := p.set.Row(i), r.want(key); !equalRows(got, want) {
			r.fatalf("key %d holds %v, want %v", key, got, want)
		}
	}
}

// train updates rows of a random pinned set in place.
func (r *runner) train() {
	if len(r.pinned) == 0 {
		return
	}
	p := r.pinned[r.rng.IntN(len(r.pinned))]
	r.note("train")
	p.set.Begin()
	for i, key := range p.keys {
		if r.rng.IntN(3) == 0 {
			continue
		}
		row := p.set.Row(i)
		for j := range r.layout.ValueDim + r.layout.StateDim {
			row[j] += float32(r.rng.NormFloat64())
		}
		st := r.layout.Stats(row)
		st.Show++
		st.Click += float32(r.rng.IntN(2))
		st.Count++
		st.LastSeen = uint32(r.rng.IntN(10))
		r.layout.SetStats(row, st)
		r.rows[key] = slices.Clone(row)
	}
	r.checkSet(r.pinned[r.rng.IntN(len(r.pinned))]) // sets share rows
}

func (r *runner) release() {
	if len(r.pinned) == 0 {
		return
	}
	i := r.rng.IntN(len(r.pinned))
	r.note("release")
	r.checkSet(r.pinned[i])
	r.pinned[i].set.Release()
	r.pinned = slices.Delete(r.pinned, i, i+1)
}

func (r *runner) lookup() {
	r.lookupKeys(append(r.someKeys(), 12345678901)) // never in the universe
}

func (r *runner) lookupKeys(keys []uint64) {
	r.note("lookup %d keys", len(keys))
	before := r.table.Stats().Rows
	ws, err := r.table.Pull(r.t.Context(), keys, sparsetable.PullLookup)
	if r.opts.MemoryBytes > 0 && errors.Is(err, sparsetable.ErrBudget) {
		return
	}
	if err != nil {
		r.fatalf("lookup: %v", err)
	}
	for i, key := range keys {
		want, found := r.rows[key]
		if !found {
			want = make([]float32, r.layout.Words())
		}
		if ws.Found(i) != found || !equalRows(ws.Row(i), want) {
			r.fatalf("lookup of key %d: found %v, %v; want %v, %v", key, ws.Found(i), ws.Row(i), found, want)
		}
	}
	ws.Release()
	if after := r.table.Stats().Rows; after > before || after < before && !r.k.Evicts {
		r.fatalf("a lookup changed the number of rows from %d to %d", before, after)
	}
}

func (r *runner) expire() {
	rule := sparsetable.ExpiryRule{Today: uint32(r.rng.IntN(12))}
	if r.rng.IntN(2) == 0 {
		rule.UnseenDays = uint32(1 + r.rng.IntN(10))
	}
	if r.rng.IntN(2) == 0 {
		rule.MinShow = float32(r.rng.IntN(4))
		rule.ShowDecay = []float32{0, 0.5, 1}[r.rng.IntN(3)] // powers of 0.5 are exact
	}
	r.note("expire %+v", rule)
	n, err := r.table.Expire(r.t.Context(), rule)
	if len(r.pinned) > 0 {
		if !errors.Is(err, sparsetable.ErrPinned) {
			r.fatalf("Expire with pinned sets: %v", err)
		}
		return
	}
	if err != nil {
		r.fatalf("Expire: %v", err)
	}
	want := int64(0)
	for key, row := range r.rows {
		st := r.layout.Stats(row)
		days := max(0, int(rule.Today)-int(st.LastSeen))
		decay := 1.0
		if rule.ShowDecay == 0.5 {
			decay = math.Pow(0.5, float64(days))
		}
		old := rule.UnseenDays > 0 && days > int(rule.UnseenDays)
		if old || rule.MinShow > 0 && float64(st.Show)*decay < float64(rule.MinShow) {
			delete(r.rows, key)
			want++
		}
	}
	if n != want {
		r.fatalf("Expire dropped %d rows, want %d", n, want)
	}
	// A rule that expires nothing leaves placeholders as well.
	empty := rule.UnseenDays == 0 && rule.MinShow == 0
	if got, want := r.table.Stats().Rows, int64(len(r.rows)); got < want || got > want && !empty {
		r.fatalf("%d rows after Expire, want %d", got, want)
	}
}

func (r *runner) importRows() {
	rows := state{}
	for _, k := range r.someKeys() {
		row := make([]float32, r.layout.Words())
		for i := range r.layout.ValueDim + r.layout.StateDim {
			row[i] = float32(r.rng.NormFloat64())
		}
		r.layout.SetStats(row, sparsetable.RowStats{Show: 2, LastSeen: 3, Count: uint32(r.rng.IntN(3))})
		rows[k] = row
	}
	r.note("import %d rows", len(rows))
	n, err := r.table.Import(r.t.Context(), rows.source())
	if len(r.pinned) > 0 {
		if !errors.Is(err, sparsetable.ErrPinned) {
			r.fatalf("Import with pinned sets: %v", err)
		}
		return
	}
	refused := r.opts.MemoryBytes > 0 && errors.Is(err, sparsetable.ErrBudget)
	if err != nil && !refused {
		r.fatalf("Import: %v", err)
	}
	want := int64(0)
	for _, k := range slices.Backward(slices.Sorted(maps.Keys(rows))) { // as they come from the source
		if refused && want == n {
			break // the rows so far stay
		}
		if r.layout.Stats(rows[k]).Count > 0 {
			r.rows[k] = rows[k]
			want++
		}
	}
	if refused {
		r.note("refused after %d: %v", n, err)
		r.sum.Refused++
	}
	if n != want {
		r.fatalf("Import counts %d rows, want %d", n, want)
	}
}
