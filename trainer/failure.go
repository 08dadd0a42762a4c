package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"aibox/gpu"
	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/reader/source"
	"aibox/sparsetable"
	"aibox/trainer/arriving"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// ResumableError is the error of a run that resumes from a snapshot when its job is started again.
type ResumableError struct {
	Err  error
	From report.Resumption // Time is the time of the failure
}

func (e *ResumableError) Error() string {
	return fmt.Sprintf("%v; %s", e.Err, e.Advice())
}

// Advice says what the user can do.
func (e *ResumableError) Advice() string {
	var worse *worseError
	if errors.As(e.Err, &worse) {
		return "what was trained is kept: with that setting, the same job commits it without training again"
	}
	condition, otherwise := "", "with --fresh"
	var input *source.Error
	if errors.As(e.Err, &input) && (input.Kind == source.ErrChanged || input.Kind == source.ErrNotFound) {
		condition, otherwise = "when that file is what it was, with its size and modification time, ", "otherwise"
	}
	return fmt.Sprintf("%sthe same command resumes from the snapshot after step %d (epoch %d); %s it starts over", condition, e.From.Step, e.From.Epoch, otherwise)
}

// Unwrap returns what ended the run.
func (e *ResumableError) Unwrap() error { return e.Err }

// resumable returns failure as a *ResumableError if another process can resume this run from a
// snapshot. That is not so if the job or its data are at fault, or if files are damaged: the next
// process would fail in the same way. A model that is worse than none is resumable, because the
// same job with training.accept_diverged commits it.
func (r *run) resumable(ctx context.Context, failure error) error {
	if r.snapshots.saved == nil || r.models.writer == nil || !r.models.writer.CanResume() || modeldir.Damaged(failure) {
		return failure
	}
	if errors.Is(failure, arriving.ErrDamaged) {
		r.models.writer.Suspend() // its record tells the next process what not to trust
		return failure
	}
	var device *gpu.Error
	if errors.As(failure, &device) || errors.Is(failure, sparsetable.ErrMemory) || errors.Is(failure, sparsetable.ErrBudget) {
		// The same job may succeed with other devices, libraries or more free memory, or with a
		// larger budget, which may differ between the two runs.
		return &ResumableError{failure, r.snapshots.saved.Record.Place()}
	}
	switch errkind.Of(ctx, failure) {
	case errkind.Interrupted, errkind.IO, errkind.Locked, errkind.Internal:
	case errkind.Diverged:
		var worse *worseError
		if !errors.As(failure, &worse) {
			return failure
		}
	default:
		return failure
	}
	return &ResumableError{failure, r.snapshots.saved.Record.Place()}
}

// Names of the reports of a run that made no model. They are beside the reports of the committed
// model, which stay as they are. The next run that makes a model removes them.
const (
	failedSummaryName    = "summary-failed.json"
	failedQuarantineName = "quarantine-failed.jsonl"
)

// reportFailure writes the summary of a run that made no model, with how far it came, and keeps its
// bad rows. It creates the model directory for that if necessary, unless the job file is at fault
// and may name the wrong directory. It writes nothing where the job would read it as data.
func (r *run) reportFailure(ctx context.Context, failure error, status report.View) error {
	s := &r.summary
	r.describe()
	s.Steps = r.state.Engine.Step
	kind := errkind.Of(ctx, failure)
	s.Failure = &report.Failure{
		Kind: kind.String(), Message: failure.Error(), ExitCode: kind.ExitCode(),
		Phase: status.Phase, Epoch: status.Epoch, Time: time.Now().UTC().Truncate(time.Second),
	}
	var again *ResumableError
	if errors.As(failure, &again) {
		s.Failure.Resume = &again.From
	}
	dir := r.job.Output.ModelDir
	path := filepath.Join(dir, failedSummaryName)
	s.Files = map[string]string{"summary": path}
	if r.models.writer == nil { // the run failed before it had a generation
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && kind == errkind.Job {
			return nil
		}
		var overwrite *source.OverwriteError
		if errors.As(failure, &overwrite) && r.data.Sources.RefuseOverwrite(ctx, Inputs(r.job), []string{path}) != nil {
			return nil
		}
		data, err := s.Encode()
		if err != nil {
			return err
		}
		return modeldir.WriteReport(dir, failedSummaryName, data)
	}
	r.forgetFailures()
	if again != nil {
		r.models.writer.Suspend()
	} else if kept, err := r.models.writer.KeepReport(report.QuarantineName, failedQuarantineName); err == nil && kept != "" {
		s.Files["quarantine"] = kept
		r.log.Info("bad rows of this run", "file", kept)
	}
	// The run's files are deleted first: if the disk is full, that makes room.
	if err := r.models.writer.Discard(); err != nil {
		r.log.Warn("the files of this run could not be deleted; the next run tries again", "error", err)
	}
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return disk.WriteFile(path, data)
}

// forgetFailures removes the reports that earlier failed runs left in the model directory.
func (r *run) forgetFailures() {
	for _, name := range []string{failedSummaryName, failedQuarantineName} {
		_ = os.Remove(filepath.Join(r.job.Output.ModelDir, name)) // usually there is none
	}
}
