package modeldir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/modelfiles"
	"aibox/trainer/tensorfile"
)

// TestIndexes copies the snapshots of a run to another machine, one after the other, while the run
// continues. The files of each snapshot must be those that were copied before, with the same bytes,
// and new ones, which together are little larger than what the run has written since. Now and then
// a run is resumed from all files there, with the rows of the snapshots.
func TestIndexes(t *testing.T) {
	rng := testseed.Rand(t)
	rounds, rows := 90, 60_000
	if testing.Short() {
		rounds, rows = 40, 30_000
	}
	at := t.TempDir()
	w, err := Create(filepath.Join(at, "model"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	dirs, err := w.PlaceTable([]string{filepath.Join(at, "a"), filepath.Join(at, "b")})
	if err != nil {
		t.Fatal(err)
	}
	table := runTable(t, sparsetable.KindSSD, w.TableDir(), dirs, 0)
	defer table.Close()
	x := w.NewIndexes()
	defer func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.SaveDense(DenseName(5), []tensorfile.Tensor{{Name: "x", Shape: []int{1}, Data: []float32{5}}}); err != nil {
		t.Fatal(err)
	}
	want := map[uint64]string{} // of each snapshot
	train := func(from, n int) uint64 {
		id := trainRows(t, table, from, n)
		want[id] = digest(t, table)
		return id
	}
	flush := func() {
		if err := table.(sparsetable.Flusher).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	train(0, rows)
	flush() // the rows are in buckets
	last := train(0, 10)
	best := last
	there := map[string]string{}        // the files on the other machine, by name
	lists, listed, unchanged := 0, 0, 0 // files that the longest index has had, and the last one
	written := int64(-1)                // into buckets, before the last snapshot there was fixed
	for round := range rounds {
		if n := rng.IntN(10); n < 2 {
			best = last
		} else if n < 5 { // this one is not taken there
			train(rng.IntN(rows), 1+rng.IntN(20))
		}
		if rng.IntN(10) == 0 {
			flush()
		}
		before := bucketBytes(table)
		last = train(rng.IntN(rows), 1+rng.IntN(500))
		files, err := w.HoldRun([]string{DenseName(5)}, table, []uint64{best, last}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := files.WriteIndexes(x); err != nil {
			t.Fatal(err)
		}
		same := bucketBytes(table) == written // no bucket was written since then
		written = before
		pages := int64(0) // bytes that are new
		for _, f := range files.Files {
			data := readPortable(t, &f)
			if had, ok := there[f.Name]; ok && f.Unique && !strings.HasPrefix(data, had) && !strings.HasPrefix(had, data) {
				t.Errorf("round %d: %s has changed", round, f.Name)
			}
			if strings.HasPrefix(f.Name, "table/pages-") && there[f.Name] == "" {
				pages += f.Bytes
			}
			there[f.Name] = data
		}
		list := strings.Count(there[fmt.Sprintf("%s-%d", modelfiles.Index, last)], "\n")
		lists = max(lists, list)
		if same && list > listed && listed > 0 {
			if unchanged++; pages > 10<<10 { // the list of up to 64 files of row deltas takes some 125 bytes for each
				t.Errorf("round %d: no bucket was written, but %d bytes of the index are new", round, pages)
			}
		}
		listed = list
		if round%20 == 19 {
			to := t.TempDir()
			if err := restoreRun(t, files, filepath.Join(to, "model"), to, sparsetable.KindSSD); err != nil {
				t.Fatal(err)
			}
			wantSnapshots(t, filepath.Join(to, "model"), want, best, last)
		}
		for id := range want {
			if id != best && id != last {
				if err := table.DropSnapshot(id); err != nil {
					t.Fatal(err)
				}
				delete(want, id)
			}
		}
		if err := files.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const maxIndexFiles = 32
	if want := min(rounds/2, maxIndexFiles); lists < want/2 || lists > maxIndexFiles {
		t.Errorf("an index has up to %d files", lists)
	}
	t.Logf("no bucket was written in %d of %d rounds", unchanged, rounds)
	if open := openTempFiles(t); open < 1 || open > 2*maxIndexFiles {
		t.Errorf("%d files are open", open)
	}
}

// openTempFiles returns how many files without a name the process has open.
func openTempFiles(t *testing.T) int {
	t.Helper()
	const dir = "/proc/self/fd"
	fds, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, fd := range fds {
		if to, _ := os.Readlink(filepath.Join(dir, fd.Name())); strings.Contains(to, ".aibox-index-") { // it may be closed by now
			open++
		}
	}
	return open
}

// bucketBytes returns how many bytes of buckets a table has written.
func bucketBytes(table sparsetable.Table) int64 {
	s := table.Stats()
	return s.FlushedBytes + s.CompactedBytes
}

func readPortable(t *testing.T, f *modelfiles.File) string {
	t.Helper()
	in, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(io.NewSectionReader(in, 0, f.Bytes))
	if err := errors.Join(err, in.Close()); err != nil || int64(len(data)) != f.Bytes {
		t.Fatalf("%s: %d bytes of %d, %v", f.Name, len(data), f.Bytes, err)
	}
	return string(data)
}

// digest returns a digest of the rows of a table.
func digest(t *testing.T, table sparsetable.Table) string {
	t.Helper()
	rows, sum := 0, uint64(0)
	if err := table.Scan(t.Context(), func(key uint64, row []float32) error {
		rows++
		sum += key * uint64(1+row[0])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d rows, sum %d", rows, sum)
}

// wantSnapshots fails the test unless a run in the model directory can be resumed from each of
// these snapshots of the table.
func wantSnapshots(t *testing.T, model string, want map[uint64]string, ids ...uint64) {
	t.Helper()
	w, err := Continue(model, func([]byte) (bool, error) { return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := w.TakeTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		table := runTable(t, sparsetable.KindSSD, w.TableDir(), dirs, id)
		if have := digest(t, table); have != want[id] {
			t.Errorf("snapshot %d: %s, want %s", id, have, want[id])
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
