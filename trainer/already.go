package trainer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"aibox/configs"
	"aibox/reader/source"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// A scheduler repeats the command of a night whose process was killed after it had committed the model
// of the night, and before it ended. If the model from which that was made is not there any more, as
// with output.keep_generations: 1, the night cannot be trained again, nor need it be.

// errMade says that the published model is that of the job, so that there is nothing to train.
var errMade = errors.New("the model of the job is there already")

// alreadyMade returns errMade if the published model is the one that the job would make, as which gone says
// that it cannot be trained again; otherwise it returns gone with the differences.
func (r *run) alreadyMade(gone error) error {
	dir := r.job.Output.ModelDir
	m, err := modeldir.Open(dir)
	if err != nil {
		return gone
	}
	defer func() { _ = m.Close() }() // it was only read
	differences, err := r.differencesFrom(m)
	if err != nil {
		return errors.Join(gone, err)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%w; the model that is published is not that of this job and these data (they differ in %s)", gone, strings.Join(differences, "; "))
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
	r.log.Info("the model of this night is there already, and the one from which it was made is not any more: nothing is trained", "model", r.summary.Already, "night", m.OfNight(), "saved_at", m.SavedAt)
	return errMade
}

// differencesFrom says in what the run differs from the one that made a model.
func (r *run) differencesFrom(m *modeldir.Model) ([]string, error) {
	if now, before := r.job.Night(), m.OfNight(); now != before {
		return []string{fmt.Sprintf("the night, which is %s there", before)}, nil
	}
	earlier, err := configs.Parse("the job of the model", m.Job, configs.LoadOptions{Saved: true})
	if err != nil { // a key was renamed or removed since
		return []string{err.Error()}, nil
	}
	reasons, err := r.jobDifferences(earlier)
	if err == nil && len(reasons) == 0 && m.Inputs != r.inputsHash() {
		reasons = append(reasons, "the files of data.train or data.eval")
	}
	return reasons, err
}

// inputsHash identifies the files that the run reads: their names, lengths and times.
func (r *run) inputsHash() string {
	data, err := json.Marshal([2][]source.File{filesOf(r.data.train), filesOf(r.data.eval)})
	if err != nil {
		panic(err) // plain fields
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
