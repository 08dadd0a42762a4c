package start

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/humanize"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
)

// Explain adds to failure, if a damaged or missing file of the run's table comes from the model
// that the run began with, where that file is and what to do. The run's own directory, which
// failure may name, is deleted with the run, and every other run that starts from that model would
// fail in the same way.
func (m *Model) Explain(ctx context.Context, failure error) error {
	from := m.Previous
	if from == nil || errors.As(failure, new(*modeldir.LostError)) {
		return failure
	}
	what := m.faultOf(ctx, failure)
	if what == "" {
		return failure
	}
	name := modeldir.JoinName(from.Dir, from.Number())
	advice := fmt.Sprintf("restore that directory from a copy, or go on from another model: `aibox generations %s` lists those that are kept", humanize.ShellWord(from.Dir))
	if m.Job.Output.Remote != "" && m.Job.Training.WarmStart == configs.WarmStartLatest {
		advice = fmt.Sprintf("move %s away, so that the next run takes the model from output.remote; if it is not there, go back to another one with `aibox rollback`", from.Dir)
	}
	return fmt.Errorf("%w; the file belongs to the model %s%s, and every run that starts from it fails like this one: check it with `aibox table verify %s`, and %s", failure, name, what, humanize.ShellWord(name), advice)
}

// faultOf says where, in the model that the run began with, the file is that failure is about; ""
// if it is about another one.
func (m *Model) faultOf(ctx context.Context, failure error) string {
	from := m.Previous
	if errors.Is(failure, sparsetable.ErrFiles) && errors.Is(from.CheckFiles(ctx, m.Log), sparsetable.ErrFiles) {
		return " and is missing there"
	}
	var damaged *sparsetable.CorruptionError
	if !errors.As(failure, &damaged) {
		return ""
	}
	for _, dir := range from.TableDirs() {
		file := filepath.Join(dir, filepath.Base(damaged.File))
		there := strings.HasPrefix(damaged.File, dir+"/") // the file was read there
		if there {
			file = damaged.File
		}
		switch {
		case disk.Exists(file):
			return ", where it is " + file
		case there:
			return " and is missing there"
		}
	}
	return ""
}
