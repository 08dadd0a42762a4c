package ssd_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/ssd"
)

// A faultScript is what a table does while its disk fails. It continues after failures, as long as
// there is a table.
type faultScript struct {
	name   string
	layout sparsetable.Layout
	// keys are those of the table, batch those of a pass, resident those that the
	// cache holds, or a few more.
	keys, batch int
	resident    int64
	do          func(f *faulty)
	bulkRows    int64 // imports of more rows go by way of spools
	// skewed keys are in the same partition of a spool. The table is one of an older
	// version, because the hash of a new one is not known before it is made.
	skewed bool
	// runs is how many operations are made to fail, unless all are; 0: all are.
	runs int
}

var faultScripts = []faultScript{
	{name: "all", layout: faultyLayout, keys: 200, batch: 30, resident: 80, do: (*faulty).runAll, bulkRows: 40},
	{name: "training", layout: faultyLayout, keys: 3000, batch: 350, resident: 600, do: (*faulty).training, runs: 10},
	// The cache of wide rows leaves memory for carried buckets.
	{name: "wide rows", layout: sparsetable.Layout{ValueDim: 1000}, keys: 1000, batch: 60, resident: 560, do: (*faulty).training, runs: 4},
	{name: "import", layout: faultyLayout, keys: 1400, batch: 100, resident: 1000, do: (*faulty).largeImport, bulkRows: 40, skewed: true, runs: 8},
}

func (s faultScript) run(f *faulty) {
	var err error
	if f.table, err = f.open(f.opts); !f.note(err) {
		s.do(f)
	}
}

// training makes rows leave the cache, splits slots, empties files, and takes and drops snapshots.
func (f *faulty) training() {
	for round := range 3 {
		for range 6 {
			f.train()
		}
		f.note(ssd.EvictRows(f.table, 300))
		f.emptyAFile()
		f.snapshot(fmt.Sprint("round ", round))
	}
}

// runAll does everything that a table can do, each thing a few times, in so few operations that every
// one of them can be made to fail.
func (f *faulty) runAll() {
	shape := func(rows int) {
		ssd.SetShape(f.table, rows, 2*rows, 8*rows, 0)
		f.note(ssd.Reshape(f.t.Context(), f.table))
	}
	for range 4 {
		f.train()
	}
	shape(2) // splits
	f.snapshot("first")
	f.train()
	f.note(ssd.EvictRows(f.table, 100))
	f.emptyAFile()
	f.lookup(f.someKeys(f.script.batch))
	f.note(f.table.(sparsetable.Flusher).Flush(f.t.Context()))
	f.importRows(10) // by way of the cache
	f.train()
	f.expire(3)
	shape(12) // merges
	f.snapshot("second")
	f.train()
	f.snapshot("third") // and drops the first
	f.note(f.equal(f.table, f.rowStates))
	f.opts.MemoryBytes += 512 << 10 // for a spool
	if !f.reopen() {
		return
	}
	f.importRows(60)
	f.lookup(f.someKeys(f.script.batch))
	f.train()
	_, err := sparsetable.Compact(f.t.Context(), f.table, 0.1, nil)
	f.note(err)
	f.snapshot("fourth")
}

// largeImport imports more rows into a partition than memory can hold, so that the partition is
// spooled again. It then imports into existing buckets, which are read ahead.
func (f *faulty) largeImport() {
	f.train()
	f.snapshot("before")
	f.importRows(1200)
	f.train()
	f.importRows(1000)
	f.train()
	f.snapshot("after")
}

// someKeys returns n keys of the table.
func (f *faulty) someKeys(n int) []uint64 {
	keys := make([]uint64, 0, n)
	for _, i := range f.rng.Perm(len(f.keys))[:n] {
		keys = append(keys, f.keys[i])
	}
	return keys
}

// dayOf returns the day on which a key is seen.
func dayOf(key uint64) uint32 { return uint32(key >> 40 % 8) }

// train pulls and updates the rows of some keys.
func (f *faulty) train() {
	if p := f.pull(); p != nil {
		f.update(p)
	}
}

// pulled is a working set of keys.
type pulled struct {
	*sparsetable.WorkingSet
	keys []uint64
}

// pull pulls the keys of a pass. It returns nil if that failed.
func (f *faulty) pull() *pulled {
	const ahead = 3 // passes are announced before the one before them is pulled
	for len(f.ahead) <= ahead {
		keys := f.someKeys(f.script.batch)
		f.table.Announce(keys)
		f.ahead = append(f.ahead, keys)
	}
	keys := f.ahead[0]
	f.ahead = f.ahead[1:]
	ws, err := f.table.Pull(f.t.Context(), keys, sparsetable.PullCreate)
	if f.note(err) {
		return nil
	}
	for i, k := range keys {
		if value := ws.Row(i)[0]; !f.may(k, value) && !(value == 0 && f.may(k, absent)) {
			f.t.Fatalf("key %x holds %v, want %v or %v; %v", k, value, f.rows[k], f.maybe[k], f.errs)
		}
	}
	return &pulled{ws, keys}
}

// update updates pulled rows and releases them.
func (f *faulty) update(p *pulled) {
	for i, k := range p.keys {
		row := p.Row(i)
		row[0] = float32(1 + f.rng.IntN(1<<20))
		f.set(k, row[0])
		f.opts.Layout.SetStats(row, sparsetable.RowStats{Count: 1, LastSeen: dayOf(k)})
	}
	p.Release()
}

// lookup looks up the rows of keys that have one.
func (f *faulty) lookup(keys []uint64) {
	ws, err := f.table.Pull(f.t.Context(), keys, sparsetable.PullLookup)
	if f.note(err) {
		return
	}
	defer ws.Release()
	for i, k := range keys {
		value := float32(absent)
		if ws.Found(i) {
			value = ws.Row(i)[0]
		}
		if !f.may(k, value) {
			f.t.Fatalf("lookup of key %x: %v, want %v or %v; %v", k, value, f.rows[k], f.maybe[k], f.errs)
		}
	}
}

func (f *faulty) emptyAFile() {
	_, err := ssd.EmptyAFile(f.t.Context(), f.table, f.rng)
	f.note(err)
}

func (f *faulty) snapshot(record string) {
	f.saved = append(f.saved, savedRows{record: record, rowStates: f.clone()})
	pinned := f.pull()
	p, err := f.table.Snapshot(f.t.Context(), []byte(record))
	if pinned != nil {
		f.update(pinned) // it has the rows as they were
	}
	f.train() // meanwhile
	if f.note(err) {
		return
	}
	info, err := p.Wait()
	if f.note(err) {
		return
	}
	last := len(f.saved) - 1
	f.saved[last].id = info.ID
	if f.saved[0].id != 0 {
		f.note(f.table.DropSnapshot(f.saved[0].id))
	}
	f.saved = f.saved[last:]
}

// rowList is a source of rows.
type rowList struct {
	keys   []uint64
	layout sparsetable.Layout
	row    []float32
	next   int
}

func (l *rowList) Next() (uint64, []float32, error) {
	if l.next == len(l.keys) {
		return 0, nil, io.EOF
	}
	key := l.keys[l.next]
	l.next++
	l.layout.SetStats(l.row, sparsetable.RowStats{Count: 1, LastSeen: dayOf(key)})
	return key, l.row, nil
}

// importRows imports n rows.
func (f *faulty) importRows(n int) {
	src := &rowList{keys: f.someKeys(n), layout: f.opts.Layout, row: make([]float32, f.opts.Layout.Words())}
	src.row[0] = float32(1 + f.rng.IntN(1<<20))
	rows, err := f.table.Import(f.t.Context(), src)
	if !f.note(err) && rows != int64(n) {
		f.t.Fatalf("Import of %d rows counts %d", n, rows)
	}
	for _, k := range src.keys {
		if err == nil {
			f.set(k, src.row[0])
		} else {
			f.orSet(k, src.row[0])
		}
	}
}

// expire drops the rows that were seen on the first days.
func (f *faulty) expire(days uint32) {
	dropped, err := f.table.Expire(f.t.Context(), sparsetable.ExpiryRule{Today: 10, UnseenDays: 10 - days})
	f.note(err)
	least, most := int64(0), int64(0)
	for _, k := range f.keys {
		_, sure := f.rows[k]
		if dayOf(k) >= days || !sure && f.maybe[k] == nil {
			continue
		}
		most++
		if !f.may(k, absent) {
			least++
		}
		if err == nil {
			f.set(k, absent)
		} else {
			f.orSet(k, absent)
		}
	}
	if dropped > most || err == nil && dropped < least {
		f.t.Fatalf("Expire counts %d rows, want %d to %d: %v", dropped, least, most, err)
	}
}

// reopen closes the table and opens it again, unless only another process could do that.
func (f *faulty) reopen() bool {
	tab := f.table
	f.table = nil
	if f.note(tab.Close()) || slices.ContainsFunc(f.errs, ssd.CatalogFailed) {
		return false
	}
	tab, err := f.open(f.opts)
	if f.note(err) {
		return false
	}
	ssd.WaitRestored(tab)
	return !f.note(f.adopt(tab))
}

// continueOnWorkingDisk continues with a table on a disk that works again. Errors of the background
// writer may still be returned a few times.
func (f *faulty) continueOnWorkingDisk() error {
	deadline := time.Now().Add(2 * time.Minute)
	for try := 0; try < 100 || time.Now().Before(deadline); try++ {
		f.errs = nil
		f.train()
		f.snapshot(fmt.Sprint("working disk ", try))
		if len(f.errs) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return errors.Join(append(slices.Clone(f.errs), f.equal(f.table, f.rowStates))...)
}
