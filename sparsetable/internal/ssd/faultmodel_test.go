package ssd_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/tabletest"
)

var faultyLayout = sparsetable.Layout{ValueDim: 60, StateDim: 2}

// faulty is a table on a disk that can fail, together with the rows that it may have.
type faulty struct {
	t      *testing.T
	script faultScript
	disk   *ssdDisk
	opts   sparsetable.Options
	table  sparsetable.Table // nil: it is not open
	rng    *rand.Rand
	keys   []uint64
	ahead  [][]uint64 // keys of the passes that are announced

	rowStates
	saved []savedRows // from the last that is known to be committed on
	errs  []error

	mu     sync.Mutex
	decide func(op faultyOp) blocktest.Fault
	ops    int // that could have failed
}

// rowStates has the first words of a table's rows. An operation that failed half-way may have left
// a key with one of several values.
type rowStates struct {
	rows  map[uint64]float32
	maybe map[uint64][]float32 // instead; absent: no row
}

// absent stands for a key without a row. Training never produces this value.
const absent = -1

func newRowStates() rowStates {
	return rowStates{map[uint64]float32{}, map[uint64][]float32{}}
}

func (s rowStates) clone() rowStates { return rowStates{maps.Clone(s.rows), maps.Clone(s.maybe)} }

// set makes value, which may be absent, the only one that key may have.
func (s rowStates) set(key uint64, value float32) {
	delete(s.maybe, key)
	if value == absent {
		delete(s.rows, key)
	} else {
		s.rows[key] = value
	}
}

// orSet adds value to the values that key may have.
func (s rowStates) orSet(key uint64, value float32) {
	s.maybe[key] = append(slices.Clone(s.maybe[key]), value)
}

// may reports whether key may have that value, or may have no row if value is absent.
func (s rowStates) may(key uint64, value float32) bool {
	sure, ok := s.rows[key]
	if !ok {
		sure = absent
	}
	return sure == value || slices.Contains(s.maybe[key], value)
}

// savedRows is what a snapshot has that is committed, or that may have been committed.
type savedRows struct {
	rowStates
	record string
	id     uint64 // 0: it may be
}

// faultyOp is an operation of a device or of the catalog's file system.
type faultyOp struct {
	kind  blocktest.Kind
	fs    bool // of the file system
	bytes int
}

func (op faultyOp) writes() bool {
	switch op.kind {
	case blocktest.Create, blocktest.Write:
		return true
	}
	return false
}

func (op faultyOp) writesRows() bool { return !op.fs && op.writes() }
func (op faultyOp) readsRows() bool  { return !op.fs && op.kind == blocktest.Read }

func newFaulty(t *testing.T, script faultScript, seed uint64) *faulty {
	f := &faulty{
		t: t, script: script, disk: newSSDDisk(2), rng: rand.New(rand.NewPCG(seed, 0)),
		rowStates: newRowStates(), saved: []savedRows{{rowStates: newRowStates()}},
	}
	for i := 0; len(f.keys) < script.keys; i++ {
		if k := tabletest.SpreadKey(i); !script.skewed || slots.Hash(k)%16 == 0 {
			f.keys = append(f.keys, k)
		}
	}
	f.opts = sparsetable.Options{Layout: script.layout}
	f.opts.SSD.Dirs = []string{"/ssd0", "/ssd1"}
	f.opts.SSD.MaxSpaceAmplification = 1.1
	f.opts.MemoryBytes = smallest(script.layout, f.opts.SSD, script.resident) + 64<<10
	return f
}

// fault decides whether an operation fails.
func (f *faulty) fault(op faultyOp) blocktest.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.decide == nil {
		return blocktest.Fault{}
	}
	return f.decide(op)
}

func (f *faulty) setFaults(decide func(op faultyOp) blocktest.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide = decide
}

func (f *faulty) open(o sparsetable.Options) (sparsetable.Table, error) {
	devices := make([]blockio.Device, len(f.disk.devices))
	for i, d := range f.disk.devices {
		d.Inject(func(op blocktest.Op) blocktest.Fault { return f.fault(faultyOp{kind: op.Kind, bytes: op.Bytes}) })
		devices[i] = d
	}
	fs := errorfs.Wrap(f.disk.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		o := faultyOp{fs: true, kind: blocktest.Sync}
		switch op.Kind {
		case errorfs.OpFileClose:
			return nil
		case errorfs.OpFileWrite:
			o.kind = blocktest.Write
		case errorfs.OpCreate:
			o.kind = blocktest.Create
		case errorfs.OpFileRead, errorfs.OpFileReadAt:
			o.kind = blocktest.Read
		}
		return f.fault(o).Err
	}))
	open := openOn
	if f.script.skewed {
		open = openOldOn
	}
	tab, err := open(f.t.Context(), o, devices, fs)
	if err == nil && f.script.bulkRows > 0 {
		ssd.SetBulk(tab, f.script.bulkRows, 128<<10, 4096)
	}
	return tab, err
}

// note records an error, and reports whether there is one.
func (f *faulty) note(err error) bool {
	if err != nil {
		f.errs = append(f.errs, err)
	}
	return err != nil
}

// adopt makes tab, which was just opened, the table, and expects it to have what its newest
// snapshot has.
func (f *faulty) adopt(tab sparsetable.Table) error {
	f.table = tab
	infos, err := tab.Snapshots()
	if err != nil {
		return err
	}
	newest := savedRows{}
	if n := len(infos); n > 0 {
		newest.record, newest.id = string(infos[n-1].Record), infos[n-1].ID
	}
	at := slices.IndexFunc(f.saved, func(s savedRows) bool { return s.record == newest.record })
	if at < 0 {
		return fmt.Errorf("snapshot %q is none of those that may be there", newest.record)
	}
	newest.rowStates = f.saved[at].rowStates
	f.saved = []savedRows{newest}
	f.rowStates = newest.clone()
	return nil
}

// equal compares the table with the rows that it may have.
func (f *faulty) equal(tab sparsetable.Table, want rowStates) error {
	seen := make(map[uint64]bool, len(want.rows))
	err := tab.Scan(f.t.Context(), func(key uint64, row []float32) error {
		if seen[key] {
			return fmt.Errorf("%w: key %x is there twice", errWrongRows, key)
		}
		seen[key] = true
		if !want.may(key, row[0]) {
			return fmt.Errorf("%w: key %x holds %v, want %v or %v", errWrongRows, key, row[0], want.rows[key], want.maybe[key])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key := range want.rows {
		if !seen[key] && !want.may(key, absent) {
			return fmt.Errorf("%w: key %x is missing", errWrongRows, key)
		}
	}
	return nil
}

// afterCrash checks what a crash at this moment would leave: the last snapshot that Wait reported,
// or a later one that was begun. damaged says that the table may report damage.
func (f *faulty) afterCrash(seed uint64, damaged bool) error {
	f.disk = f.disk.Crash(rand.New(rand.NewPCG(seed, 1))).(*ssdDisk)
	tab, err := f.open(f.opts)
	if err != nil {
		if damaged && errors.As(err, new(*sparsetable.CorruptionError)) {
			return nil
		}
		return fmt.Errorf("open: %w", err)
	}
	err = f.adopt(tab)
	if err == nil {
		err = f.equal(tab, f.rowStates)
	}
	if damaged && errors.As(err, new(*sparsetable.CorruptionError)) {
		err = nil
	}
	if err == nil && !damaged { // and it works
		f.errs = nil
		f.train()
		f.snapshot("after")
		err = errors.Join(append(f.errs, f.equal(tab, f.rowStates))...)
	}
	err = errors.Join(err, tab.Close())
	if damaged && errors.As(err, new(*sparsetable.CorruptionError)) && !errors.Is(err, errWrongRows) {
		err = nil
	}
	return err
}
