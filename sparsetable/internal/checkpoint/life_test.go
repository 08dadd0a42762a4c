package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
)

// life is a room with a random history, together with plain maps of what it should have.
type life struct {
	*room
	rng    *rand.Rand
	o      roomOptions
	step   int
	saved  map[string]map[uint64]float32 // the rows of each snapshot, by its record
	list   []catalog.Snapshot            // those that are kept
	base   []catalog.Delta               // to which the next one may refer
	held   []heldSnapshot
	folded int // snapshots that wrote all dirty rows although there were earlier files
}

// heldSnapshot is a snapshot that Keep keeps, with the bytes of its files.
type heldSnapshot struct {
	*checkpoint.Kept
	s     catalog.Snapshot
	files map[string][]byte
}

const lifeKeys = 96

func newLife(t testing.TB, rng *rand.Rand, d *disk, o roomOptions) *life {
	return &life{room: mustOpenWith(t, d, o), rng: rng, o: o, saved: map[string]map[uint64]float32{}}
}

// do does one random operation.
func (l *life) do() {
	l.step++
	switch n := l.rng.IntN(20); {
	case n < 6:
		l.work()
	case n < 7 && len(l.pinned) < 3:
		l.must(l.pin(l.some(1 + l.rng.IntN(10))...))
	case n < 8 && len(l.pinned) > 0:
		l.updatePinned(float32(l.step))
		l.release()
	case n < 14:
		l.save()
	case n < 15 && len(l.list) > 0:
		l.keep()
	case n < 16 && len(l.held) > 0:
		l.letGo(l.rng.IntN(len(l.held)))
	case n < 18 && len(l.list) > 0:
		l.drop(l.rng.IntN(len(l.list)))
	case n < 19:
		l.reopen()
	case l.rng.IntN(4) == 0:
		l.store.Restart()
		l.base = nil
	}
}

// some returns random keys that differ from each other.
func (l *life) some(n int) (keys []uint64) {
	for _, k := range l.rng.Perm(lifeKeys)[:n] {
		keys = append(keys, uint64(k))
	}
	return keys
}

// work changes rows, also those of working sets, and writes buckets.
func (l *life) work() {
	switch l.rng.IntN(4) {
	case 0:
		l.must(l.write(uint32(l.rng.IntN(tableSlot)), l.rng.IntN(2) == 0))
	case 1:
		if len(l.pinned) > 0 {
			l.updatePinned(float32(l.step) + l.rng.Float32())
		}
	default:
		l.must(l.train(float32(l.step)+l.rng.Float32(), l.some(1+l.rng.IntN(1+l.rng.IntN(60)))...))
	}
}

// save takes a snapshot while work continues.
func (l *life) save() {
	l.t.Helper()
	record := fmt.Sprintf("step %d, %d snapshots", l.step, len(l.saved))
	had := len(l.base)
	s, err := l.store.Fix([]byte(record))
	l.must(err)
	l.saved[record] = maps.Clone(l.rows)
	for range l.rng.IntN(4) {
		l.work()
	}
	committed, err := s.Write(context.Background())
	l.must(err)
	l.list = append(l.list, committed)
	l.base = checkpoint.WithDirtyRows(committed.Deltas)
	if had > 0 && len(checkpoint.Layers(l.base)) == 1 {
		l.folded++
	}
	l.checkRule(committed)
}

// checkRule checks that a list of delta files is within its limits.
func (l *life) checkRule(s catalog.Snapshot) {
	l.t.Helper()
	layers := checkpoint.Layers(checkpoint.WithDirtyRows(s.Deltas))
	if len(layers) > 64 {
		l.t.Errorf("snapshot %d has %d layers", s.ID, len(layers))
	}
	for _, layer := range layers {
		dirs := map[uint16]bool{}
		for _, d := range layer {
			if dirs[d.Dir] || l.store.DirOf(d.Name) != int(d.Dir) {
				l.t.Errorf("snapshot %d: %s, for directory %d, is in %d", s.ID, d.Name, d.Dir, l.store.DirOf(d.Name))
			}
			dirs[d.Dir] = true
		}
	}
}

func (l *life) drop(i int) {
	l.t.Helper()
	l.must(l.store.Drop(l.list[i].ID))
	if err := l.store.Drop(l.list[i].ID); !errors.Is(err, catalog.ErrNoSnapshot) {
		l.t.Errorf("it was dropped twice: %v", err)
	}
	if k, err := l.store.Keep(l.list[i].ID); !errors.Is(err, catalog.ErrNoSnapshot) {
		l.t.Errorf("a snapshot that was dropped is kept: %v, %v", k, err)
	}
	l.list = slices.Delete(l.list, i, i+1)
}

func (l *life) keep() {
	l.t.Helper()
	s := l.list[l.rng.IntN(len(l.list))]
	k, err := l.store.Keep(s.ID)
	l.must(err)
	l.held = append(l.held, heldSnapshot{k, s, l.filesOf(s)})
}

// filesOf returns the bytes of the files of a snapshot; of a bucket file, the bytes that belong to
// the snapshot.
func (l *life) filesOf(s catalog.Snapshot) map[string][]byte {
	l.t.Helper()
	files := map[string][]byte{}
	add := func(dir int, name string, bytes int64) {
		data := l.disk.devices[dir].Bytes(name)
		if int64(len(data)) < bytes {
			l.t.Fatalf("snapshot %d: %s has %d bytes on disk, of %d", s.ID, name, len(data), bytes)
		}
		files[fmt.Sprintf("d%d/%s", dir, name)] = data[:bytes]
	}
	for _, d := range s.Deltas {
		add(int(d.Dir), d.Name, d.Bytes)
	}
	for _, f := range s.Files {
		add(int(f.Dir), bucketName(f), f.Bytes)
	}
	return files
}

// letGo checks that a kept snapshot still has its files, and releases it twice.
func (l *life) letGo(i int) {
	l.t.Helper()
	h := l.held[i]
	for name, data := range l.filesOf(h.s) {
		if !bytes.Equal(data, h.files[name]) {
			l.t.Errorf("%s of snapshot %d, which is kept, has changed", name, h.s.ID)
		}
	}
	l.must(h.Release())
	l.must(h.Release())
	l.held = slices.Delete(l.held, i, i+1)
}

// reopen closes the table and opens it with any of its snapshots, or with the newest one.
func (l *life) reopen() {
	l.t.Helper()
	for len(l.held) > 0 {
		l.letGo(0)
	}
	l.close()
	l.o.id = 0
	if len(l.list) > 0 && l.rng.IntN(2) == 0 {
		l.o.id = l.list[l.rng.IntN(len(l.list))].ID
	}
	l.room = mustOpenWith(l.t, l.disk, l.o)
	l.base = checkpoint.WithDirtyRows(l.opened.Deltas)
	want := l.saved[string(l.opened.Record)]
	if !maps.Equal(l.rows, want) {
		l.t.Fatalf("snapshot %d (%s) has %s", l.opened.ID, l.opened.Record, differences(l.rows, want))
	}
}

func differences(have, want map[uint64]float32) string {
	var out []string
	for key := range uint64(lifeKeys) {
		if h, ok := have[key]; ok != (want[key] != 0) || h != want[key] {
			out = append(out, fmt.Sprintf("key %d: %v, want %v", key, h, want[key]))
		}
	}
	return strings.Join(out, "; ")
}

// checkFiles checks that the files on disk are those that something needs.
func (l *life) checkFiles() {
	l.t.Helper()
	deltas, buckets := map[string]bool{}, map[string]bool{}
	need := func(s catalog.Snapshot) {
		for _, d := range s.Deltas {
			deltas[d.Name] = true
		}
		for _, f := range s.Files {
			buckets[bucketName(f)] = true
		}
	}
	for _, s := range l.list {
		need(s)
	}
	for _, h := range l.held {
		need(h.s)
	}
	for _, d := range l.base {
		deltas[d.Name] = true
	}
	if want, have := slices.Sorted(maps.Keys(deltas)), l.disk.names(l.t, ".delta"); !slices.Equal(have, want) {
		l.t.Errorf("delta files on disk:\n%v, want\n%v", have, want)
	}
	l.files.AwaitDeletions()
	have := l.disk.names(l.t, ".bucket")
	for name := range buckets {
		if !slices.Contains(have, name) {
			l.t.Errorf("%s is gone, which a snapshot has", name)
		}
	}
	more := 0
	live := map[string]bool{}
	for _, f := range l.files.LiveFiles() {
		path := l.files.Path(f.File)
		live[path[strings.LastIndexByte(path, '/')+1:]] = true
	}
	for _, name := range have {
		if !buckets[name] && !live[name] {
			more++
		}
	}
	if more > len(l.disk.devices) { // the one that is appended to in each
		l.t.Errorf("%d bucket files are on disk that nothing needs", more)
	}
	l.checkCharges()
}

// checkCharges checks the space that is charged to the directories for delta files.
func (l *life) checkCharges() {
	l.t.Helper()
	files, bytes := l.store.Kept()
	_, each := l.room.files.Space()
	for i, dev := range l.disk.devices {
		have := int64(0)
		names := namesOn(l.t, dev, ".delta")
		for _, name := range names {
			have += int64(len(dev.Bytes(name)))
		}
		if len(names) != files[i] || have != bytes[i] || have != each[i].OtherBytes {
			l.t.Errorf("d%d: %d files of %d bytes; the Store counts %d of %d, and the directory is charged %d", i, len(names), have, files[i], bytes[i], each[i].OtherBytes)
		}
	}
}

// checkSnapshots opens each snapshot in a copy of the disk.
func (l *life) checkSnapshots() {
	l.t.Helper()
	for _, s := range l.list {
		r, err := openRoom(l.t, l.disk.copied(l.t), roomOptions{id: s.ID})
		if err != nil {
			l.t.Fatalf("snapshot %d (%s): %v", s.ID, s.Record, err)
		}
		if want := l.saved[string(s.Record)]; !maps.Equal(r.rows, want) {
			l.t.Errorf("snapshot %d (%s) has %s", s.ID, s.Record, differences(r.rows, want))
		}
		r.close()
	}
}

// TestLife takes, keeps and drops snapshots at random while rows change, are written to their
// buckets and read again, and the table is reopened with any of its snapshots. Each snapshot must
// have the rows of its instant, and the files on disk must be those that something needs, at every
// moment.
func TestLife(t *testing.T) {
	rng := testseed.Rand(t)
	rounds, steps := 6, 120
	if testing.Short() {
		rounds = 3
	}
	folded := 0
	for round := range rounds {
		o := roomOptions{}
		if round%3 == 2 {
			o.hotBytes = 1 << 20
		}
		l := newLife(t, rng, newDisk(t, 1+round%3), o)
		for range steps {
			l.do()
			l.checkFiles()
			if l.step%20 == 0 {
				l.checkSnapshots()
			}
			if t.Failed() {
				t.Fatalf("round %d, step %d", round, l.step)
			}
		}
		l.reopen()
		l.checkFiles()
		l.checkSnapshots()
		l.close()
		folded += l.folded
		for i, dev := range l.disk.devices {
			if n := dev.OpenFiles(); n != 0 {
				t.Errorf("%d files of d%d are still open", n, i)
			}
		}
	}
	if folded == 0 {
		t.Error("nothing was folded: the test shows too little")
	}
}
