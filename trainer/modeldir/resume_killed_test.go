package modeldir

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/disk"
	"aibox/internal/testseed"
)

// inAModelDir makes a directory with two models and, newer than both, what an interrupted
// run left.
func inAModelDir(t *testing.T) (dir, ssd, gen string) {
	t.Helper()
	at := t.TempDir()
	dir, ssd = filepath.Join(at, "model"), filepath.Join(at, "ssd")
	night(t, dir, 1, 2)
	night(t, dir, 2, 2)
	gen, _ = interrupt(t, dir, []string{ssd}, `{"step":1}`)
	return dir, ssd, gen
}

// TestInterruptedBesideModels checks that what an interrupted run left is listed beside the models,
// and that a rollback does not change it.
func TestInterruptedBesideModels(t *testing.T) {
	dir, _, gen := inAModelDir(t)
	check := func() {
		t.Helper()
		if resume, err := Interrupted(dir); err != nil || string(resume) != `{"step":1}` {
			t.Errorf("interrupted: %s, %v", resume, err)
		}
		all, err := Unfinished(dir)
		if err != nil || len(all) != 1 || all[0].Name != filepath.Base(gen) || string(all[0].Resume) != `{"step":1}` || all[0].Fault != nil {
			t.Errorf("unfinished: %+v, %v", all, err)
		}
		if n, err := Space(dir, filepath.Base(gen)); err != nil || n == 0 {
			t.Errorf("it takes %d bytes, %v", n, err)
		}
	}
	check()
	if have := numbers(t, dir); have != "1:1 2:2*" {
		t.Errorf("there are %s", have)
	}
	if _, err := Rollback(dir, 1); err != nil {
		t.Fatal(err)
	}
	check()
	if have := numbers(t, dir); have != "1:1* 2:2" {
		t.Errorf("there are %s", have)
	}
	if _, err := Open(JoinName(dir, 3)); err == nil || !strings.Contains(err.Error(), "it has no generation 3") {
		t.Errorf("it is read: %v", err)
	}
	// A run that takes it over numbers its model as if there had been no interruption.
	w, err := Continue(dir, func([]byte) (bool, error) { return true, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(w, &Manifest{Dense: DenseName(1), Epoch: 1, Step: 9}, 3, 2); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := Unfinished(dir); err != nil || len(all) != 0 {
		t.Errorf("unfinished: %+v, %v", all, err)
	}
	all, err := Generations(dir)
	if err != nil || len(all) != 2 || all[0].Number != 3 || all[1].Number != 1 {
		t.Errorf("generations: %+v, %v", all, err)
	}
}

// TestKilledDeletionOfAnInterruptedRun ends the deletion of what an interrupted run left before
// every change of files. The run can then either be resumed as a whole or not at all, and the next
// run deletes it.
func TestKilledDeletionOfAnInterruptedRun(t *testing.T) {
	rng := testseed.Rand(t)
	for n, done := 0, false; !done; n++ {
		dir, ssd, gen := inAModelDir(t)
		where := killAt(rng, n, func() {
			kept, err := complete(dir)
			if errs := append(removeGenerations(dir, kept), err); errors.Join(errs...) != nil {
				t.Fatal(errs)
			}
		})
		done = where == ""
		resume, err := Interrupted(dir)
		if err != nil {
			t.Errorf("killed before %s: %v", where, err)
		}
		whole := !disk.Gone(filepath.Join(gen, DenseName(1))) && len(entries(t, ssd)) == 1
		if resume != nil && !whole {
			t.Errorf("killed before %s: a part of an interrupted run can be taken over", where)
		}
		if have := numbers(t, dir); have != "1:1 2:2*" {
			t.Errorf("killed before %s: there are %s", where, have)
		}
		w, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		if left := w.Leftovers(); len(left) > 0 || !disk.Gone(filepath.Join(gen, DenseName(1))) || len(entries(t, ssd)) != 0 {
			t.Errorf("killed before %s: left over: %v; on SSD %v", where, left, entries(t, ssd))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if done && n < 5 {
			t.Errorf("a deletion changes files %d times", n)
		}
	}
}

// TestKilledCommitOfAResumedRun ends the commit of a resumed run before every change of files.
// There is then either the model and nothing to resume, or the interrupted run as it was.
func TestKilledCommitOfAResumedRun(t *testing.T) {
	rng := testseed.Rand(t)
	for n, done := 0, false; !done; n++ {
		dir, _, gen := inAModelDir(t)
		w, err := Continue(dir, func([]byte) (bool, error) { return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		where := killAt(rng, n, func() {
			if err := commit(w, &Manifest{Dense: DenseName(1), Epoch: 1}, 3, 2); err != nil {
				t.Fatal(err)
			}
		})
		done = where == ""
		died(t, w)
		committed := number(t, dir) == 3
		if resume, err := Interrupted(dir); err != nil || (resume == nil) != committed || done && !committed {
			t.Errorf("killed before %s: the model is %d, and %s can be taken over, %v", where, number(t, dir), resume, err)
		}
		w, err = Continue(dir, func([]byte) (bool, error) { return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		if left := w.Leftovers(); len(left) > 0 {
			t.Errorf("killed before %s: left over: %v", where, left)
		}
		if committed != (w.Resume() == nil) || committed && !disk.Gone(filepath.Join(gen, resumeName)) {
			t.Errorf("killed before %s: taken over %v", where, w.Resume() != nil)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if done && n < 8 {
			t.Errorf("a commit changes files %d times", n)
		}
	}
}
