package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tablesIn returns the numbers of directories of tables in a and b.
func tablesIn(t *testing.T) (a, b int) {
	t.Helper()
	count := func(dir string) int {
		found, err := filepath.Glob(dir + "/*-gen-*")
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	return count("a"), count("b")
}

// wantTables fails unless a and b have n directories of tables each.
func wantTables(t *testing.T, n int) {
	t.Helper()
	if a, b := tablesIn(t); a != n || b != n {
		t.Errorf("%d and %d tables, want %d", a, b, n)
	}
}

// evalOf runs an evaluation of a model.
func evalOf(model string) outcome {
	return aibox("eval", "--model-dir", model, "--data", "eval.tsv")
}

// TestOrphans checks that what a deleted model directory leaves on SSDs is listed, and freed on
// demand, and that tables that belong to a model are not.
func TestOrphans(t *testing.T) {
	inSmallJob(t)
	ok(t, append([]string{"train", "job.yaml"}, onSSDs...)...)
	ok(t, append([]string{"train", "job.yaml", "--set", "output.model_dir=other"}, onSSDs[:len(onSSDs)-2]...)...)
	if out := ok(t, "table", "orphans", "a", "b"); !strings.Contains(out, "every table belongs") {
		t.Error(out)
	}
	if err := os.RemoveAll("other"); err != nil {
		t.Fatal(err)
	}
	out := ok(t, "table", "orphans", "a", "b")
	if !strings.Contains(out, "2 table directories") || !strings.Contains(out, "other") || !strings.Contains(out, "model directory is gone") || !strings.Contains(out, "--free") {
		t.Error(out)
	}
	wantTables(t, 2)
	// The model may have been moved or copied to a place that nobody knows of, so the
	// tables must be named by themselves; the message says how.
	out = ok(t, "table", "orphans", "a", "b", "--free")
	wantTables(t, 2)
	_, command, found := strings.Cut(out, "aibox table orphans --free ")
	if !found {
		t.Fatal(out)
	}
	named := strings.Fields(command)
	if out := ok(t, "table", "orphans", named[0], named[1]); !strings.Contains(out, "2 table directories") {
		t.Error(out)
	}
	ok(t, "table", "orphans", named[0], named[1], "--free")
	wantTables(t, 1)
	needed, err := filepath.Glob("a/*-gen-*")
	if err != nil {
		t.Fatal(err)
	}
	if left := ok(t, "table", "orphans", "--free", needed[0]); !strings.Contains(left, "every table belongs") {
		t.Error(left)
	}
	if o := evalOf("ssd"); o.code != exitDone {
		t.Error(o.stderr)
	}
	for _, args := range [][]string{{"table", "orphans"}, {"table", "orphans", "nowhere"}, {"table", "orphans", "a", "--model", "nowhere"}} {
		if o := aibox(args...); o.code == exitDone || o.code == exitInternal {
			t.Errorf("%v: exit %d", args, o.code)
		}
	}
}

// TestMovedModel checks that a model directory that was moved, by a rename or behind a link, keeps
// its table and can be trained.
func TestMovedModel(t *testing.T) {
	inSmallJob(t)
	train := append([]string{"train", "job.yaml"}, onSSDs...)
	ok(t, train...)
	if err := os.Rename("ssd", "moved"); err != nil {
		t.Fatal(err)
	}
	ok(t, "table", "orphans", "a", "b", "--free") // not used since, but beside where it was
	wantTables(t, 1)
	if o := evalOf("moved"); o.code != exitDone || strings.Contains(o.stderr, "copy") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if err := os.Mkdir("far", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("moved", "far/ssd"); err != nil {
		t.Fatal(err)
	}
	if o := evalOf("far/ssd"); o.code != exitDone {
		t.Error(o.stderr)
	}
	ok(t, train...) // a new model where it was
	wantTables(t, 2)
	if o := evalOf("far/ssd"); o.code != exitDone {
		t.Error(o.stderr)
	}
	ok(t, "table", "orphans", "a", "b", "--free")
	wantTables(t, 2)
	if err := os.Symlink("far/ssd", "link"); err != nil {
		t.Fatal(err)
	}
	if o := evalOf("link"); o.code != exitDone || strings.Contains(o.stderr, "copy") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	ok(t, append(train, "--set", "output.model_dir=link", "--set", "output.keep_generations=1")...)
	wantTables(t, 2)
	if o := evalOf("far/ssd"); o.code != exitDone {
		t.Error(o.stderr)
	}
}

// TestMovedModelWithoutUse checks that a model that was moved to an unknown place, and was not used
// since, keeps its table, even if its directory now has another model, or is empty like a mount
// point without its file system.
func TestMovedModelWithoutUse(t *testing.T) {
	inSmallJob(t)
	train := append([]string{"train", "job.yaml"}, onSSDs...)
	ok(t, train...)
	if err := errors.Join(os.Mkdir("far", 0o777), os.Rename("ssd", "far/ssd")); err != nil {
		t.Fatal(err)
	}
	for _, again := range []func(){
		func() {
			if err := os.Mkdir("ssd", 0o777); err != nil {
				t.Fatal(err)
			}
		},
		func() { ok(t, train...) },
	} {
		again()
		if out := ok(t, "table", "orphans", "a", "b", "--free"); !strings.Contains(out, "does not have its model any more") || !strings.Contains(out, "aibox table orphans --free ") {
			t.Error(out)
		}
	}
	wantTables(t, 2)
	if o := evalOf("far/ssd"); o.code != exitDone {
		t.Error(o.stderr)
	}
}

// TestCopiedModel checks that a copy of a model directory is distinguished from the original. The
// table stays as long as the copy is known; otherwise the error says what happened.
func TestCopiedModel(t *testing.T) {
	inSmallJob(t)
	train := append([]string{"train", "job.yaml", "--set", "output.keep_generations=1"}, onSSDs...)
	ok(t, train...)
	want := ok(t, "inspect", "--digest", "ssd")
	copyTo := func(from, to string) {
		t.Helper()
		if out, err := exec.Command("cp", "-r", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Mkdir("far", 0o777); err != nil {
		t.Fatal(err)
	}
	copyTo("ssd", "backup")     // beside it
	copyTo("ssd", "far/unused") // nobody knows of
	ok(t, train...)             // deletes the generation that both have
	wantTables(t, 2)
	if have := ok(t, "inspect", "--digest", "backup"); have != want {
		t.Errorf("the copy has digest %s, want %s", have, want)
	}
	ok(t, "table", "orphans", "a", "b", "--free")
	wantTables(t, 2)
	if o := evalOf("far/unused"); o.code != exitDone || !strings.Contains(o.stderr, "copy") || !strings.Contains(o.stderr, "cp -r") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if err := os.RemoveAll("backup"); err != nil { // far/unused is known by now
		t.Fatal(err)
	}
	ok(t, "table", "orphans", "a", "b", "--free")
	wantTables(t, 2)
	// One that was never used keeps its table when the original is deleted.
	copyTo("ssd", "far/late")
	if err := os.Rename("ssd", "far/ssd"); err != nil { // for aibox it is gone
		t.Fatal(err)
	}
	ok(t, "table", "orphans", "a", "b", "--free")
	if o := evalOf("far/late"); o.code != exitDone {
		t.Error(o.stderr)
	}
	for _, dir := range []string{"far/late", "far/ssd"} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, train...)
	// A copy that trains leaves the original's table alone.
	copyTo("ssd", "second")
	ok(t, append(train, "--set", "output.model_dir=second")...)
	if o := evalOf("ssd"); o.code != exitDone || strings.Contains(o.stderr, "copy") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	// One that nobody has told aibox about loses its table.
	copyTo("ssd", "far/lost")
	ok(t, train...)
	if o := evalOf("far/lost"); o.code != exitIO || !strings.Contains(o.stderr, "If the model is a copy") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	// The advice makes a copy whole.
	copyTo("ssd", "far/whole of it")
	o := evalOf("far/whole of it")
	_, command, found := strings.Cut(o.stderr, `to_copy_the_table="`)
	command, _, _ = strings.Cut(command, `"`)
	if !found {
		t.Fatal(o.stderr)
	}
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	want = ok(t, "inspect", "--digest", "ssd")
	if err := os.RemoveAll("a"); err != nil {
		t.Fatal(err)
	}
	if o := aibox("inspect", "--digest", "far/whole of it"); o.stdout != want || strings.Contains(o.stderr, "copy") {
		t.Errorf("exit %d, %s: %s", o.code, o.stdout, o.stderr)
	}
}

// killOnDirs starts a job that trains a table in a and b, waits until started reports that the job
// has got that far, and kills it.
func killOnDirs(t *testing.T, b *binary, snapshots string, started func() bool) (kill func()) {
	t.Helper()
	args := append([]string{"train", "job.yaml", "--set", "sparse_table.dirs=[a, b]", "--set", "snapshots.every=" + snapshots}, untilKilled...)
	cmd := exec.Command(b.path, append(args, "--set", "output.model_dir=killed")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for deadline := time.Now().Add(tooLong); !started(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			kill()
			t.Fatal("it does not begin")
		}
	}
	return kill
}

// TestKilledTables checks that what a killed run without a snapshot has left on SSDs is deleted by
// the next run on them, whatever its model directory, while the table of a run that can be resumed
// is kept for it.
func TestKilledTables(t *testing.T) {
	b := &binary{t, buildBinary(t)}
	t.Chdir(t.TempDir())
	write(t, "job.yaml", killJob)
	ok(t, "generate", "job.yaml")
	kill := killOnDirs(t, b, "none", func() bool {
		_, n := tablesIn(t)
		return n == 1
	})
	next := []string{"train", "job.yaml", "--set", "sparse_table.dirs=[a, b]", "--set", "name=next", "--set", "output.keep_generations=1"}
	if o := b.run(next...); o.code != exitDone {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if out := ok(t, "table", "orphans", "a", "b", "--free"); !strings.Contains(out, "every table belongs") {
		t.Error(out)
	}
	wantTables(t, 2)
	kill()
	if out := ok(t, "table", "orphans", "job.yaml", "--set", "sparse_table.dirs=[a, b]"); !strings.Contains(out, "killed") || !strings.Contains(out, "ended without a model") {
		t.Error(out)
	}
	if o := b.run(next...); o.code != exitDone || !strings.Contains(o.stderr, "was killed is deleted") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	wantTables(t, 1)
}

// TestTablesOfInterruptedRuns checks that the table of a killed run that can be resumed is kept
// until a user deletes what the run has left.
func TestTablesOfInterruptedRuns(t *testing.T) {
	b := &binary{t, buildBinary(t)}
	t.Chdir(t.TempDir())
	write(t, "job.yaml", killJob)
	ok(t, "generate", "job.yaml")
	killOnDirs(t, b, "1 pass", func() bool {
		found, err := filepath.Glob("killed/gen-*/RESUME.json")
		return err == nil && len(found) == 1
	})()
	next := []string{"train", "job.yaml", "--set", "sparse_table.dirs=[a, b]", "--set", "name=next", "--set", "output.keep_generations=1"}
	if o := b.run(next...); o.code != exitDone || strings.Contains(o.stderr, "was killed is deleted") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	if out := ok(t, "table", "orphans", "a", "b", "--free"); !strings.Contains(out, "every table belongs") {
		t.Error(out)
	}
	wantTables(t, 2)
	if out := ok(t, "generations", "killed"); !strings.Contains(out, "resumable") {
		t.Error(out)
	}
	if err := os.RemoveAll("killed/gen-000001"); err != nil {
		t.Fatal(err)
	}
	out := ok(t, "table", "orphans", "a", "b", "--free") // it might be a model's that was moved
	wantTables(t, 2)
	_, command, found := strings.Cut(out, "aibox table orphans --free ")
	if !found || !strings.Contains(out, "killed") {
		t.Fatal(out)
	}
	ok(t, append([]string{"table", "orphans", "--free"}, strings.Fields(command)...)...)
	wantTables(t, 1)
}
