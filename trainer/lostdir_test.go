package trainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/internal/errkind"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/report"
)

// waysToLose are the ways in which a directory of a table is lost. Each gets an entry of
// sparse_table.dirs and the directory of the table in it.
var waysToLose = map[string]func(t *testing.T, entry, table string) error{
	"not mounted": func(_ *testing.T, entry, _ string) error { return takeAway(entry) },
	"in fstab":    func(t *testing.T, entry, table string) error { return unmounts(t, entry, table) },
	"new disk":    func(_ *testing.T, _, table string) error { return takeAway(table) },
	"emptied":     func(_ *testing.T, _, table string) error { return removeIn(table, "*") },
	"files gone":  func(_ *testing.T, _, table string) error { return removeIn(table, "*.bucket", "*.delta", "catalog") },
	"unreadable":  func(t *testing.T, _, table string) error { return fails(t, table, syscall.EIO, syscall.EIO) },
	"dead":        func(t *testing.T, entry, _ string) error { return fails(t, entry, syscall.EIO, syscall.EIO) },
	"dead ext4":   func(t *testing.T, entry, _ string) error { return fails(t, entry, syscall.EIO, syscall.EROFS) },
}

// fails makes all operations in a directory fail from now on, those that read and those that change
// something.
func fails(t *testing.T, dir string, reads, changes error) error {
	diskfault.Inject(func(operation, path string) error {
		switch {
		case disk.Innermost([]string{dir}, path) < 0:
			return nil
		case operation == "open" || strings.HasPrefix(operation, "read"):
			return reads
		}
		return changes
	})
	t.Cleanup(func() { diskfault.Inject(nil) })
	return nil
}

// unmounts removes the table from an entry, which from now on is a mount point listed in /etc/fstab
// without a file system.
func unmounts(t *testing.T, entry, table string) error {
	notMounted(t, entry)
	return takeAway(table)
}

func removeIn(dir string, patterns ...string) error {
	for _, p := range patterns {
		names, err := filepath.Glob(filepath.Join(dir, p))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := takeAway(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeAway removes a file or a directory atomically, also while a run writes files in it. If it
// were removed file by file, the run would fill it again.
func takeAway(path string) error {
	to, err := os.MkdirTemp(testjobs.Dir, "lost")
	if err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(to, "it")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.RemoveAll(to) // what is written into it still goes with testjobs.Dir
	return nil
}

// lose loses directory i of the table of the newest generation of a job that has a table, in one of
// waysToLose.
func lose(t *testing.T, j *configs.Job, i int, way string) {
	t.Helper()
	loseIn(t, j.SparseTable.Dirs[i], "*-gen-*", way)
}

// loseIn loses the newest directory of a table in an entry of sparse_table.dirs whose name matches
// a pattern.
func loseIn(t *testing.T, entry, pattern, way string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(entry, pattern))
	if err != nil || len(tables) == 0 {
		t.Fatalf("%s has no table: %v", entry, err)
	}
	if err := waysToLose[way](t, entry, slices.Max(tables)); err != nil {
		t.Fatal(err)
	}
}

// killedAfterUpload trains j and kills it after pass at, once the earlier snapshots are in
// snapshots.remote.
func killedAfterUpload(t *testing.T, j *configs.Job, at int) {
	t.Helper()
	c := newCrash(t, j)
	opts := quiet
	passes := 0
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait()
		if r.snapshots.uploads != nil && !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		if passes++; passes < at {
			return nil
		}
		c.now()
		return errCrash
	}
	if _, err := Train(t.Context(), j, opts); !errors.Is(err, errCrash) {
		t.Fatalf("there were not so many passes: %v", err)
	}
	c.happened()
}

// trainAloud trains a job that must succeed, and returns what it logged.
func trainAloud(t *testing.T, j *configs.Job) (*report.Summary, string) {
	t.Helper()
	var log bytes.Buffer
	opts := quiet
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s, err := Train(t.Context(), j, opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	return s, log.String()
}

func onTwoDisks(set ...string) []string {
	return onSSD(append([]string{"sparse_table.dirs=[MODEL-a, MODEL-b]", "sparse_table.memory_bytes=5MiB", "model.embedding_dim=32", "optimizer.rows.kind=adam", "pipeline.batches_per_pass=4", "training.epochs=2", everyPass}, set...)...)
}

// checkRecovery checks that a run went back to a remote snapshot, or to the beginning, after 13
// passes, the last of which has no snapshot, and that the log says so.
func checkRecovery(t *testing.T, s *report.Summary, said string, remote bool) {
	t.Helper()
	if len(s.Recoveries) != 1 {
		t.Fatalf("recoveries %+v", s.Recoveries)
	}
	rec := s.Recoveries[0]
	if rec.From == "" || (rec.Step > 0) != remote || (rec.Again == 0) != remote || (len(s.Resumed) > 0) != remote {
		t.Errorf("%+v, went on at %+v", rec, s.Resumed)
	}
	for _, text := range []string{"files of the table of an interrupted run are lost", "examples_trained_again="} {
		if !strings.Contains(said, text) {
			t.Errorf("it does not say %q:\n%s", text, said)
		}
	}
	if remote && strings.Contains(said, "bytes_on_this_machine=0 ") {
		t.Errorf("all files were fetched, though one directory is left:\n%s", said)
	}
}

// checkLeftOut checks that a run stopped using an entry of sparse_table.dirs if its disk failed
// permanently or is not mounted.
func checkLeftOut(t *testing.T, s *report.Summary, entry, way string) {
	t.Helper()
	out := strings.HasPrefix(way, "dead") || way == "in fstab"
	if left := s.LeftOut; (len(left) > 0) != out || len(left) > 1 || len(left) == 1 && left[0].Dir != entry {
		t.Errorf("left out %+v, lost %s: %s", left, entry, way)
	}
}

// TestTableLosesDirectory loses each directory of the table of an interrupted run, in each way,
// with a snapshot in a remote directory and without. The next process goes back to it, or to
// the start, says so, and makes the model and the reports of a run that was left alone.
func TestTableLosesDirectory(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	whole := job(t, "fm", onTwoDisks()...)
	killedAfterUpload(t, whole, 14)
	for _, dir := range whole.SparseTable.Dirs {
		if files, _ := filepath.Glob(dir + "/*/*.bucket"); len(files) == 0 {
			t.Fatalf("%s has no rows, so that nothing is lost with it", dir)
		}
	}
	want := outcome(t, left, train(t, left))
	for way := range waysToLose {
		for i := range 2 {
			for _, remote := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/remote=%v", way, i, remote), func(t *testing.T) {
					set := onTwoDisks()
					if remote {
						set = append(set, "snapshots.remote="+t.TempDir())
					}
					j := job(t, "fm", set...)
					killedAfterUpload(t, j, 14)
					lose(t, j, i, way)
					s, said := trainAloud(t, j)
					got := outcome(t, j, s)
					got.compare(t, &want)
					checkRecovery(t, s, said, remote)
					checkLeftOut(t, s, j.SparseTable.Dirs[i], way)
					checkOneSnapshot(t, j)
				})
			}
		}
	}
}

// TestReadOnlyDirectory checks an interrupted run whose table has a directory on a file system that
// has become read-only. The run does not wait for a person: it goes back as if the directory were
// lost, although it uses what can be read there, and the next run leaves the entry out as well.
func TestReadOnlyDirectory(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	for i, set := range [][]string{{"snapshots.remote=" + t.TempDir()}, nil} {
		j := job(t, "fm", onTwoDisks(set...)...)
		killedAfterUpload(t, j, 14)
		if err := fails(t, j.SparseTable.Dirs[i], nil, syscall.EROFS); err != nil {
			t.Fatal(err)
		}
		s, said := trainAloud(t, j)
		got := outcome(t, j, s)
		got.compare(t, &want)
		checkRecovery(t, s, said, set != nil)
		if len(s.LeftOut) != 1 || s.LeftOut[0].Dir != j.SparseTable.Dirs[i] {
			t.Errorf("left out %+v", s.LeftOut)
		}
		diskfault.Inject(nil)
	}
}

// TestDiskFailsBeforeTable checks that a disk that fails between the beginning of a job and the
// creation of its table, before which all data may have to be read, does not end the job.
func TestDiskFailsBeforeTable(t *testing.T) {
	for i, fault := range []error{syscall.EIO, syscall.EROFS} {
		j := job(t, "fm", onTwoDisks("training.epochs=1")...)
		if err := os.MkdirAll(j.SparseTable.Dirs[i], 0o755); err != nil {
			t.Fatal(err)
		}
		var dead atomic.Bool
		diskfault.Inject(func(_, path string) error {
			if strings.HasPrefix(path, j.Output.ModelDir+"/gen-") {
				dead.Store(true)
			}
			if dead.Load() && disk.Innermost(j.SparseTable.Dirs[i:i+1], path) == 0 {
				return fault
			}
			return nil
		})
		t.Cleanup(func() { diskfault.Inject(nil) })
		if s := train(t, j); len(s.LeftOut) != 1 || s.LeftOut[0].Dir != j.SparseTable.Dirs[i] || len(s.Recoveries) > 0 {
			t.Errorf("left out %+v, recoveries %+v", s.LeftOut, s.Recoveries)
		}
	}
}

// TestFailedDiskWithoutDirectory checks that a failed disk is left out also if the entry on it does
// not exist yet, such as one with a date in its path.
func TestFailedDiskWithoutDirectory(t *testing.T) {
	for i, fault := range []error{syscall.EIO, syscall.EROFS} {
		j := job(t, "fm", onTwoDisks("training.epochs=1")...)
		broken := j.SparseTable.Dirs[i]
		if err := os.MkdirAll(broken, 0o755); err != nil {
			t.Fatal(err)
		}
		j.SparseTable.Dirs[i] = filepath.Join(broken, "2026-11-21", "table")
		if err := fails(t, broken, fault, fault); err != nil {
			t.Fatal(err)
		}
		if s := train(t, j); len(s.LeftOut) != 1 || s.LeftOut[0].Dir != j.SparseTable.Dirs[i] || len(s.Recoveries) > 0 {
			t.Errorf("left out %+v, recoveries %+v", s.LeftOut, s.Recoveries)
		}
	}
}

// TestLostDirectoryCannotBeMade checks that if an entry of sparse_table.dirs can no longer be used,
// the job ends with an error that says so, and can be resumed when the entry is left out.
func TestLostDirectoryCannotBeMade(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	j := job(t, "fm", onTwoDisks("snapshots.remote="+t.TempDir())...)
	killedAfterUpload(t, j, 14)
	lose(t, j, 0, "not mounted")
	if err := os.WriteFile(j.SparseTable.Dirs[0], nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Train(t.Context(), j, quiet); errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "take its directory out of sparse_table.dirs") {
		t.Errorf("with a file in the place of a directory: %v", err)
	}
	j.SparseTable.Dirs = j.SparseTable.Dirs[1:]
	s, said := trainAloud(t, j)
	got := outcome(t, j, s)
	got.compare(t, &want)
	checkRecovery(t, s, said, true)
}

// TestModelLosesDirectory loses each directory of the table of the published model, in each
// way. The next night restores that model from output.remote, says so, and makes the model
// that it would have made otherwise. Nights after it need not restore anything.
func TestModelLosesDirectory(t *testing.T) {
	set := onTwoDisks("sparse_table.dirs=[AT/a, AT/b]", "snapshots.every=none")
	home := newMachine(t, "", set...)
	home.night("2026-11-21")
	want, after := home.night("2026-11-22").Digest, home.night("2026-11-23").Digest
	for way := range waysToLose {
		for i, entry := range []string{"a", "b"} {
			t.Run(fmt.Sprintf("%s/%d", way, i), func(t *testing.T) {
				remote := "file://" + t.TempDir() + "/remote"
				m := newMachine(t, remote, set...)
				m.night("2026-11-21")
				m.lose(t, entry, way)
				s := m.night("2026-11-22")
				if s.Digest != want || len(s.Recoveries) != 1 || s.Recoveries[0].From != s.WarmStart {
					t.Errorf("digest %s, want %s; %+v, started from %s", s.Digest, want, s.Recoveries, s.WarmStart)
				}
				if a := s.Arrival; a == nil || a.Remote != remote || a.FetchedBytes == 0 || a.WholeSeconds == 0 {
					t.Errorf("what was fetched: %+v", a)
				}
				m.said("the table of the model to start from has lost files")
				m.said("the model to start from is restored")
				checkLeftOut(t, s, filepath.Join(m.at, entry), way)
				s = m.night("2026-11-23")
				if s.Digest != after || len(s.Recoveries) != 0 {
					t.Errorf("the night after: digest %s, want %s; %+v", s.Digest, after, s.Recoveries)
				}
				checkLeftOut(t, s, filepath.Join(m.at, entry), way)
			})
		}
	}
}

// lose loses a directory of the table of the machine's newest model.
func (m *machine) lose(t *testing.T, entry, way string) {
	t.Helper()
	j := &configs.Job{}
	j.SparseTable.Dirs = []string{filepath.Join(m.at, entry)}
	lose(t, j, 0, way)
}

// TestModelLosesDirectoryForGood checks that a model whose table has lost a directory, and that is
// not in output.remote, is replaced by the newest model there, which is logged. Without
// output.remote the night ends with an error that says what to do, and deletes nothing.
func TestModelLosesDirectoryForGood(t *testing.T) {
	set := onTwoDisks("sparse_table.dirs=[AT/a, AT/b]", "snapshots.every=none", "training.epochs=1")
	home := newMachine(t, "", set...)
	home.night("2026-11-21")
	want := home.night("2026-11-23").Digest
	m := newMachine(t, "file://"+t.TempDir()+"/remote", set...)
	m.night("2026-11-21")
	m.night("2026-11-22", `output.remote=""`)
	m.lose(t, "a", "new disk")
	before, _ := filepath.Glob(filepath.Join(m.at, "*", "*"))
	_, err := m.train("2026-11-23", `output.remote=""`)
	if errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "mount the missing file system") || !strings.Contains(err.Error(), "training.warm_start") {
		t.Errorf("without output.remote: %v", err)
	}
	if after, _ := filepath.Glob(filepath.Join(m.at, "*", "*")); !slices.Equal(slices.DeleteFunc(after, func(n string) bool { return filepath.Base(n) == failedSummaryName }), before) {
		t.Errorf("there were %v, are %v", before, after)
	}
	if got := m.night("2026-11-23"); got.Digest != want {
		t.Errorf("digest %s, want %s", got.Digest, want)
	}
	m.said("what was trained since is not in it")
}
