package trainer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// While a run has the table open, the disk of one of the table's directories may fail or vanish. So
// may that of the model directory, if it has the table; but unless it answers again soon, there is
// nothing to resume from. The run then ends as if its process had been killed, and keeps what
// another process can resume from. Train begins again in the same process, and does what a restart
// would do: training resumes from the last snapshot if that is still intact; otherwise the table is
// recovered (recovery.go, package refill).
//
// A disk may also have bad blocks and otherwise work. Then the last snapshot seems to be intact,
// until the same file is read again. When that fails, too, the file is set aside
// (sparsetable.SetAside), and the table is recovered as one that has lost a file.

// diskFailures are the disk failures after which Train has begun again.
type diskFailures struct {
	entries []string // of sparse_table.dirs that have failed; "" stands for an unknown one
	more    bool     // one of them has failed a second time
	files   []string // that could not be read
}

// unreadable returns those of the files named by lost.Unreadable that could not be read before
// either, and remembers all of them.
func (f *diskFailures) unreadable(lost *modeldir.LostError) (again []string) {
	for _, path := range lost.Unreadable() {
		// Each generation has a directory of its own; in a new one, a file of that name is a link.
		name := filepath.Join(filepath.Dir(filepath.Dir(path)), filepath.Base(path))
		if slices.Contains(f.files, name) {
			again = append(again, path)
		} else {
			f.files = append(f.files, name)
		}
	}
	return again
}

// setAside moves unreadable files of tables out of the way.
func (r *run) setAside(files []string) error {
	dirs := modeldir.AllTableDirs(r.job.Output.ModelDir)
	if r.models.Previous != nil {
		dirs = append(dirs, r.models.Previous.TableDirs()...)
	}
	for _, file := range files {
		if err := sparsetable.SetAside(file, dirs); err != nil {
			return err
		}
		r.log.Error("a file of the table cannot be read, even on a second attempt: the disk has bad blocks, and more of them may follow. Replace the disk. The file is set aside, and its rows are recovered as if it were lost", "file", file)
	}
	return nil
}

// replaceDisk is advice about a disk that fails.
const replaceDisk = "replace the disk, or take its directory out of sparse_table.dirs"

// beginAgain reports whether Train begins again after a failure, and remembers the failure. Train
// begins again after the first failure of each directory, and once more in all. So a disk that
// fails for good, or again and again, ends the job.
func (f *diskFailures) beginAgain(lost *modeldir.LostError) bool {
	entries := []string{""}
	if len(lost.Lost) > 0 {
		entries = nil
	}
	for _, d := range lost.Lost {
		entries = append(entries, d.Entry())
	}
	known := len(f.entries)
	for _, e := range entries {
		if !slices.Contains(f.entries, e) {
			f.entries = append(f.entries, e)
		}
	}
	if len(f.entries) > known {
		return true
	}
	again := !f.more
	f.more = true
	return again
}

// tableFailed checks whether failure was caused by a failed or vanished directory of the run's
// table, or of the table of the model that it started from. If so, it sets r.failed and returns
// failure as a *modeldir.LostError.
func (r *run) tableFailed(ctx context.Context, failure error) error {
	w := r.models.writer
	if failure == nil || ctx.Err() != nil || w == nil {
		return failure
	}
	if kind := errkind.Of(ctx, failure); kind != errkind.IO && kind != errkind.Internal {
		return failure
	}
	if errors.As(failure, &r.failed) {
		return failure
	}
	r.snapshots.wait()
	dirs := slices.Clone(r.table.dirs)
	if len(dirs) == 0 {
		dirs = []string{w.TableDir()}
	}
	if r.models.Previous != nil {
		dirs = append(dirs, r.models.Previous.TableDirs()...)
	}
	if err := r.checkTable(failure); err != nil {
		failure = err
	} else {
		failure = modeldir.TableFailed(dirs, failure)
	}
	if errors.As(failure, &r.failed) && len(r.table.dirs) == 0 {
		if err := w.Answers(); err != nil {
			r.failed = nil
			return errkind.As(errkind.IO, fmt.Errorf("the disk of output.model_dir %s, which also holds the table, has failed and cannot be accessed (%w); mount it again or replace it, and start the job again: %w", r.job.Output.ModelDir, err, failure))
		}
	}
	return failure
}

// checkTable fails with a *modeldir.LostError if directories of the run's table, or files of its
// snapshots, are lost. cause is the error that led to the check, or nil.
func (r *run) checkTable(cause error) error {
	var ids []uint64
	if r.final != nil {
		ids = []uint64{r.final.Manifest.TableSnapshot}
	} else if saved := r.snapshots.saved; saved != nil {
		ids = saved.Record.TableSnapshots()
	}
	err := modeldir.CheckOpenTable(r.table.dirs, r.table.Table, ids...)
	var damaged *sparsetable.CorruptionError
	if err == nil && len(r.table.dirs) > 0 && errors.As(cause, &damaged) && !disk.Exists(damaged.File) {
		err = &modeldir.LostError{Dirs: r.table.dirs} // a file of the catalog, for example
	}
	var lost *modeldir.LostError
	if !errors.As(err, &lost) {
		return nil
	}
	lost.Err = errors.Join(lost.Err, cause)
	return lost
}

// suspended reports whether Train begins again after failure. If so, it logs that, and keeps what
// the next run can resume from. Otherwise it returns failure, perhaps with more advice.
func (r *run) suspended(failure error) (bool, error) {
	if r.failed == nil {
		return false, failure
	}
	unreadable := r.opts.failures.unreadable(r.failed)
	if !r.opts.failures.beginAgain(r.failed) {
		return false, fmt.Errorf("%w; %s", failure, replaceDisk)
	}
	if err := r.setAside(unreadable); err != nil {
		return false, fmt.Errorf("%w, and the file cannot be set aside either, so nothing on that disk can be used: %w; %s", failure, err, replaceDisk)
	}
	cause := failure
	r.again = &loss{err: r.failed, at: report.Resumption{Epoch: r.state.Epoch, Step: r.state.Engine.Step, Examples: r.state.Examples}}
	var saved *ResumableError
	if errors.As(failure, &saved) {
		cause = saved.Err // failure has advice for people
		r.models.writer.Suspend()
		r.opts.Fresh = false
	}
	r.log.Error("a directory of the table has failed; the job starts again and continues from what is left", "error", cause)
	return true, failure
}
