package modeldir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/disk"
	"aibox/internal/testseed"
	"aibox/sparsetable"
)

// killed is the value with which a process panics that is to end before a change of files.
type killed struct{ at string }

// killAt runs f and ends it, as a kill does, before its n-th change of files, counted from 0,
// without any error handling. A directory that was about to be deleted may have lost some of its
// files. It returns the place where f ended, or "" if f was done.
func killAt(rng *rand.Rand, n int, f func()) (at string) {
	changes := 0
	disk.BeforeChange = func(operation, path string) {
		if changes++; changes <= n {
			return
		}
		if operation == "remove" {
			// os.RemoveAll deletes file by file, in any order.
			_ = filepath.WalkDir(path, func(p string, e os.DirEntry, err error) error {
				if err == nil && !e.IsDir() && rng.IntN(2) == 0 {
					return os.Remove(p)
				}
				return err
			})
		}
		panic(killed{operation + " " + path})
	}
	defer func() {
		disk.BeforeChange = func(string, string) {}
		if v := recover(); v != nil {
			k, ok := v.(killed)
			if !ok {
				panic(v)
			}
			at = k.at
		}
	}()
	f()
	return ""
}

// died releases the locks of a run that was killed.
func died(t *testing.T, w *Writer) {
	t.Helper()
	w.outside().Close()
	if err := w.lock.file.Close(); err != nil {
		t.Error(err)
	}
}

// placedValue returns the value of the model called name from its dense file. It also opens the
// model's table, which is in directories elsewhere.
func placedValue(t *testing.T, name string) float32 {
	t.Helper()
	m, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	table, err := m.OpenTable(t.Context(), sparsetable.Options{MemoryBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	return float32(m.Examples)
}

// TestKilledCommit ends a run before every change of files of its commit, which deletes an earlier
// model and its table elsewhere. The directory must then have the earlier model or the new one,
// each generation that is listed must be complete, and the next run must work as if nothing had
// happened.
func TestKilledCommit(t *testing.T) {
	rng := testseed.Rand(t)
	for _, elsewhere := range []bool{false, true} {
		for n, done := 0, false; !done; n++ {
			at := t.TempDir()
			dir, ssd := filepath.Join(at, "model"), filepath.Join(at, "ssd")
			run := func(v float32, kill int) (at string) {
				t.Helper()
				w, err := Create(dir)
				if err != nil {
					t.Fatal(err)
				}
				var m *Manifest
				if elsewhere {
					dirs, err := w.PlaceTable([]string{ssd})
					if err != nil {
						t.Fatal(err)
					}
					m = fillPlaced(t, w, dirs)
				} else {
					m = fill(t, w, v)
				}
				m.Examples = int64(v)
				at = killAt(rng, kill, func() {
					if err := commit(w, m, v, 2); err != nil {
						t.Fatal(err)
					}
				})
				if at != "" {
					died(t, w)
				} else if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				return at
			}
			const never = 1 << 30
			run(1, never)
			run(2, never)
			where := run(3, n)
			done = where == ""
			model := placedOr(t, elsewhere, dir)
			if model != 2 && model != 3 || done && model != 3 {
				t.Errorf("killed before %s: the model holds %g", where, model)
			}
			list := listValues(t, elsewhere, dir)
			if !strings.Contains(list, "2:2") || model == 3 && !strings.Contains(list, "3:3*") {
				t.Errorf("killed before %s: there are %s", where, list)
			}
			if n%2 == 1 && model == 3 { // going back loses nothing either
				if _, err := Rollback(dir, 2); err != nil {
					t.Fatal(err)
				}
				if _, err := Rollback(dir, 3); err != nil {
					t.Fatalf("killed before %s, and gone back: %v", where, err)
				}
			}
			// A run that makes no model puts the reports in place.
			w, err := Create(dir)
			if err != nil {
				t.Fatalf("killed before %s: %v", where, err)
			}
			if left := w.Leftovers(); len(left) > 0 {
				t.Errorf("killed before %s: left over: %v", where, left)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			wantReports(t, dir, model)
			run(4, never)
			wantReports(t, dir, 4)
			if have := listValues(t, elsewhere, dir); !strings.HasSuffix(have, fmt.Sprintf(":%g %d:4*", model, number(t, dir))) {
				t.Errorf("killed before %s, then trained: there are %s", where, have)
			}
			if left := names(t, dir); len(left) != 2 {
				t.Errorf("killed before %s, then trained: generations %v", where, left)
			}
			if elsewhere && len(entries(t, ssd)) != 2 {
				t.Errorf("killed before %s, then trained: tables %v", where, entries(t, ssd))
			}
			if done && n < 10 {
				t.Errorf("a commit changes files %d times", n)
			}
		}
	}
}

// TestKilledRollback ends a rollback before every change of files.
func TestKilledRollback(t *testing.T) {
	rng := testseed.Rand(t)
	for n, done := 0, false; !done; n++ {
		dir := t.TempDir()
		for v := range 3 {
			night(t, dir, float32(v+1), 3)
		}
		where := killAt(rng, n, func() {
			if _, err := Rollback(dir, 1); err != nil {
				t.Fatal(err)
			}
		})
		done = where == ""
		have := numbers(t, dir)
		if have != "1:1 2:2 3:3*" && have != "1:1* 2:2 3:3" || done && have != "1:1* 2:2 3:3" {
			t.Errorf("killed before %s: %s", where, have)
		}
		model := value(t, dir)
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(append(w.Leftovers(), w.Close())...); err != nil {
			t.Errorf("killed before %s: %v", where, err)
		}
		wantReports(t, dir, model)
		if _, err := Rollback(dir, 2); err != nil {
			t.Errorf("killed before %s: %v", where, err)
		}
		wantReports(t, dir, 2)
		if have := numbers(t, dir); have != "1:1 2:2* 3:3" {
			t.Errorf("killed before %s, then to 2: %s", where, have)
		}
		if done && n < 5 {
			t.Errorf("a rollback changes files %d times", n)
		}
	}
}

// TestKilledEdit ends the replacement of the table's snapshot before every change of files. The
// model must have the earlier snapshot or the new one, also if another generation was the model
// meanwhile.
func TestKilledEdit(t *testing.T) {
	rng := testseed.Rand(t)
	for _, number := range []int{1, 2} { // of an earlier model, and of the model
		for n, done := 0, false; !done; n++ {
			dir := t.TempDir()
			night(t, dir, 1, 2)
			night(t, dir, 2, 2)
			name := JoinName(dir, number)
			before, after := secondSnapshot(t, name)
			m, err := Open(name)
			if err != nil {
				t.Fatal(err)
			}
			e, err := m.Edit()
			if err != nil {
				t.Fatal(err)
			}
			where := killAt(rng, n, func() {
				if err := e.SetTableSnapshot(after); err != nil {
					t.Fatal(err)
				}
			})
			done = where == ""
			if err := errors.Join(e.Close(), m.Close()); err != nil {
				t.Fatal(err)
			}
			snapshot := func() uint64 {
				t.Helper()
				m, err := Open(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Close(); err != nil || value(t, name) != float32(number) {
					t.Errorf("the model holds %g, %v", value(t, name), err)
				}
				return m.TableSnapshot
			}
			have := snapshot()
			if have != before && have != after || done && have != after {
				t.Errorf("killed before %s: snapshot %d, neither %d nor %d", where, have, before, after)
			}
			for _, to := range []int{1, 2} {
				if _, err := Rollback(dir, to); err != nil {
					t.Fatal(err)
				}
				if now := snapshot(); now != have {
					t.Errorf("killed before %s, then generation %d published: snapshot %d, want %d", where, to, now, have)
				}
			}
		}
	}
}

// secondSnapshot takes another snapshot of the table of a model, and returns the IDs of
// both.
func secondSnapshot(t *testing.T, name string) (first, second uint64) {
	t.Helper()
	m, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o, err := m.TableOptions(sparsetable.Options{})
	if err != nil {
		t.Fatal(err)
	}
	table, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	p, err := table.Snapshot(t.Context(), m.TableRecord())
	if err != nil {
		t.Fatal(err)
	}
	info, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return m.TableSnapshot, info.ID
}

func number(t *testing.T, dir string) int {
	t.Helper()
	m, err := readManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m.Number()
}

func placedOr(t *testing.T, elsewhere bool, name string) float32 {
	t.Helper()
	if elsewhere {
		return placedValue(t, name)
	}
	return value(t, name)
}

// listValues is numbers for models whose tables may be elsewhere.
func listValues(t *testing.T, elsewhere bool, dir string) string {
	t.Helper()
	if !elsewhere {
		return numbers(t, dir)
	}
	all, err := Generations(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := len(all) - 1; i >= 0; i-- {
		text := fmt.Sprintf("%d:%g", all[i].Number, placedValue(t, JoinName(dir, all[i].Number)))
		if all[i].Published {
			text += "*"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}
