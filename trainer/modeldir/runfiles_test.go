package modeldir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/trainer/modelfiles"
	"aibox/trainer/tensorfile"
)

// runTable opens the table of a run. Its training adds n rows and takes a snapshot.
func runTable(t *testing.T, kind, dir string, dirs []string, snapshot uint64) sparsetable.Table {
	t.Helper()
	table, err := sparsetable.Open(t.Context(), sparsetable.Options{
		Kind: kind, Dir: dir, Layout: sparsetable.Layout{ValueDim: 1}, MemoryBytes: 32 << 20, SSD: sparsetable.SSDOptions{Dirs: dirs}, SnapshotID: snapshot,
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func trainRows(t *testing.T, table sparsetable.Table, from, n int) uint64 {
	t.Helper()
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(from + i + 1)
	}
	ws, err := table.Pull(t.Context(), keys, sparsetable.PullCreate)
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		ws.Row(i)[0] = float32(from)
		table.Layout().SetStats(ws.Row(i), sparsetable.RowStats{Count: 1})
	}
	ws.Release()
	p, err := table.Snapshot(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return info.ID
}

// TestRunOnAnotherMachine restores the files of a snapshot of an unfinished run to another model
// directory, which may have models, and to other directories of the table, where a run resumes from
// them. The restore is killed before every change of files. After that there is no run to resume,
// or a complete one, and the next restore has the same result.
func TestRunOnAnotherMachine(t *testing.T) {
	rng := testseed.Rand(t)
	for _, kind := range []string{sparsetable.KindMemory, sparsetable.KindSSD} {
		t.Run(kind, func(t *testing.T) {
			at := t.TempDir()
			w, err := Create(filepath.Join(at, "model"))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			var dirs []string
			if kind == sparsetable.KindSSD {
				if dirs, err = w.PlaceTable([]string{filepath.Join(at, "a"), filepath.Join(at, "b")}); err != nil {
					t.Fatal(err)
				}
			}
			table := runTable(t, kind, w.TableDir(), dirs, 0)
			defer table.Close()
			best := trainRows(t, table, 0, 100)
			last := trainRows(t, table, 50, 100)
			elsewhere := filepath.Join(at, "elsewhere.jsonl")
			if err := errors.Join(w.SaveDense(DenseName(5), []tensorfile.Tensor{{Name: "x", Shape: []int{1}, Data: []float32{5}}}), os.WriteFile(w.Report("metrics.jsonl"), []byte("one\ntwo\n"), 0o644),
				os.WriteFile(elsewhere, []byte("three\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
			files, err := w.HoldRun([]string{DenseName(5), DenseName(5)}, table, []uint64{last, best, last}, []modelfiles.RunReport{{Path: w.Report("metrics.jsonl"), Bytes: 4}, {Path: elsewhere, Bytes: 6}})
			if err != nil {
				t.Fatal(err)
			}
			x := w.NewIndexes()
			defer func() {
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}()
			// The run goes on.
			w.RemoveOtherDense()
			trainRows(t, table, 100, 500)
			if err := errors.Join(table.DropSnapshot(best), table.DropSnapshot(last), files.WriteIndexes(x), files.WriteIndexes(x)); err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			for _, f := range files.Files {
				if names[f.Name] {
					t.Errorf("%s is there twice", f.Name)
				}
				names[f.Name] = true
			}
			step := 1
			if testing.Short() {
				step = 7
			}
			for n, done := 0, false; !done; n += step {
				to := t.TempDir()
				model := filepath.Join(to, "model")
				if n%2 == 0 { // it has a model of an earlier night
					earlier, err := Create(model)
					if err != nil {
						t.Fatal(err)
					}
					if err := errors.Join(commit(earlier, fill(t, earlier, 3), 3, 1), earlier.Close()); err != nil {
						t.Fatal(err)
					}
				}
				restore := func() {
					if err := restoreRun(t, files, model, to, kind); err != nil {
						t.Fatal(err)
					}
				}
				where := killAt(rng, n, restore)
				if done = where == ""; !done {
					died(t, lastRestoring.w)
					left, err := Interrupted(model)
					if err != nil {
						t.Fatalf("killed before %s: %v", where, err)
					}
					if left == nil {
						restore()
					}
				}
				wantRun(t, model, kind, best, last)
				if data, err := os.ReadFile(filepath.Join(to, "elsewhere.jsonl")); string(data) != "three\n" {
					t.Errorf("killed before %s: %q, %v", where, data, err)
				}
			}
			if err := files.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func restoreRun(t *testing.T, files *modelfiles.RunFiles, model, to, kind string) error {
	var dirs []string
	if kind == sparsetable.KindSSD {
		dirs = []string{filepath.Join(to, "x"), filepath.Join(to, "y"), filepath.Join(to, "z")}
	}
	r, err := lockRestoring(model) // RestoreBeside, of which the test knows the locks if it is killed
	if err != nil {
		return err
	}
	lastRestoring = r
	if err := r.beginBeside("id", dirs); err != nil {
		return err
	}
	if err := copyAll(r, files.Files); err != nil {
		return err
	}
	if err := r.CommitRun(t.Context(), []byte(`{"step": 5}`), func(name string) string { return filepath.Join(to, name) }); err != nil {
		return err
	}
	return r.Close()
}

// wantRun fails the test unless a run in the model directory can be resumed from both snapshots.
func wantRun(t *testing.T, model, kind string, best, last uint64) {
	t.Helper()
	w, err := Continue(model, func(resume []byte) (bool, error) { return string(resume) == `{"step":5}`, nil })
	if err != nil {
		t.Fatal(err)
	}
	if w.Resume() == nil {
		t.Fatal("there is nothing to go on with")
	}
	dirs, err := w.TakeTable()
	if err != nil {
		t.Fatal(err)
	}
	tensors, err := w.ReadDense(DenseName(5))
	if err != nil || tensors[0].Data[0] != 5 {
		t.Errorf("%v, %v", tensors, err)
	}
	if data, err := os.ReadFile(w.Report("metrics.jsonl")); string(data) != "one\n" {
		t.Errorf("%q, %v", data, err)
	}
	for id, want := range map[uint64]string{best: "100 rows, sum 0", last: "150 rows, sum 5000"} {
		table := runTable(t, kind, w.TableDir(), dirs, id)
		rows, sum := 0, float32(0)
		err := table.Scan(t.Context(), func(_ uint64, row []float32) error {
			rows++
			sum += row[0]
			return nil
		})
		if have := fmt.Sprintf("%d rows, sum %g", rows, sum); err != nil || have != want {
			t.Errorf("snapshot %d: %s, want %s: %v", id, have, want, err)
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
