package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"aibox/internal/errkind"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/runstate"
)

// A scheduler repeats the command of a night if its process was killed after the commit of the
// night's model but before it exited. If the model from which that one was made no longer exists,
// as with output.keep_generations: 1, or has lost its table, the night cannot be trained again, and
// need not be.

// errMade says that the published model is that of the job, so there is nothing to train.
var errMade = errors.New("the model of the job is there already")

// alreadyMade handles gone, the error which says that the job's model cannot be trained again. If
// the published model is the one that the job would make, it returns errMade. Otherwise it returns
// gone with the differences, or with what that model has lost.
func (r *run) alreadyMade(ctx context.Context, gone error) error {
	dir := r.job.Output.ModelDir
	m, err := modeldir.Open(dir)
	if err != nil {
		return gone
	}
	defer func() { _ = m.Close() }() // it was only read
	differences, err := runstate.DifferencesFrom(m, r.job, r.data.Files)
	if err != nil {
		return errors.Join(gone, err)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%w; the model that is published is not that of this job and these data (they differ in %s)", gone, strings.Join(differences, "; "))
	}
	if err := m.CheckFiles(ctx, r.log); err != nil {
		return errkind.As(errkind.IO, fmt.Errorf("%w; the model that is published is that of this job and these data, but cannot be used either: %w", gone, err))
	}
	// A summary that cannot be read says less, and is no reason to fail.
	if data, err := os.ReadFile(report.Paths(r.job)["summary"]); err == nil {
		_ = json.Unmarshal(data, &r.summary)
	}
	r.summary.Already, r.summary.Generation = modeldir.JoinName(dir, m.Number()), m.Number()
	r.summary.ModelDir = dir
	r.forgetFailures()
	if err := r.identify(); err != nil { // for what is left of its snapshots
		return err
	}
	r.log.Info("the model of this night exists already, and the model that it was made from is gone: nothing is trained", "model", r.summary.Already, "night", m.OfNight(), "saved_at", m.SavedAt)
	return errMade
}
