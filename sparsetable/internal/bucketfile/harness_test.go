package bucketfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"time"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
)

const testTable = 0xabcdef

// content is the expected content of a bucket: rows rows whose values derive from slot and version.
type content struct {
	loc     Location
	version int
	rows    int
}

// model is a table over a Set: an index, and the snapshots that were committed.
type model struct {
	t    *testing.T
	rng  *rand.Rand
	opts Options
	mem  []*blocktest.Device
	set  *Set

	index     map[uint32]content
	version   int
	snapshots []snapshot // committed, the newest last
	nextSnap  uint64
}

type snapshot struct {
	state State
	index map[uint32]content
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func smallOptions(rowWords int) Options {
	return Options{
		Table: testTable, RowWords: rowWords, FileBytes: 64 << 10, BufferBytes: 16 << 10,
		ReserveBytes: -1, UrgentBytes: -1, Logger: quiet(),
	}
}

func newModel(t *testing.T, seed uint64, dirs int, opts Options) *model {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), opts: opts, index: map[uint32]content{}, nextSnap: 1}
	for i := range dirs {
		o := blocktest.Options{Dir: fmt.Sprint("dir", i), Seed: seed}
		if i == 0 && seed%4 == 3 { // as where a table has moved to another device
			o.UnitBytes, m.opts.UnitBytes = 4096, 512
		}
		m.mem = append(m.mem, blocktest.New(o))
	}
	return m
}

// open opens the Set from the newest snapshot.
func (m *model) open() error {
	m.opts.Devices = nil
	for _, d := range m.mem {
		m.opts.Devices = append(m.opts.Devices, d)
	}
	var current State
	var kept []State
	m.index = map[uint32]content{}
	if n := len(m.snapshots); n > 0 {
		current = m.snapshots[n-1].state
		m.index = maps.Clone(m.snapshots[n-1].index)
		for _, s := range m.snapshots[:n-1] {
			kept = append(kept, s.state)
		}
	}
	var err error
	m.set, err = Open(context.Background(), current, kept, m.opts)
	return err
}

func (m *model) mustOpen() {
	m.t.Helper()
	if err := m.open(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) close() {
	m.t.Helper()
	if err := m.set.Close(); err != nil {
		m.t.Fatal(err)
	}
	for _, d := range m.mem {
		if n := d.OpenFiles(); n != 0 {
			m.t.Fatalf("%d files of %s are still open", n, d.Dir())
		}
	}
	if n := m.set.pool.Bytes() + m.set.appends.Bytes(); n != 0 {
		m.t.Fatalf("%d bytes of buffers are still mapped", n)
	}
}

func rowValue(slot uint32, version, row, word int) float32 {
	return float32(slot*7+uint32(version*31+row*3+word)) + 0.25
}

func keyOf(slot uint32, row int) uint64 { return uint64(slot)<<32 | uint64(row) }

// append writes a new version of slot and releases the old one.
func (m *model) append(slot uint32, rows int, urgent bool) error {
	a, err := m.set.Begin(slot, rows+m.rng.IntN(4), urgent)
	if err != nil {
		return err
	}
	defer a.Abort()
	if m.rng.IntN(20) == 0 {
		return nil
	}
	c := content{version: m.version, rows: rows}
	m.version++
	row := make([]float32, m.opts.RowWords)
	for i := range rows {
		for w := range row {
			row[w] = rowValue(slot, c.version, i, w)
		}
		a.Put(keyOf(slot, i), row)
	}
	if c.loc, err = a.Commit(); err != nil {
		return err
	}
	return m.replace(slot, c)
}

func (m *model) replace(slot uint32, c content) error {
	old := m.index[slot].loc
	if c.loc == 0 {
		delete(m.index, slot)
	} else {
		m.index[slot] = c
	}
	return m.set.Release(old)
}

// checkBucket compares a bucket with what the model put into it.
func (c content) checkBucket(slot uint32, b *Bucket) error {
	if b.Len() != c.rows || b.Slot != slot {
		return fmt.Errorf("slot %d at %v: bucket of slot %d with %d rows, want %d", slot, c.loc, b.Slot, b.Len(), c.rows)
	}
	for i := range c.rows {
		if b.Key(i) != keyOf(slot, i) {
			return fmt.Errorf("slot %d at %v: key %d is %#x", slot, c.loc, i, b.Key(i))
		}
		for w, v := range b.Row(i) {
			if v != rowValue(slot, c.version, i, w) {
				return fmt.Errorf("slot %d at %v: row %d word %d is %v", slot, c.loc, i, w, v)
			}
		}
	}
	return nil
}

// checkIndex reads every slot of an index in one batch.
func (m *model) checkIndex(index map[uint32]content) error {
	q := m.set.NewQueue()
	var reqs []*Request
	for _, slot := range slices.Sorted(maps.Keys(index)) {
		reqs = append(reqs, &Request{Slot: slot, Location: index[slot].loc})
	}
	q.Submit(reqs)
	var done []*Request
	for q.Pending() > 0 {
		done = q.Wait(done, 1+m.rng.IntN(10))
	}
	if len(done) != len(reqs) {
		return fmt.Errorf("%d requests came back of %d", len(done), len(reqs))
	}
	var err error
	for _, r := range done {
		if r.Err != nil {
			err = errors.Join(err, r.Err)
		} else {
			err = errors.Join(err, index[r.Slot].checkBucket(r.Slot, &r.Bucket))
		}
	}
	q.Finish(done)
	return err
}

// snapshot commits a snapshot to the model's catalog if everything that the snapshot needs is
// durable.
func (m *model) snapshot() error {
	id := m.nextSnap
	m.nextSnap++
	st, err := m.set.Hold(id)
	if err != nil {
		return err
	}
	index := maps.Clone(m.index)
	if err := m.set.Flush(context.Background()); err != nil {
		return errors.Join(err, m.set.EndHold(id))
	}
	m.snapshots = append(m.snapshots, snapshot{st, index})
	return nil
}

// dropSnapshot drops a snapshot other than the newest.
func (m *model) dropSnapshot() error {
	if len(m.snapshots) < 2 {
		return nil
	}
	i := m.rng.IntN(len(m.snapshots) - 1)
	id := m.snapshots[i].state.Snapshot
	m.snapshots = slices.Delete(m.snapshots, i, i+1)
	return m.set.EndHold(id)
}

// compact moves the live buckets out of the candidate that is cheapest to empty.
func (m *model) compact() error {
	candidates := m.set.CompactionCandidates()
	if len(candidates) == 0 {
		return nil
	}
	return m.set.ScanFile(context.Background(), candidates[0].File, func(loc Location, b *Bucket) error {
		c := m.index[b.Slot]
		if c.loc != loc {
			return nil
		}
		if err := c.checkBucket(b.Slot, b); err != nil {
			return err
		}
		a, err := m.set.Begin(b.Slot, b.Len(), true)
		if err != nil {
			return err
		}
		defer a.Abort()
		for i := range b.Len() {
			a.Put(b.Key(i), b.Row(i))
		}
		if c.loc, err = a.Commit(); err != nil {
			return err
		}
		return m.replace(b.Slot, c)
	})
}

// step does one random operation.
func (m *model) step() error {
	switch n := m.rng.IntN(100); {
	case n < 60:
		return m.append(uint32(m.rng.IntN(60)), 1+m.rng.IntN(40), false)
	case n < 65:
		slot := uint32(m.rng.IntN(60))
		return m.replace(slot, content{})
	case n < 72:
		return m.checkIndex(m.index)
	case n < 77:
		return m.set.Flush(context.Background())
	case n < 85:
		return m.snapshot()
	case n < 90:
		return m.dropSnapshot()
	default:
		return m.compact()
	}
}

// checkSpace compares the Set's accounts with the model's and the devices'.
func (m *model) checkSpace() {
	m.t.Helper()
	live := int64(0)
	for _, c := range m.index {
		live += int64(c.loc.Units() * m.set.Unit())
	}
	all, _ := m.set.Space()
	if all.LiveBytes != live {
		m.t.Errorf("%d live bytes, the index has %d", all.LiveBytes, live)
	}
	locations := func(yield func(Location) bool) {
		for _, c := range m.index {
			if !yield(c.loc) {
				return
			}
		}
	}
	if err := m.set.CheckLive(locations); err != nil {
		m.t.Error(err)
	}
	if err := m.set.CheckLive(func(func(Location) bool) {}); (err == nil) != (live == 0) {
		m.t.Errorf("an index without locations: %v", err)
	}
	if all.TotalBytes < live {
		m.t.Errorf("%d bytes in total, %d live", all.TotalBytes, live)
	}
}

// waitFor calls cond until it returns true, for two minutes at most.
func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// fileName is the name of a file that the Set has.
func (m *model) fileName(file uint32) string { return path.Base(m.set.Path(file)) }

// checkFiles waits until the directories hold exactly the files that are live
// or held.
func (m *model) checkFiles() {
	m.t.Helper()
	want := map[string]bool{}
	for _, c := range m.index {
		want[m.fileName(c.loc.File())] = true
	}
	for _, s := range m.snapshots {
		for _, f := range s.state.Files {
			want[fileName(testTable, f.File, f.Incarnation)] = true
		}
	}
	// The files that are appended to stay as well.
	for _, d := range m.set.dirs {
		d.mu.Lock()
		if d.appends.file != nil && d.appends.file.written.Load() > 0 {
			want[d.appends.file.name] = true
		}
		d.mu.Unlock()
	}
	waitFor(m.t, "the files that nothing needs are deleted", func() bool {
		found := map[string]bool{}
		for _, d := range m.mem {
			names, err := d.List()
			if err != nil {
				m.t.Fatal(err)
			}
			for _, name := range names {
				found[name] = true
			}
		}
		return maps.Equal(found, want)
	})
}

// crash stops the machine and starts it again.
func (m *model) crash() {
	for i, d := range m.mem {
		d.Inject(nil)
		m.mem[i] = d.Crash(m.rng.Uint64())
	}
	// The old process is gone; its goroutines must still end.
	_ = m.set.Close()
}

var _ blockio.Device = (*blocktest.Device)(nil)
