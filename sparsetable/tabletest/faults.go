package tabletest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
)

// testFailEveryOperation makes the first I/O operation of a run fail, then the second, and so on
// until a run has no failure. There are two runs for each operation: in one, only this operation
// fails; in the other, all later ones fail, too. After every run the earlier snapshot must be
// complete, and if the disk works again it must be possible to save the table. With -short and many
// operations, four in five are left out.
func testFailEveryOperation(t *testing.T, k Kind) {
	for _, sticky := range []bool{false, true} {
		first, step := 1, 1
		if testing.Short() && k.NeedsReopen {
			step = 5
			first += testseed.Rand(t).IntN(step)
		}
		for n := first; ; n += step {
			if n > 1000 {
				t.Fatal("the runs do not come to an end")
			}
			if !failAt(t, k, n, sticky) {
				break
			}
		}
	}
}

func failAt(t *testing.T, k Kind, n int, sticky bool) (failed bool) {
	t.Helper()
	fs := k.disk()
	o := options(fs)
	o.Layout.ValueDim = 2000 // few rows fill a block
	o.Init = nil
	tab := mustOpen(t, k, o)
	trainKeys(t, tab, sequence(1, 1, 100), low)
	mustSave(t, tab, "first")
	mustClose(t, tab)

	fs.FailAt(n, sticky)
	var opened, saved error
	tab, opened = k.Open(t.Context(), o)
	var second uint64
	if opened == nil {
		trainKeys(t, tab, sequence(50, 1, 100), func(uint64) float32 { return 7 })
		var p *sparsetable.PendingSnapshot
		if p, saved = tab.Snapshot(t.Context(), []byte("second")); saved == nil {
			var info sparsetable.SnapshotInfo
			info, saved = p.Wait()
			second = info.ID
		}
		_, listed := tab.Snapshots()
		if saved == nil {
			saved = listed
		}
	}
	failed = fs.Failed()
	fs.FailAt(0, false)
	if err := errors.Join(opened, saved); failed != (err != nil) && (!k.NeedsReopen || err != nil) {
		t.Fatalf("operation %d, sticky %v: failed %v, but the error is %v", n, sticky, failed, err)
	} else if failed && !k.NeedsReopen && !errors.Is(err, ErrInjected) {
		t.Fatalf("operation %d, sticky %v: the error hides its cause: %v", n, sticky, err)
	}
	if opened == nil && failed && k.NeedsReopen {
		_ = tab.Close() // it may return the injected error again
	} else if opened == nil {
		if third := mustSave(t, tab, "third"); third.Rows != 149 || third.ID == second {
			t.Fatalf("operation %d, sticky %v: the snapshot afterwards is %+v", n, sticky, third)
		}
		mustClose(t, tab)
	}
	// After a crash, too, there must be only complete snapshots, the first among them.
	disks := []Disk{fs, fs.Crash(rand.New(rand.NewPCG(uint64(n), 3)))}
	if k.NeedsReopen {
		disks[0] = fs.Crash(rand.New(rand.NewPCG(uint64(n), 4))) // the first may be locked for good
	}
	for _, disk := range disks {
		o := o
		o.FS = disk
		tab := mustOpen(t, k, o)
		infos, err := tab.Snapshots()
		if err != nil || len(infos) == 0 || string(infos[0].Record) != "first" || infos[0].Rows != 100 {
			t.Fatalf("operation %d, sticky %v: snapshots %+v, %v", n, sticky, infos, err)
		}
		mustClose(t, tab)
		o.SnapshotID = infos[0].ID
		tab = mustOpen(t, k, o)
		ws := mustPull(t, tab, []uint64{1, 75, 120}, sparsetable.PullLookup)
		if ws.Row(1)[0] != 75 || ws.Found(2) {
			t.Fatalf("operation %d, sticky %v: the first snapshot has changed", n, sticky)
		}
		ws.Release()
		mustClose(t, tab)
		if k := disk.OpenFiles(); k != 0 {
			t.Fatalf("operation %d, sticky %v: %d files are still open", n, sticky, k)
		}
	}
	return failed
}

// testCorruption damages each file that a snapshot consists of, at places all over the file:
// opening must report it, and the older snapshot must not be affected.
func testCorruption(t *testing.T, k Kind) {
	fs := NewMemFS()
	o := options(fs)
	o.Layout.ValueDim = 2000
	o.Init = nil
	tab := mustOpen(t, k, o)
	trainKeys(t, tab, sequence(1, 1, 70), low)
	first := mustSave(t, tab, "first")
	before := fs.Files()
	trainKeys(t, tab, sequence(50, 1, 70), low)
	second := mustSave(t, tab, "second")
	mustClose(t, tab)

	tried := 0
	for _, name := range fs.Files() {
		if slices.Contains(before, name) {
			continue // shared with the first, or its own
		}
		good := fs.Get(name)
		damage := func(what string, do func()) {
			t.Helper()
			tried++
			do()
			defer fs.Put(name, good)
			_, err := k.Open(t.Context(), o)
			var c *sparsetable.CorruptionError
			if !errors.As(err, &c) {
				t.Fatalf("%s, %s: error %v", name, what, err)
			}
			if c.File == "" || c.Offset < 0 || c.Offset > int64(len(good)) || !strings.Contains(err.Error(), c.File) {
				t.Fatalf("%s, %s: %#v", name, what, c)
			}
			o := o
			o.SnapshotID = first.ID
			tab := mustOpen(t, k, o)
			infos, err := tab.Snapshots()
			if err == nil && (len(infos) != 2 || infos[1].ID != second.ID) || len(infos) == 0 || infos[0].ID != first.ID {
				t.Fatalf("%s, %s: snapshots %+v, %v", name, what, infos, err)
			}
			mustClose(t, tab)
			if n := fs.OpenFiles(); n != 0 {
				t.Fatalf("%s, %s: %d files are still open", name, what, n)
			}
		}
		size := int64(len(good))
		rng := rand.New(rand.NewPCG(9, 9))
		for i := range size {
			if i < 48 || size-i <= 24 || rng.Int64N(size) < 40 { // both ends, and some in between
				damage("bit flip", func() { fs.Flip(name, i, 1<<rng.IntN(8)) })
			}
		}
		for _, cut := range []int64{0, 1, 31, size / 2, size - 17, size - 16, size - 1} {
			damage("truncated", func() { fs.Truncate(name, cut) })
		}
		damage("longer", func() { fs.Put(name, append(append([]byte(nil), good...), 0)) })
		damage("zeros", func() { fs.Put(name, make([]byte, size)) })
		damage("tail of zeros", func() {
			fs.Put(name, append(append([]byte(nil), good[:size/2]...), make([]byte, size-size/2)...))
		})
	}
	if tried == 0 {
		t.Error("the second snapshot has no file of its own")
	}
	tab = mustOpen(t, k, o) // all was put back
	mustClose(t, tab)
}
