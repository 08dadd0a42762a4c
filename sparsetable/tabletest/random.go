package tabletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"aibox/sparsetable"
)

// testRandom runs random sequences of operations against a model.
func testRandom(t *testing.T, k Kind) {
	seeds, steps := uint64(100), 150
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := newRunner(t, k, seed)
		for range steps {
			r.step()
		}
		r.settle()
		if err := r.table.Close(); err != nil {
			r.fatalf("Close: %v", err)
		}
		if n := r.fs.OpenFiles(); n != 0 {
			r.fatalf("%d files are still open", n)
		}
	}
}

// state is a table as a Go map: trained rows only.
type state map[uint64][]float32

func (s state) clone() state {
	c := make(state, len(s))
	for k, row := range s {
		c[k] = slices.Clone(row)
	}
	return c
}

type savedState struct {
	rows   state
	record []byte
}

type pinnedSet struct {
	keys []uint64
	set  *sparsetable.WorkingSet
}

// runner drives a table and its model.
type runner struct {
	t     *testing.T
	k     Kind
	seed  uint64
	rng   *rand.Rand
	log   []string
	fs    Disk
	table sparsetable.Table
	opts  sparsetable.Options
	keys  []uint64 // the universe

	rows    state
	pinned  []pinnedSet
	saved   map[uint64]savedState // by snapshot id
	pending *sparsetable.PendingSnapshot
	next    savedState // what pending will save
}

func newRunner(t *testing.T, k Kind, seed uint64) *runner {
	r := &runner{t: t, k: k, seed: seed, rng: rand.New(rand.NewPCG(seed, 2)), fs: k.disk(), rows: state{}, saved: map[uint64]savedState{}}
	r.keys = []uint64{0, 1, math.MaxUint64, 1 << 63}
	for len(r.keys) < 4+k.MoreKeys+r.rng.IntN(300) {
		k := r.rng.Uint64()
		if r.rng.IntN(2) == 0 {
			k &= 0x3ff // clustered keys
		}
		if !slices.Contains(r.keys, k) {
			r.keys = append(r.keys, k)
		}
	}
	r.opts = options(r.fs)
	if seed%3 == 0 {
		r.opts.MemoryBytes = tightBudget(t, k)
	}
	r.reopen(0)
	return r
}

// tightBudget leaves room for some pinned sets in a small table, and none for
// copies of rows.
func tightBudget(t *testing.T, k Kind) int64 {
	if k.Tight != nil {
		return k.Tight(options(k.disk()))
	}
	tab, err := k.Open(t.Context(), options(k.disk()))
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close() //nolint:errcheck // an empty table
	return tab.Stats().MemoryBytes + 4096
}

func (r *runner) fatalf(format string, args ...any) {
	r.t.Helper()
	for _, l := range r.log[max(0, len(r.log)-30):] {
		r.t.Log(l)
	}
	r.t.Fatalf("seed %d: %s", r.seed, fmt.Sprintf(format, args...))
}

func (r *runner) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *runner) step() {
	switch n := r.rng.IntN(100); {
	case n < 25:
		r.pull()
	case n < 60:
		r.train()
	case n < 75:
		r.release()
	case n < 80:
		r.lookup()
	case n < 84:
		r.check()
	case n < 87:
		r.expire()
	case n < 89:
		r.importRows()
	case n < 94:
		r.snapshot()
	case n < 95:
		r.drop()
	case n < 97:
		r.settle()
		if err := r.table.Close(); err != nil {
			r.fatalf("Close: %v", err)
		}
		r.reopen(r.anyID())
	case n < 98:
		r.crash()
	default:
		r.wait()
	}
	st := r.table.Stats()
	if st.BudgetBytes != r.opts.MemoryBytes && r.opts.MemoryBytes > 0 || st.BudgetBytes > 0 && st.MemoryBytes > st.BudgetBytes {
		r.fatalf("%d bytes of memory, budget %d", st.MemoryBytes, st.BudgetBytes)
	}
	if st.PinnedSets != int64(len(r.pinned)) {
		r.fatalf("%d pinned sets, want %d", st.PinnedSets, len(r.pinned))
	}
}

// someKeys returns distinct keys in random order.
func (r *runner) someKeys() []uint64 {
	n := r.rng.IntN(len(r.keys) + 1)
	if r.rng.IntN(2) == 0 {
		n = min(n, 8)
	}
	keys := make([]uint64, n)
	for i, j := range r.rng.Perm(len(r.keys))[:n] {
		keys[i] = r.keys[j]
	}
	return keys
}

// want is the row that key must show when it was pulled with creation.
func (r *runner) want(key uint64) []float32 {
	if row := r.rows[key]; row != nil {
		return row
	}
	row := make([]float32, layout.Words())
	initRow(key, row)
	return row
}

func equalRows(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func (r *runner) pull() {
	keys := r.someKeys()
	r.note("pull %d keys", len(keys))
	ws, err := r.table.Pull(r.t.Context(), keys, sparsetable.PullCreate)
	if r.opts.MemoryBytes > 0 && errors.Is(err, sparsetable.ErrBudget) {
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
	r.t.Helper()
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
	for i, key := range p.keys {
		if r.rng.IntN(3) == 0 {
			continue
		}
		row := p.set.Row(i)
		for j := range layout.ValueDim + layout.StateDim {
			row[j] += float32(r.rng.NormFloat64())
		}
		st := layout.Stats(row)
		st.Show++
		st.Click += float32(r.rng.IntN(2))
		st.Count++
		st.LastSeen = uint32(r.rng.IntN(10))
		layout.SetStats(row, st)
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
	keys := r.someKeys()
	keys = append(keys, 12345678901) // never in the universe
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
			want = make([]float32, layout.Words())
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

// check compares the whole table.
func (r *runner) check() {
	r.t.Helper()
	r.note("check")
	seen := state{}
	err := r.table.Scan(r.t.Context(), func(key uint64, row []float32) error {
		if seen[key] != nil {
			r.fatalf("Scan shows key %d twice", key)
		}
		seen[key] = slices.Clone(row)
		return nil
	})
	if err != nil {
		r.fatalf("Scan: %v", err)
	}
	r.compare("Scan", seen, r.rows)
	got, err := sparsetable.Digest(r.t.Context(), r.table)
	if err != nil {
		r.fatalf("Digest: %v", err)
	}
	if want := digestOf(r.t, r.rows); got != want {
		r.fatalf("digest %x, want %x", got, want)
	}
}

func (r *runner) compare(what string, got, want state) {
	r.t.Helper()
	for key, row := range want {
		if !equalRows(got[key], row) {
			r.fatalf("%s: key %d holds %v, want %v", what, key, got[key], row)
		}
	}
	if len(got) != len(want) {
		r.fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
}

// digestOf is the digest of a fresh table of rows.
func digestOf(t *testing.T, rows state) [32]byte {
	t.Helper()
	tab, err := sparsetable.Open(t.Context(), sparsetable.Options{Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close() //nolint:errcheck // nothing of it is kept
	if _, err := tab.Import(t.Context(), rows.source()); err != nil {
		t.Fatal(err)
	}
	d, err := sparsetable.Digest(t.Context(), tab)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// source yields the rows of s in descending order of the keys, unlike any
// table's own order.
func (s state) source() sparsetable.RowSource {
	src := &stateSource{rows: s}
	for k := range s {
		src.keys = append(src.keys, k)
	}
	slices.Sort(src.keys)
	return src
}

type stateSource struct {
	keys []uint64
	rows state
	err  error // at the end, instead of io.EOF
}

func (s *stateSource) Next() (uint64, []float32, error) {
	n := len(s.keys) - 1
	if n < 0 {
		if s.err != nil {
			return 0, nil, s.err
		}
		return 0, nil, io.EOF
	}
	k := s.keys[n]
	s.keys = s.keys[:n]
	return k, s.rows[k], nil
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
		st := layout.Stats(row)
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
	if got := r.table.Stats().Rows; got != int64(len(r.rows)) {
		r.fatalf("%d rows after Expire, want %d", got, len(r.rows))
	}
}

func (r *runner) importRows() {
	rows := state{}
	for _, k := range r.someKeys() {
		row := make([]float32, layout.Words())
		for i := range layout.ValueDim + layout.StateDim {
			row[i] = float32(r.rng.NormFloat64())
		}
		layout.SetStats(row, sparsetable.RowStats{Show: 2, LastSeen: 3, Count: uint32(r.rng.IntN(3))})
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
	if err != nil {
		r.fatalf("Import: %v", err)
	}
	want := int64(0)
	for k, row := range rows {
		if layout.Stats(row).Count > 0 {
			r.rows[k] = row
			want++
		}
	}
	if n != want {
		r.fatalf("Import counts %d rows, want %d", n, want)
	}
}

func (r *runner) snapshot() {
	r.wait()
	record := make([]byte, r.rng.IntN(100))
	for i := range record {
		record[i] = byte(r.rng.Uint32())
	}
	r.note("snapshot of %d rows", len(r.rows))
	r.next = savedState{r.rows.clone(), slices.Clone(record)}
	p, err := r.table.Snapshot(r.t.Context(), record)
	if err != nil {
		r.fatalf("Snapshot: %v", err)
	}
	clear(record) // the table must not retain it
	r.pending = p
}

// wait ends the pending snapshot.
func (r *runner) wait() {
	if r.pending == nil {
		return
	}
	info, err := r.pending.Wait()
	r.note("waited for snapshot %d", info.ID)
	if err != nil {
		r.fatalf("Wait: %v", err)
	}
	if r.saved[info.ID].rows != nil {
		r.fatalf("snapshot id %d given twice", info.ID)
	}
	if info.Rows != int64(len(r.next.rows)) || info.Layout != layout || !bytes.Equal(info.Record, r.next.record) {
		r.fatalf("snapshot %+v of %d rows", info, len(r.next.rows))
	}
	r.saved[info.ID] = r.next
	r.pending = nil
	r.checkList()
}

// checkList compares the list of snapshots.
func (r *runner) checkList() {
	r.t.Helper()
	infos, err := r.table.Snapshots()
	if err != nil {
		r.fatalf("Snapshots: %v", err)
	}
	prev := uint64(0)
	for _, info := range infos {
		want, ok := r.saved[info.ID]
		if !ok || info.ID <= prev || info.Rows != int64(len(want.rows)) || !bytes.Equal(info.Record, want.record) {
			r.fatalf("listed snapshot %+v after %d", info, prev)
		}
		prev = info.ID
	}
	if len(infos) != len(r.saved) {
		r.fatalf("%d snapshots listed, want %d", len(infos), len(r.saved))
	}
}

// anyID is the id of a snapshot, or 0 for the newest.
func (r *runner) anyID() uint64 {
	ids := []uint64{0, 0}
	for id := range r.saved {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids[r.rng.IntN(len(ids))]
}

func (r *runner) drop() {
	r.wait()
	id := r.anyID()
	r.note("drop %d", id)
	err := r.table.DropSnapshot(id)
	if id == 0 {
		if !errors.Is(err, sparsetable.ErrNoSnapshot) {
			r.fatalf("dropping snapshot 0: %v", err)
		}
		return
	}
	if err != nil {
		r.fatalf("DropSnapshot: %v", err)
	}
	delete(r.saved, id)
	r.checkList()
}

// settle releases and waits for everything.
func (r *runner) settle() {
	r.wait()
	for len(r.pinned) > 0 {
		r.release()
	}
	r.check()
}

// reopen opens snapshot id, 0 for the newest, and compares it.
func (r *runner) reopen(id uint64) {
	r.note("open %d", id)
	o := r.opts
	o.SnapshotID = id
	if len(r.saved) > 0 && r.rng.IntN(2) == 0 {
		o.Layout = sparsetable.Layout{} // taken from the snapshot
	}
	tab, err := r.k.Open(r.t.Context(), o)
	if err != nil {
		r.fatalf("Open: %v", err)
	}
	if tab.Layout() != layout {
		r.fatalf("layout %+v", tab.Layout())
	}
	r.table = tab
	if id == 0 {
		for have := range r.saved {
			id = max(id, have)
		}
	}
	r.rows = r.saved[id].rows.clone()
	r.check()
	r.checkList()
}

// crash goes on with what a crash at this moment leaves on disk.
func (r *runner) crash() {
	after := r.fs.Crash(r.rng)
	r.note("crash; a snapshot is pending: %v", r.pending != nil)
	next, pending := r.next, r.pending != nil
	before := make(map[uint64]savedState)
	for id, s := range r.saved {
		before[id] = s
	}
	r.settle() // the old table dies elsewhere
	if err := r.table.Close(); err != nil {
		r.fatalf("Close: %v", err)
	}
	r.saved = before
	r.fs = after
	r.opts.FS = after
	if pending {
		// The snapshot that was being written is there, whole, or is not.
		id, err := newestID(r.t.Context(), r.k, r.opts)
		if err != nil {
			r.fatalf("after the crash: %v", err)
		}
		if _, old := r.saved[id]; id != 0 && !old {
			r.saved[id] = next
		}
	}
	r.reopen(r.anyID())
	for _, f := range after.Files() {
		if len(f) > 4 && f[len(f)-4:] == ".tmp" {
			r.fatalf("%s was left behind", f)
		}
	}
}

// newestID is the id of the newest snapshot, 0 if there is none.
func newestID(ctx context.Context, k Kind, o sparsetable.Options) (uint64, error) {
	tab, err := k.Open(ctx, o)
	if err != nil {
		return 0, err
	}
	infos, err := tab.Snapshots()
	if err = errors.Join(err, tab.Close()); err != nil || len(infos) == 0 {
		return 0, err
	}
	return infos[len(infos)-1].ID, nil
}
