package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/diskfault"
	"aibox/internal/errkind"
	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/tabletest"
	"aibox/trainer/internal/testjobs"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// momentsToLose are moments at which a directory of a table is lost while it is trained.
var momentsToLose = []string{"between two passes", "in a pass", "in a snapshot", "before the commit"}

// trainThrough trains a job that loses directory i of its table in one of waysToLose, at one of
// momentsToLose. The job must succeed. trainThrough returns what the job logged. What was trained
// until pass at is in snapshots.remote, if the job has one.
func trainThrough(t *testing.T, j *configs.Job, at, i int, way, moment string) (*report.Summary, string) {
	t.Helper()
	var log syncBuffer
	opts := quiet
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var once sync.Once
	losing, lost := atomic.Bool{}, false // the next snapshot loses the directory
	now := func() {
		once.Do(func() {
			lost = true
			lose(t, j, i, way)
		})
	}
	passes := 0
	var first *run
	opts.afterPass = func(ctx context.Context, r *run) error {
		r.snapshots.wait() // so that there is one of each pass before, and it shows a loss after the next one
		if passes++; passes > at {
			return nil
		}
		if r.snapshots.uploads != nil && !r.snapshots.uploads.Finish(ctx) {
			t.Error("a snapshot was not uploaded")
		}
		if passes < at {
			return nil
		}
		first = r
		switch moment {
		case "between two passes":
			now()
		case "in a pass":
			var next sync.Once
			diskfault.Inject(func(string, string) error {
				next.Do(func() {
					diskfault.Inject(nil)
					now()
				})
				return nil
			})
		case "in a snapshot":
			losing.Store(true)
		}
		return nil
	}
	opts.atStage = func(stage string) {
		if stage == stageTableSaved && losing.Load() || stage == stageCommitted && moment == "before the commit" && first != nil && first.final != nil {
			now()
		}
	}
	s, err := Train(t.Context(), j, opts)
	diskfault.Inject(nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if !lost {
		t.Fatal("nothing was lost")
	}
	return s, log.String()
}

// TestDirectoryLostWhileTraining loses a directory of the table of a run, in each way, at different
// moments, with a snapshot in a remote directory and without. The run goes back to it, or to the
// start, in the same process, says so, and makes the model and the reports of a run that was left
// alone.
func TestDirectoryLostWhileTraining(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	for w, way := range slices.Sorted(maps.Keys(waysToLose)) {
		for m, moment := range momentsToLose {
			i, remote := (w+m)/2%2, (w%2 == 0) == (m < 2)
			if (w+m)%2 > 0 || testing.Short() && m != w%len(momentsToLose) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%d/remote=%v", way, moment, i, remote), func(t *testing.T) {
				set := onTwoDisks()
				if remote {
					set = append(set, "snapshots.remote="+t.TempDir())
				}
				j := job(t, "fm", set...)
				s, said := trainThrough(t, j, 14, i, way, moment)
				got := outcome(t, j, s)
				got.compare(t, &want)
				checkOneSnapshot(t, j)
				if len(s.Recoveries) != 1 {
					t.Fatalf("recoveries %+v\n%s", s.Recoveries, said)
				}
				rec := s.Recoveries[0]
				if rec.Mode != configs.RecoveryFull || (rec.Step > 0) != remote || rec.Again == 0 || (len(s.Resumed) > 0) != remote || (rec.From == j.Snapshots.Remote) != remote {
					t.Errorf("%+v, went on at %+v", rec, s.Resumed)
				}
				if most := int64(testjobs.TrainRows + 5*256); moment != "before the commit" && rec.Examples+rec.Again > most {
					t.Errorf("%d examples were trained before the loss was found, want at most %d", rec.Examples+rec.Again, most)
				}
				if strings.Count(said, "the job starts again") != 1 {
					t.Errorf("it does not say once that it begins again:\n%s", said)
				}
				if strings.Contains(said, sparsetable.ErrPinned.Error()) {
					t.Errorf("the table of the run that failed was not closed:\n%s", said)
				}
				if left := entriesOf(t, filepath.Join(j.Output.ModelDir, "*failed*")); left != "" {
					t.Errorf("there are reports of a failure: %s", left)
				}
			})
		}
	}
}

// TestPartialRecoveryWhileTraining checks that with recovery.mode partial only the rows of the lost
// directory are reset, in the same process, and that the report counts what was lost with them.
func TestPartialRecoveryWhileTraining(t *testing.T) {
	for i, moment := range momentsToLose[:3] {
		t.Run(moment, func(t *testing.T) {
			j := partialJob(t, "snapshots.remote="+t.TempDir(), "snapshots.remote_every=1000 snapshots", "recovery.max_lost_samples=1")
			s, said := trainThrough(t, j, 6, i%2, "unreadable", moment)
			if len(s.Recoveries) != 1 || len(s.Resumed) != 1 {
				t.Fatalf("went on at %+v, recoveries %+v\n%s", s.Resumed, s.Recoveries, said)
			}
			rec := s.Recoveries[0]
			if rec.Mode != configs.RecoveryPartial || rec.RowsLost == 0 || rec.RowsRestored == 0 || rec.LostSamples <= 0 || rec.LostSamples != s.LostSamples || rec.Again != 0 {
				t.Errorf("%+v\n%s", rec, said)
			}
			m := load(t, j.Output.ModelDir)
			if m.Saved.PartialRecovery.LostSamples != rec.LostSamples {
				t.Errorf("the model says %+v, want %v", m.Saved.PartialRecovery, rec.LostSamples)
			}
		})
	}
}

// TestOperationsOfADirectoryFail fails operations on the disk of a directory of the table, one or
// all from one on. The run goes on by itself, without the entry of sparse_table.dirs if that fails
// for good. In the end there are the model and the reports of a run without faults.
func TestOperationsOfADirectoryFail(t *testing.T) {
	left := job(t, "fm", onTwoDisks("snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	rng := testseed.Rand(t)
	// train trains a job of which operations of directory i fail, of the table that it has first
	// or, where entry is set, of all that are made there.
	train := func(disk *faultyDisk, i int, entry bool) (*configs.Job, *report.Summary, string, error) {
		j := job(t, "fm", onTwoDisks("snapshots.remote="+t.TempDir())...)
		var at atomic.Value // a string
		at.Store(j.SparseTable.Dirs[i] + "/")
		var log syncBuffer
		opts, passes := quiet, 0
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		opts.afterPass = func(_ context.Context, r *run) error {
			if passes++; passes == 2 {
				r.snapshots.wait() // so that there is a snapshot before the faults
				if !entry {
					at.Store(r.table.dirs[i] + "/")
				}
				disk.turn(true)
			}
			return nil
		}
		diskfault.Inject(func(operation, path string) error {
			if !strings.HasPrefix(path+"/", at.Load().(string)) {
				return nil
			}
			return disk.ask(operation, path)
		})
		defer diskfault.Inject(nil)
		s, err := Train(t.Context(), j, opts)
		return j, s, log.String(), err
	}
	whole := faultyFrom(0, false)
	if _, _, _, err := train(whole, 0, false); err != nil {
		t.Fatal(err)
	}
	recovered, leftOut := 0, 0
	for k := range tabletest.Kills(t, 12, 6) {
		n, i := 1+rng.IntN(1+rng.IntN(whole.count)), rng.IntN(2)
		ever, entry := k%3 > 0, k%3 == 2
		j, s, said, err := train(faultyFrom(n, ever), i, entry)
		if err != nil {
			t.Errorf("operation %d of directory %d, ever %v, the entry %v: %v\n%s", n, i, ever, entry, err, said)
		} else {
			recovered, leftOut = recovered+len(s.Recoveries), leftOut+len(s.LeftOut)
		}
		if strings.Contains(said, sparsetable.ErrPinned.Error()) {
			t.Error("the table of the run that failed was not closed")
		}
		s = afterFaults(t, j, s, err)
		got := outcome(t, j, s)
		got.compare(t, &want)
		if t.Failed() {
			t.Fatalf("operation %d of directory %d failed, ever %v, the entry %v: %v\n%s", n, i, ever, entry, err, said)
		}
	}
	t.Logf("%d recoveries, %d entries left out", recovered, leftOut)
}

// TestTableInTheModelDirectoryFails fails an operation on the table of a run that is in the model
// directory, on one on SSD or the final snapshot of one in memory: once, or again and again, while
// the rest of the directory answers, or not. After a fault for a moment the run goes on by itself
// from its last snapshot; otherwise it ends with an error, after as many attempts as with a directory
// of its own, from which the next process goes on.
func TestTableInTheModelDirectoryFails(t *testing.T) {
	for _, c := range []struct {
		name     string
		memory   bool
		moments  int  // the disk is well again when the job has begun again so many times
		rest     bool // from the first fault on, all operations on the model directory fail
		attempts int  // before the job ends; 0: it makes its model
		says     string
	}{
		{"once", false, 1, false, 0, ""},
		{"twice", false, 2, false, 0, ""},
		{"ever", false, 1 << 30, false, 3, "input/output error"},
		{"the model directory", false, 1 << 30, true, 1, "which also holds the table, has failed and cannot be accessed"},
		{"in memory", true, 1, false, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := onTwoDisks("sparse_table.dirs=[]")
			if c.memory {
				set = nil
			}
			left := job(t, "fm", append(slices.Clip(set), "snapshots.every=none")...)
			want := outcome(t, left, train(t, left))
			j := job(t, "fm", append(slices.Clip(set), everyPass)...)
			var log syncBuffer
			opts := quiet
			opts.Logger, opts.Status = slog.New(slog.NewTextHandler(&log, nil)), new(report.Status)
			var on, faulty atomic.Bool
			fault := func(operation, path string) error {
				fails := operation == "read" && strings.HasSuffix(path, ".bucket") // for the sake of training
				if c.memory {
					fails = operation == "create" && strings.Contains(path, "/table/") && opts.Status.View().Phase == report.PhaseSaving
				}
				fails = fails || c.rest && faulty.Load() && strings.HasPrefix(path, j.Output.ModelDir)
				if !on.Load() || !fails || strings.Count(log.String(), "the job starts again") >= c.moments {
					return nil
				}
				faulty.Store(true)
				return syscall.EIO
			}
			opts.tableFS = failingFS{fault: fault}
			passes := 0
			opts.afterPass = func(_ context.Context, r *run) error {
				r.snapshots.wait()
				if passes++; passes == 5 { // there is a snapshot
					on.Store(true)
				}
				return nil
			}
			diskfault.Inject(fault)
			defer diskfault.Inject(nil)
			s, err := Train(t.Context(), j, opts)
			diskfault.Inject(nil)
			said := log.String()
			begun := strings.Count(said, "the job starts again")
			if (err != nil) != (c.attempts > 0) || c.attempts > 0 && begun != c.attempts-1 || c.attempts == 0 && begun != c.moments {
				t.Fatalf("after %d attempts: %v\n%s", begun+1, err, said)
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.says) || !errors.Is(err, syscall.EIO) || errkind.Of(t.Context(), err) != errkind.IO {
					t.Errorf("it ended with %v", err)
				}
				s = train(t, j)
			}
			if len(s.Resumed) == 0 {
				t.Errorf("it started over\n%s", said)
			}
			got := outcome(t, j, s)
			got.compare(t, &want)
			checkOneSnapshot(t, j)
		})
	}
}

// TestModelDirectoryVanishes checks a run whose table is in the model directory, and whose model
// directory vanishes, for example because its file system is unmounted. The job must end with an
// error that says so, and must not begin in the empty place. Once the directory is there again, the
// job can be resumed.
func TestModelDirectoryVanishes(t *testing.T) {
	left := job(t, "fm", onTwoDisks("sparse_table.dirs=[]", "snapshots.every=none")...)
	want := outcome(t, left, train(t, left))
	j := job(t, "fm", onTwoDisks("sparse_table.dirs=[]")...)
	dir := j.Output.ModelDir
	opts, passes := quiet, 0
	opts.afterPass = func(_ context.Context, r *run) error {
		r.snapshots.wait()
		if passes++; passes == 5 {
			return os.Rename(dir, dir+"-away")
		}
		return nil
	}
	_, err := Train(t.Context(), j, opts)
	if err == nil || errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "output.model_dir "+dir+", which also holds the table, has failed and cannot be accessed") {
		t.Errorf("it ended with %v", err)
	}
	if disk.Exists(dir) {
		t.Errorf("there is %s again", entriesOf(t, dir+"/*"))
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	s := train(t, j)
	if len(s.Resumed) != 1 {
		t.Errorf("it went on at %+v", s.Resumed)
	}
	got := outcome(t, j, s)
	got.compare(t, &want)
}

// failingFS makes operations on disk of a table in memory fail.
type failingFS struct {
	sparsetable.OSFS
	fault func(operation, path string) error
}

func (f failingFS) Create(name string) (sparsetable.File, error) {
	if err := f.fault("create", name); err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	return f.OSFS.Create(name)
}

// TestDiskFailuresEnd checks that a job begins again after the first failure of each directory, and
// only one more time.
func TestDiskFailuresEnd(t *testing.T) {
	dirs := []string{"/a/m-gen-000001-12345678", "/b/m-gen-000001-12345678"}
	failure := func(which ...int) *modeldir.LostError {
		e := &modeldir.LostError{Dirs: dirs, Err: syscall.EIO}
		for _, i := range which {
			e.Lost = append(e.Lost, modeldir.LostDir{Dir: dirs[i]})
		}
		return e
	}
	for _, c := range []struct {
		failures [][]int
		again    string
	}{
		{[][]int{{0}, {0}, {0}, {1}, {1}}, "yynyn"},
		{[][]int{{0}, {1}, {0, 1}, {0}}, "yyyn"},
		{[][]int{{0, 1}, {1}, {}, {}}, "yyyn"},
		{[][]int{{}, {}, {}}, "yyn"},
	} {
		var f diskFailures
		again := ""
		for _, which := range c.failures {
			if f.beginAgain(failure(which...)) {
				again += "y"
			} else {
				again += "n"
			}
		}
		if again != c.again {
			t.Errorf("%v: %s, want %s", c.failures, again, c.again)
		}
	}
}

// TestFailuresInTheModelDirectoryEnd checks that a table in the model directory counts as one
// place, even if the job has begun again with another generation.
func TestFailuresInTheModelDirectoryEnd(t *testing.T) {
	var f diskFailures
	for i, want := range []bool{true, true, false} {
		dir := fmt.Sprintf("/m/gen-00000%d/table", i+1)
		if f.beginAgain(&modeldir.LostError{Lost: []modeldir.LostDir{{Dir: dir}}}) != want {
			t.Errorf("after failure %d", i+1)
		}
	}
}

// TestFailuresOfOthersEndTheJob checks that a job does not begin again after an error that does not
// come from one of its table's disks, even if the error is about a file that does not exist.
func TestFailuresOfOthersEndTheJob(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, cause := range []error{
		errDisk, &fs.PathError{Op: "read", Path: elsewhere, Err: syscall.EIO}, &fs.PathError{Op: "open", Path: elsewhere, Err: syscall.ENOENT}, syscall.ENOSPC,
		&modeldir.CorruptionError{File: elsewhere, Reason: "a test"},
	} {
		j := job(t, "fm", onTwoDisks()...)
		opts, passes := quiet, 0
		opts.afterPass = func(_ context.Context, r *run) error {
			if passes++; passes == 3 {
				return fmt.Errorf("%s: %w", elsewhere, cause)
			}
			return nil
		}
		if _, err := Train(t.Context(), j, opts); !errors.Is(err, cause) || passes != 3 || errkind.Of(t.Context(), err) == errkind.Internal {
			t.Errorf("%v: ended after pass %d with %v", cause, passes, err)
		}
	}
}
