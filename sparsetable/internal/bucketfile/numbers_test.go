package bucketfile

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestNextNumber(t *testing.T) {
	for _, c := range []struct {
		first, last uint32
		taken       []uint32
		want        uint32
	}{
		{1, 5, nil, 1},
		{4, 5, nil, 4},
		{5, 5, nil, 5},
		{6, 5, nil, 1}, // all numbers were given once
		{maxFile + 1, lastFile, nil, 1},
		{2, 5, []uint32{2, 3}, 4},
		{4, 5, []uint32{1, 2, 4, 5}, 3},
		{3, 5, []uint32{3, 4, 5, 1}, 2},
		{3, 5, []uint32{1, 2, 3, 4, 5}, 0},
	} {
		if got := nextNumber(c.first, c.last, func(id uint32) bool { return slices.Contains(c.taken, id) }); got != c.want {
			t.Errorf("from %d on up to %d without %v: %d, want %d", c.first, c.last, c.taken, got, c.want)
		}
	}
	if FileStart(lastFile+1) <= FileStart(lastFile) {
		t.Error("nothing is after the last file")
	}
}

// TestNumbersGoRound reuses file numbers while the index and snapshots use files of all ages, over
// several runs.
func TestNumbersGoRound(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		opts := smallOptions(3)
		opts.FileBytes, opts.lastFile = int64(opts.BufferBytes), 150
		m := newModel(t, seed, 1+int(seed%3), opts)
		names := map[uint32]map[string]bool{} // by number
		for range 3 {
			m.mustOpen()
			opened := m.set.opened
			for range 700 {
				for len(m.snapshots) > 2 {
					must(t, m.dropSnapshot())
				}
				must(t, m.step())
				for _, f := range m.set.sortedFiles() {
					if names[f.id] == nil {
						names[f.id] = map[string]bool{}
					}
					names[f.id][f.name] = true
					if _, there := opened[f.id]; f.incarnation == 0 || !f.ended && there {
						t.Fatalf("file %s has the number of one that was there when the set was opened", f.name)
					}
				}
			}
			must(t, m.set.Flush(t.Context()))
			must(t, m.checkIndex(m.index))
			for _, s := range m.snapshots {
				must(t, m.checkIndex(s.index))
			}
			m.checkSpace()
			m.checkFiles()
			m.close()
		}
		used := 0
		for id, n := range names {
			if id < 1 || id > opts.lastFile {
				t.Errorf("a file has the number %d", id)
			}
			used += len(n)
		}
		if used < int(opts.lastFile)+50 {
			t.Errorf("%d files were made with %d numbers, want more", used, opts.lastFile)
		}
	})
}

// sortedFiles is sortedFilesLocked for tests.
func (s *Set) sortedFiles() []*file {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sortedFilesLocked()
}

// TestNoNumberLeft checks that when all file numbers are in use, the error of an append says what
// to do, and appends continue once a file was deleted.
func TestNoNumberLeft(t *testing.T) {
	opts := smallOptions(3)
	opts.FileBytes, opts.lastFile = int64(opts.BufferBytes), 3
	m := newModel(t, 1, 1, opts)
	m.mustOpen()
	var err error
	slot := uint32(0)
	for ; err == nil && slot < 10000; slot++ {
		err = m.append(slot, 20, false)
	}
	if err == nil || !strings.Contains(err.Error(), "export the table and import it") {
		t.Fatalf("after %d buckets: %v", slot, err)
	}
	for slot, c := range maps.Clone(m.index) {
		if c.loc.File() == 2 {
			must(t, m.replace(slot, content{}))
		}
	}
	must(t, m.set.Flush(t.Context())) // the buffer was the last that used file 2
	must(t, m.append(slot, 20, false))
	must(t, m.checkIndex(m.index))
	m.close()
}

// TestNamesAreUnique checks that a file that is written again after a crash, or after a return to
// an older snapshot, has another name, and that the buckets of one are not accepted as those of the
// other.
func TestNamesAreUnique(t *testing.T) {
	for _, end := range []string{"crash", "older snapshot"} {
		m := newModel(t, 1, 1, smallOptions(3))
		m.mustOpen()
		fill := func() Location {
			t.Helper()
			m.version = 7 // what is written is the same each time
			for m.index[5].loc == 0 {
				must(t, m.append(5, 20, false))
			}
			must(t, m.set.Flush(t.Context()))
			return m.index[5].loc
		}
		must(t, m.append(1, 20, false))
		must(t, m.snapshot())
		m.close()
		m.mustOpen()
		loc := fill()
		name := m.fileName(loc.File())
		data := m.mem[0].Bytes(name)
		if end == "crash" {
			m.crash()
		} else {
			must(t, m.snapshot())
			m.close()
			m.snapshots = m.snapshots[:1] // the other was dropped
		}
		m.mustOpen()
		if m.mem[0].Bytes(name) != nil {
			t.Errorf("%s: %s is still there", end, name)
		}
		again := fill()
		if again != loc {
			t.Fatalf("%s: the bucket is at %v, want the %v of the first time", end, again, loc)
		}
		other := m.fileName(loc.File())
		if other == name {
			t.Errorf("%s: two files have the name %s", end, name)
		}
		if bytes.Equal(m.mem[0].Bytes(other), data) {
			t.Errorf("%s: both files have the same bytes", end)
		}
		m.mem[0].SetBytes(other, data)
		if err := m.checkIndex(m.index); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: the bucket of the earlier file passes for that of the later one: %v", end, err)
		}
		m.close()
	}
}

// TestReturnKeepsLaterFiles checks that a run that continues from an older snapshot uses no file
// number to which a later snapshot that is still kept refers, even if the later snapshot has lost a
// file.
func TestReturnKeepsLaterFiles(t *testing.T) {
	for _, lost := range []bool{false, true} {
		m := newModel(t, 1, 1, smallOptions(3))
		m.mustOpen()
		round := func() {
			t.Helper()
			for slot := range uint32(100) {
				must(t, m.append(slot, 20, false))
			}
			must(t, m.snapshot())
		}
		round()
		first := m.snapshots[0].state
		round()
		m.close()
		if lost {
			i := slices.IndexFunc(m.snapshots[1].state.Files, func(f FileState) bool { return f.File == first.NextFile })
			f := m.snapshots[1].state.Files[i]
			must(t, m.mem[0].Remove(fileName(testTable, f.File, f.Incarnation)))
		}
		m.snapshots[0], m.snapshots[1] = m.snapshots[1], m.snapshots[0] // the last is opened
		m.mustOpen()
		round()
		for i, s := range m.snapshots {
			if err := m.checkIndex(s.index); (err != nil) != (lost && i == 0) {
				t.Errorf("snapshot %d, a file of the later one is lost %v: %v", i, lost, err)
			}
		}
		m.close()
		m.mustOpen()
		must(t, m.checkIndex(m.index))
		m.close()
	}
}
