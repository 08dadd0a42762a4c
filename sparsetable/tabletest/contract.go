package tabletest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"aibox/sparsetable"
)

func mustOpen(t *testing.T, k Kind, o sparsetable.Options) sparsetable.Table {
	t.Helper()
	tab, err := k.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return tab
}

func mustClose(t *testing.T, tab sparsetable.Table) {
	t.Helper()
	if err := tab.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func mustPull(t *testing.T, tab sparsetable.Table, keys []uint64, mode sparsetable.PullMode) *sparsetable.WorkingSet {
	t.Helper()
	ws, err := tab.Pull(t.Context(), keys, mode)
	if err != nil {
		t.Fatalf("Pull of %d keys: %v", len(keys), err)
	}
	return ws
}

// touch trains a row once: its first value becomes v.
func touch(l sparsetable.Layout, row []float32, v float32) {
	row[0] = v
	st := l.Stats(row)
	st.Count++
	l.SetStats(row, st)
}

// trainKeys trains the rows of keys, whose first values become value(key).
func trainKeys(t *testing.T, tab sparsetable.Table, keys []uint64, value func(uint64) float32) {
	t.Helper()
	ws := mustPull(t, tab, keys, sparsetable.PullCreate)
	for i, k := range keys {
		touch(tab.Layout(), ws.Row(i), value(k))
	}
	ws.Release()
}

func mustSave(t *testing.T, tab sparsetable.Table, record string) sparsetable.SnapshotInfo {
	t.Helper()
	p, err := tab.Snapshot(t.Context(), []byte(record))
	if err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	info, err := p.Wait()
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return info
}

func low(key uint64) float32 { return float32(uint16(key)) }

// sequence returns n keys, starting with first, step apart.
func sequence(first, step uint64, n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = first + uint64(i)*step
	}
	return keys
}

// testManyKeys fills tables with more keys, in several patterns, than fit any small unit
// (segments, slabs, blocks, sorted groups), saves and opens them, and drops a part.
func testManyKeys(t *testing.T, k Kind) {
	const n = 30000
	random := make([]uint64, n)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range random {
		random[i] = rng.Uint64()
	}
	for name, keys := range map[string][]uint64{
		"ascending":  sequence(0, 1, n),
		"high bits":  sequence(0, 1<<48, n),
		"descending": sequence(n, ^uint64(0), n),
		"random":     random,
		"two ends":   append(sequence(0, 1, n/2), sequence(^uint64(0), ^uint64(0), n/2)...),
	} {
		t.Run(name, func(t *testing.T) {
			fs := k.disk()
			tab := mustOpen(t, k, options(fs))
			for from := 0; from < n; from += n / 10 {
				trainKeys(t, tab, keys[from:from+n/10], low)
			}
			mustSave(t, tab, "")
			before, err := sparsetable.Digest(t.Context(), tab)
			if err != nil {
				t.Fatal(err)
			}
			mustClose(t, tab)
			tab = mustOpen(t, k, options(fs))
			if after, err := sparsetable.Digest(t.Context(), tab); err != nil || after != before {
				t.Fatalf("digest %x after opening again, was %x, %v", after, before, err)
			}
			// Rows with an even first value were last seen long ago.
			ws := mustPull(t, tab, keys, sparsetable.PullCreate)
			for i := range keys {
				row := ws.Row(i)
				st := layout.Stats(row)
				st.LastSeen = 100
				if int(row[0])%2 == 0 {
					st.LastSeen = 1
				}
				layout.SetStats(row, st)
			}
			ws.Release()
			if _, err := tab.Expire(t.Context(), sparsetable.ExpiryRule{Today: 100, UnseenDays: 50}); err != nil {
				t.Fatal(err)
			}
			ws = mustPull(t, tab, keys, sparsetable.PullLookup)
			for i, k := range keys {
				if want := int(low(k))%2 == 1; ws.Found(i) != want || want && ws.Row(i)[0] != low(k) {
					t.Fatalf("key %d: found %v, row %v", k, ws.Found(i), ws.Row(i))
				}
			}
			ws.Release()
			// New rows use the freed memory, and must not show what it held.
			fresh := sequence(1<<40+7, 3, n/2)
			ws = mustPull(t, tab, fresh, sparsetable.PullCreate)
			want := make([]float32, layout.Words())
			for i, k := range fresh {
				clear(want)
				initRow(k, want)
				if !equalRows(ws.Row(i), want) {
					t.Fatalf("new key %d holds %v, want %v", k, ws.Row(i), want)
				}
			}
			ws.Release()
			mustClose(t, tab)
		})
	}
}

func testOpenErrors(t *testing.T, k Kind) {
	fs := k.disk()
	o := options(fs)
	o.MustExist = true
	if _, err := k.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrNoSnapshot) {
		t.Errorf("MustExist without a snapshot: %v", err)
	}
	tab := mustOpen(t, k, options(fs))
	trainKeys(t, tab, []uint64{1, 2}, low)
	mustSave(t, tab, "x")
	mustClose(t, tab)
	o = options(fs)
	o.SnapshotID = 77
	if _, err := k.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrNoSnapshot) {
		t.Errorf("opening snapshot 77: %v", err)
	}
	o = options(fs)
	o.Layout.StateDim++
	if _, err := k.Open(t.Context(), o); err == nil {
		t.Error("another layout was accepted")
	}
	o = options(k.disk())
	o.Layout = sparsetable.Layout{}
	if _, err := k.Open(t.Context(), o); err == nil {
		t.Error("a new table without a layout was accepted")
	}
	o = options(fs)
	o.MemoryBytes = 1
	if _, err := k.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrBudget) {
		t.Errorf("budget of one byte: %v", err)
	}
	if !k.OwnFiles {
		o = options(fs)
		o.Dir = ""
		tab = mustOpen(t, k, o)
		if _, err := tab.Snapshot(t.Context(), nil); !errors.Is(err, sparsetable.ErrNoDirectory) {
			t.Errorf("Snapshot without a directory: %v", err)
		}
		mustClose(t, tab)
	}
	if n := fs.OpenFiles(); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}

func testReadOnly(t *testing.T, k Kind) {
	fs := k.disk()
	o := options(fs)
	o.ReadOnly = true
	if _, err := k.Open(t.Context(), o); !errors.Is(err, sparsetable.ErrNoSnapshot) {
		t.Errorf("nothing to read: %v", err)
	}
	tab := mustOpen(t, k, options(fs))
	trainKeys(t, tab, []uint64{1, 2}, low)
	info := mustSave(t, tab, "x")
	mustClose(t, tab)
	before := fs.Files()
	tab = mustOpen(t, k, o)
	_, pullErr := tab.Pull(t.Context(), []uint64{1}, sparsetable.PullCreate)
	_, snapErr := tab.Snapshot(t.Context(), nil)
	_, importErr := tab.Import(t.Context(), state{}.source())
	_, expireErr := tab.Expire(t.Context(), sparsetable.ExpiryRule{})
	for what, err := range map[string]error{
		"Pull": pullErr, "Snapshot": snapErr, "Import": importErr, "Expire": expireErr, "DropSnapshot": tab.DropSnapshot(info.ID),
	} {
		if !errors.Is(err, sparsetable.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ws := mustPull(t, tab, []uint64{2, 3}, sparsetable.PullLookup)
	if !ws.Found(0) || ws.Found(1) || ws.Row(0)[0] != 2 {
		t.Errorf("found %v and %v", ws.Found(0), ws.Found(1))
	}
	ws.Release()
	mustClose(t, tab)
	if after := fs.Files(); !slices.Equal(before, after) {
		t.Errorf("files were %v, are %v", before, after)
	}
}

// testBudget: the budget that an error names is the smallest that works.
func testBudget(t *testing.T, k Kind) {
	named := func(err error) int64 {
		t.Helper()
		m := regexp.MustCompile(`budget of (\d+) bytes`).FindStringSubmatch(err.Error())
		if m == nil {
			t.Fatalf("the error names no budget: %v", err)
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	o := options(k.disk())
	o.MemoryBytes = 1
	_, err := k.Open(t.Context(), o)
	if !errors.Is(err, sparsetable.ErrBudget) {
		t.Fatalf("budget of one byte: %v", err)
	}
	smallest := named(err)
	try := func(budget int64) error {
		t.Helper()
		o.FS, o.MemoryBytes = k.disk(), budget
		tab, err := k.Open(t.Context(), o)
		if err != nil {
			return err
		}
		defer mustClose(t, tab)
		var held []*sparsetable.WorkingSet
		defer func() {
			for _, ws := range held {
				ws.Release()
			}
		}()
		for i := range uint64(3) {
			ws, err := tab.Pull(t.Context(), sequence(i*15000, 1, 20000), sparsetable.PullCreate)
			if err != nil {
				return fmt.Errorf("pull %d: %w", i, err)
			}
			held = append(held, ws)
			if st := tab.Stats(); st.MemoryBytes > budget {
				t.Errorf("%d bytes with a budget of %d", st.MemoryBytes, budget)
			}
			for j := range ws.Len() {
				touch(layout, ws.Row(j), 1)
			}
		}
		mustSave(t, tab, "") // all rows that fit can be saved
		return nil
	}
	if err := try(smallest - 1); !errors.Is(err, sparsetable.ErrBudget) {
		t.Errorf("an empty table with a byte less than %d: %v", smallest, err)
	}
	budget := smallest
	for range 10 { // each failing pull names what it needs
		err := try(budget)
		if err == nil {
			break
		}
		if !errors.Is(err, sparsetable.ErrBudget) {
			t.Fatal(err)
		}
		next := named(err)
		if next <= budget {
			t.Fatalf("with %d bytes: %v", budget, err)
		}
		budget = next
	}
	if err := try(budget); err != nil {
		t.Errorf("with the budget named: %v", err)
	}
	less := budget - 1
	if k.Evicts {
		less = budget - budget/8
	}
	if err := try(less); !errors.Is(err, sparsetable.ErrBudget) {
		t.Errorf("with %d bytes instead of %d: %v", less, budget, err)
	}
}

func testMisuse(t *testing.T, k Kind) {
	tab := mustOpen(t, k, options(k.disk()))
	ws := mustPull(t, tab, []uint64{1}, sparsetable.PullCreate)
	if err := tab.Close(); !errors.Is(err, sparsetable.ErrPinned) {
		t.Errorf("Close with a pinned set: %v", err)
	}
	ws.Row(0)[0] = 5 // still there
	ws.Release()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("releasing twice does not panic")
			}
		}()
		ws.Release()
	}()
	if _, err := tab.Import(t.Context(), &stateSource{keys: []uint64{1}, rows: state{1: make([]float32, 2)}}); err == nil {
		t.Error("a row of another length was imported")
	}
	boom := errors.New("boom")
	if _, err := tab.Import(t.Context(), &stateSource{err: boom}); !errors.Is(err, boom) {
		t.Errorf("Import from a failing source: %v", err)
	}
	trainKeys(t, tab, []uint64{1}, low)
	if err := tab.Scan(t.Context(), func(uint64, []float32) error { return boom }); err != boom {
		t.Errorf("Scan with a failing function: %v", err)
	}
	tab.Announce([]uint64{1, 2})
	tab.ForgetAnnounced()
	mustClose(t, tab)
	mustClose(t, tab)
	_, pullErr := tab.Pull(t.Context(), nil, sparsetable.PullCreate)
	_, snapErr := tab.Snapshot(t.Context(), nil)
	_, importErr := tab.Import(t.Context(), state{}.source())
	_, expireErr := tab.Expire(t.Context(), sparsetable.ExpiryRule{})
	_, listErr := tab.Snapshots()
	for what, err := range map[string]error{
		"Pull": pullErr, "Snapshot": snapErr, "Import": importErr, "Expire": expireErr, "Snapshots": listErr,
		"DropSnapshot": tab.DropSnapshot(1), "Scan": tab.Scan(t.Context(), func(uint64, []float32) error { return nil }),
	} {
		if !errors.Is(err, sparsetable.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

func testCancel(t *testing.T, k Kind) {
	tab := mustOpen(t, k, options(k.disk()))
	trainKeys(t, tab, sequence(0, 1, 100), low)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, pullErr := tab.Pull(ctx, []uint64{1}, sparsetable.PullCreate)
	_, snapErr := tab.Snapshot(ctx, nil)
	_, importErr := tab.Import(ctx, state{}.source())
	_, expireErr := tab.Expire(ctx, sparsetable.ExpiryRule{})
	for what, err := range map[string]error{
		"Pull": pullErr, "Snapshot": snapErr, "Import": importErr, "Expire": expireErr,
		"Scan": tab.Scan(ctx, func(uint64, []float32) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if st := tab.Stats(); st.PinnedSets != 0 {
		t.Errorf("%d sets stay pinned", st.PinnedSets)
	}
	mustSave(t, tab, "") // the table can still be used
	mustClose(t, tab)
}

// testTrainWhileSaving trains on one goroutine and pulls on another while
// snapshots are written, and checks each snapshot: every row must have the value of
// exactly the step at which the snapshot was taken. Under the race detector it also shows
// that the table reads no row that is being written.
func testTrainWhileSaving(t *testing.T, k Kind) {
	const keys, steps, batch = 3000, 120, 200
	fs := k.disk()
	tab := mustOpen(t, k, options(fs))
	type pass struct {
		keys []uint64
		ws   *sparsetable.WorkingSet
	}
	passes := make(chan pass, 2)
	var pullErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(passes)
		rng := rand.New(rand.NewPCG(5, 5))
		for range steps {
			ks := make([]uint64, batch)
			for i, k := range rng.Perm(keys)[:batch] {
				ks[i] = uint64(k) * 0x9e3779b97f4a7c15
			}
			ws, err := tab.Pull(t.Context(), ks, sparsetable.PullCreate)
			if err != nil {
				pullErr = err
				return
			}
			passes <- pass{ks, ws}
		}
	})
	values := map[uint64]float32{} // the model: key to first value
	saved := map[uint64]map[uint64]float32{}
	var pending *sparsetable.PendingSnapshot
	var expect map[uint64]float32
	collect := func() {
		if pending == nil {
			return
		}
		info, err := pending.Wait()
		if err != nil {
			t.Fatal(err)
		}
		saved[info.ID] = expect
		pending = nil
	}
	step := 0
	for p := range passes {
		step++
		for i, k := range p.keys {
			touch(layout, p.ws.Row(i), float32(step))
			values[k] = float32(step)
		}
		if step%5 == 0 { // with sets pinned by both goroutines
			collect()
			expect = make(map[uint64]float32, len(values))
			maps.Copy(expect, values)
			var err error
			if pending, err = tab.Snapshot(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		p.ws.Release()
	}
	wg.Wait()
	if pullErr != nil {
		t.Fatal(pullErr)
	}
	collect()
	mustClose(t, tab)
	for id, want := range saved {
		o := options(fs)
		o.SnapshotID = id
		tab := mustOpen(t, k, o)
		rows := 0
		err := tab.Scan(t.Context(), func(key uint64, row []float32) error {
			rows++
			if row[0] != want[key] {
				return fmt.Errorf("snapshot %d: key %d holds step %v, want %v", id, key, row[0], want[key])
			}
			return nil
		})
		if err != nil || rows != len(want) {
			t.Errorf("snapshot %d: %d rows, want %d, %v", id, rows, len(want), err)
		}
		mustClose(t, tab)
	}
}
