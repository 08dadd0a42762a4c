package start

import (
	"errors"
	"fmt"
	"path/filepath"

	"aibox/configs"
	"aibox/internal/humanize"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
)

// Explain adds to failure, if a file is damaged that the run's table has from the model with which the
// run began, where that file is and what to do: the run's own directory, which failure names, is deleted with
// the run, and every other one that starts from that model would end like this.
func (m *Model) Explain(failure error) error {
	var damaged *sparsetable.CorruptionError
	from := m.Previous
	if from == nil || !errors.As(failure, &damaged) || errors.As(failure, new(*modeldir.LostError)) {
		return failure
	}
	for _, dir := range from.TableDirs() {
		file := filepath.Join(dir, filepath.Base(damaged.File))
		if !modeldir.Exists(file) {
			continue
		}
		name := modeldir.JoinName(from.Dir, from.Number())
		what := fmt.Sprintf("the file belongs to the model %s, where it is %s", name, file)
		advice := fmt.Sprintf("restore that directory from a copy, or go on from another model: `aibox generations %s` lists those that are kept", humanize.ShellWord(from.Dir))
		if m.Job.Output.Remote != "" && m.Job.Training.WarmStart == configs.WarmStartLatest {
			advice = fmt.Sprintf("move %s away, so that the next run takes the model from output.remote; where it is not there, go back to another one with `aibox rollback`", from.Dir)
		}
		return fmt.Errorf("%w; %s, and every run that starts from it ends like this one: see `aibox table verify %s`, and %s", failure, what, humanize.ShellWord(name), advice)
	}
	return failure
}
