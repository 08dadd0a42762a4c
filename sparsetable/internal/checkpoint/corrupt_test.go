package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/deltafile"
)

// TestDamagedDelta damages any byte of a delta file of a snapshot with two layers. The snapshot
// must not be opened, and the error must name the file and what is wrong.
func TestDamagedDelta(t *testing.T) {
	rng := testseed.Rand(t)
	d := newDisk(t, 2)
	r := mustOpen(t, d)
	r.must(r.train(1, keysFrom(0, 60)...))
	r.mustSnapshot("first")
	r.must(r.train(2, keysFrom(0, 20)...))
	s := r.mustSnapshot("second")
	r.close()
	if len(s.Deltas) != 4 {
		t.Fatalf("%d files", len(s.Deltas))
	}
	at := func(x catalog.Delta) string { return d.devices[x.Dir].Dir() + "/" + x.Name }
	for i, x := range s.Deltas {
		twin := s.Deltas[(i+2)%4] // of the same directory
		for what, damage := range map[string]func(data []byte) []byte{
			"a flipped bit": func(data []byte) []byte {
				data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
				return data
			},
			"cut off":       func(data []byte) []byte { return data[:rng.IntN(len(data))/512*512] },
			"zeros":         func(data []byte) []byte { return make([]byte, len(data)) },
			"another file":  func(data []byte) []byte { return d.devices[x.Dir].Bytes(twin.Name) },
			"another place": func(data []byte) []byte { return d.devices[1-x.Dir].Bytes(s.Deltas[i^1].Name) },
		} {
			c := d.copied(t)
			c.devices[x.Dir].SetBytes(x.Name, damage(c.devices[x.Dir].Bytes(x.Name)))
			_, err := openRoom(t, c, roomOptions{})
			var corrupt *deltafile.CorruptionError
			if !errors.As(err, &corrupt) || corrupt.File != at(x) || corrupt.Reason == "" || !strings.Contains(err.Error(), at(x)) {
				t.Errorf("%s of %s: %v", what, at(x), err)
			}
		}
		c := d.copied(t)
		if err := c.devices[x.Dir].Remove(x.Name); err != nil {
			t.Fatal(err)
		}
		if _, err := openRoom(t, c, roomOptions{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), x.Name) {
			t.Errorf("without %s: %v", at(x), err)
		}
		c = d.copied(t)
		c.devices[x.Dir].Inject(func(op blocktest.Op) blocktest.Fault {
			if op.Kind == blocktest.Read && op.Name == x.Name {
				return blocktest.Fault{Err: syscall.EIO}
			}
			return blocktest.Fault{}
		})
		if _, err := openRoom(t, c, roomOptions{}); !errors.Is(err, syscall.EIO) || errors.As(err, new(*deltafile.CorruptionError)) || !strings.Contains(err.Error(), x.Name) {
			t.Errorf("where %s cannot be read: %v", at(x), err)
		}
	}
}

// TestSwappedDeltas swaps two delta files of a table that have equally many rows. Neither may be
// accepted as the other.
func TestSwappedDeltas(t *testing.T) {
	d := newDisk(t, 1)
	r := mustOpen(t, d)
	r.must(r.train(1, keysFrom(0, 30)...))
	r.mustSnapshot("first")
	r.must(r.train(2, keysFrom(30, 30)...))
	s := r.mustSnapshot("second")
	r.close()
	if len(s.Deltas) != 2 || s.Deltas[0].Bytes != s.Deltas[1].Bytes {
		t.Fatalf("%+v", s.Deltas)
	}
	first, second := s.Deltas[0].Name, s.Deltas[1].Name
	data := d.devices[0].Bytes(first)
	d.devices[0].SetBytes(first, d.devices[0].Bytes(second))
	d.devices[0].SetBytes(second, data)
	var corrupt *deltafile.CorruptionError
	if _, err := openRoom(t, d, roomOptions{}); !errors.As(err, &corrupt) {
		t.Errorf("%v", err)
	}
}

// TestWrongRecord checks the error about a list of files in the catalog that does not fit the
// files.
func TestWrongRecord(t *testing.T) {
	d := newDisk(t, 1)
	r := mustOpen(t, d)
	defer r.close()
	r.must(r.train(1, keysFrom(0, 60)...))
	s := r.mustSnapshot("first")
	for what, change := range map[string]func(x *catalog.Delta){
		"a row more":        func(x *catalog.Delta) { x.DirtyRows++ },
		"a row fewer":       func(x *catalog.Delta) { x.DirtyRows-- },
		"too many bytes":    func(x *catalog.Delta) { x.DirtyBytes = x.Bytes + 512 },
		"negative bytes":    func(x *catalog.Delta) { x.DirtyBytes = -512 },
		"a file that ended": func(x *catalog.Delta) { x.Bytes, x.DirtyBytes = x.Bytes+512, x.DirtyBytes+512 },
		"half a unit":       func(x *catalog.Delta) { x.DirtyBytes -= 256 },
	} {
		x := s.Deltas[0]
		change(&x)
		err := r.store.EachDirty(t.Context(), checkpoint.Layer{x}, func(int, *deltafile.Reader, int) error { return nil })
		var corrupt *deltafile.CorruptionError
		if !errors.As(err, &corrupt) || corrupt.File == "" || corrupt.Reason == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestOlderRecord checks that the record of an older version, which has the counts of its only file
// in the counters, is read like a current one.
func TestOlderRecord(t *testing.T) {
	old := catalog.Snapshot{
		ID: 7, Counters: map[string]int64{"bucket_seq": 5, "dirty_bytes": 4096, "dirty_rows": 11},
		Deltas: []catalog.Delta{{Name: "f", Bytes: 8192, Rows: 20}},
	}
	got := checkpoint.Upgraded(old)
	if d := got.Deltas[0]; d.Snapshot != 7 || d.Seq != 5 || d.DirtyBytes != 4096 || d.DirtyRows != 11 || d.Rows != 20 {
		t.Errorf("%+v", d)
	}
	if old.Deltas[0].Snapshot != 0 {
		t.Error("the record itself was changed")
	}
	if !checkpoint.NoBucketSince(&got.Deltas[0], got) || checkpoint.WrittenBytes(got) != 8192 || checkpoint.DirtyRows(got.Deltas) != 11 {
		t.Errorf("%+v", got)
	}
	if c := checkpoint.Covers(got, got.Deltas[0]); !c.Hash(1<<40) || !c.File(catalog.File{Dir: 3}) {
		t.Error("the one file does not cover everything")
	}
}

// TestSpaceRunsOut checks a snapshot for whose rows a directory has no room. It must fail before it
// writes any rows, or while it writes them, and leave no file and no reserved space. With more
// room, the next snapshot has all rows.
func TestSpaceRunsOut(t *testing.T) {
	for what, full := range map[string]func(_ *disk, last *blocktest.Device){
		"a full disk": func(_ *disk, last *blocktest.Device) {
			used := int64(0)
			for _, name := range namesOn(t, last, "") {
				used += int64(len(last.Bytes(name)))
			}
			last.SetCapacity(used + 512)
		},
		"a disk that fills up": func(_ *disk, last *blocktest.Device) {
			last.Inject(func(op blocktest.Op) blocktest.Fault {
				if op.Kind == blocktest.Write && strings.HasSuffix(op.Name, ".delta") {
					return blocktest.Fault{Err: syscall.ENOSPC, Partial: true, Bytes: op.Bytes / 2}
				}
				return blocktest.Fault{}
			})
		},
	} {
		for dirs := 1; dirs <= 2; dirs++ {
			t.Run(fmt.Sprintf("%s/%d", what, dirs), func(t *testing.T) {
				d := newDisk(t, dirs)
				last := d.devices[dirs-1]
				l := newLife(t, testseed.Rand(t), d, roomOptions{})
				l.must(l.train(1, keysFrom(0, 90)...))
				l.save()
				l.must(l.train(2, keysFrom(0, 90)...))
				full(d, last)
				l.must(l.pin(1, 2, 3))
				s, err := l.store.Fix([]byte("full"))
				if early := what == "a full disk"; early != errors.Is(err, bucketfile.ErrNoSpace) || !early && err != nil {
					t.Fatalf("%s: Fix returns %v", what, err)
				}
				if err == nil {
					_, err = s.Write(t.Context())
				}
				if err == nil || !strings.Contains(err.Error(), last.Dir()) {
					t.Fatalf("%s: %v", what, err)
				}
				last.SetCapacity(0)
				d.watch()
				before := l.base
				if l.store.Running() != nil {
					t.Errorf("%s: a snapshot that failed is still running", what)
				}
				l.base = nil // all rows are written anew, if any were marked
				if have := d.names(t, ".delta"); !bytes.Equal([]byte(strings.Join(have, " ")), []byte(strings.Join(namesOf(before), " "))) {
					t.Errorf("%s: left are %v, want %v", what, have, namesOf(before))
				}
				l.checkCharges()
				l.updatePinned(3)
				l.release()
				l.save()
				l.checkSnapshots()
				l.checkFiles()
				l.close()
			})
		}
	}
}
