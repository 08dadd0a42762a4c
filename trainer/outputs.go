package trainer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"aibox/configs"
	"aibox/internal/disk"
	"aibox/internal/errkind"
	"aibox/reader/source"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
	"aibox/trainer/transfer"
)

// checkOutputs refuses a job that would overwrite what it reads (its data, the model that it starts
// from, or its own job file), or that would change the reports of another model.
func (r *run) checkOutputs(ctx context.Context) error {
	return errors.Join(r.data.Sources.RefuseOverwrite(ctx, Inputs(r.job), jobOutputs(r.job)), refuseOtherModels(r.job))
}

// refuseOtherModels fails if reports would be written into the directory of another model, as when
// output.model_dir was changed in a job file that "config show" had printed. The files there are
// links to the reports of that model, which belong to it.
func refuseOtherModels(job *configs.Job) error {
	paths := report.Paths(job)
	var errs []error
	for _, name := range []string{"metrics", "tensorboard"} {
		dir := filepath.Dir(paths[name])
		if paths[name] == "" || disk.SameDir(dir, job.Output.ModelDir) {
			continue
		}
		if _, err := modeldir.Generations(dir); !errors.Is(err, modeldir.ErrNoModel) {
			errs = append(errs, errkind.Errorf(errkind.Usage, "output.%s: %s is in the model directory %s, which is not output.model_dir (%s): it would be written into the reports of another model; leave output.%[1]s out, or name another place", name, paths[name], dir, job.Output.ModelDir))
		}
	}
	return errors.Join(errs...)
}

// checkFirstRemote fails if the model of a first night, which restores none, could not be
// published.
func (r *run) checkFirstRemote(ctx context.Context) error {
	uri := r.job.Output.Remote
	if uri == "" || r.models.Chain.Exists() { // on later nights, the remote directory may be unavailable
		return nil
	}
	if err := transfer.CheckPlace(ctx, r.data.Sources, uri); err != nil {
		return fmt.Errorf("output.remote: %w", err)
	}
	return nil
}

// missing adds to unlisted, the error of listing the data, everything else that a first night needs
// and that does not exist, so that an operator does not learn of only one missing place per night.
// If only one thing is missing, the part that needs it reports it.
func (r *run) missing(ctx context.Context, unlisted error) error {
	if unlisted != nil && !errors.Is(unlisted, source.ErrNotFound) || r.models.Chain.Exists() {
		return unlisted
	}
	if left, err := modeldir.Interrupted(r.job.Output.ModelDir); left != nil || err != nil {
		return unlisted
	}
	all := []error{unlisted}
	if r.fetchesSnapshots() {
		_, err := transfer.OpenPresent(r.data.Sources, r.job.Snapshots.Remote, 0, "", r.log)
		if errors.Is(err, transfer.ErrAbsent) {
			all = append(all, fmt.Errorf("snapshots.remote: %w", err))
		} else if unlisted == nil {
			return nil // there may be a snapshot, and then nothing else is needed
		}
	}
	if uri := r.job.Output.Remote; uri != "" {
		err := transfer.CheckPlace(ctx, r.data.Sources, uri)
		if err == nil && r.job.Training.WarmStart == configs.WarmStartLatest {
			_, err = transfer.OpenPresent(r.data.Sources, uri, 0, "", r.log)
		}
		if errors.Is(err, transfer.ErrAbsent) {
			all = append(all, fmt.Errorf("output.remote: %w", err))
		}
	}
	if name := r.job.Training.WarmStart; name != "" && name != configs.WarmStartLatest {
		if dir, _ := modeldir.SplitName(name); disk.Gone(dir) {
			all = append(all, fmt.Errorf("training.warm_start: %s: %w", dir, transfer.ErrAbsent))
		}
	}
	if unlisted == nil && len(all) < 3 {
		return nil
	}
	return errors.Join(all...)
}

// Inputs returns the URIs and files that a training job reads, to which nothing may be written.
func Inputs(job *configs.Job) []string {
	inputs := append(append([]string{}, job.Data.Train...), job.Data.Eval...)
	// A model directory other than the job's own must not change. In its own directory a job may
	// start from an earlier model, because it does not overwrite that.
	if start := job.Training.WarmStart; start != "" && start != configs.WarmStartLatest {
		if dir, generation := modeldir.SplitName(start); generation == 0 || !disk.SameDir(dir, job.Output.ModelDir) {
			inputs = append(inputs, filepath.Join(dir, modeldir.ManifestName))
		}
	}
	if file := job.File(); file != "" {
		inputs = append(inputs, file)
	}
	return inputs
}

// jobOutputs returns the files that a job writes. Where the names of the files in a directory are
// known only during the run, one file stands for all of them.
func jobOutputs(job *configs.Job) []string {
	paths := report.Paths(job)
	outputs := []string{
		filepath.Join(job.Output.ModelDir, modeldir.ManifestName), paths["summary"], paths["quarantine"],
		filepath.Join(job.Output.ModelDir, failedSummaryName), filepath.Join(job.Output.ModelDir, failedQuarantineName), paths["metrics"],
	}
	if dir := paths["tensorboard"]; dir != "" {
		outputs = append(outputs, filepath.Join(dir, "events"))
	}
	for _, dir := range job.SparseTable.Dirs {
		outputs = append(outputs, filepath.Join(dir, "table"))
	}
	for _, remote := range [][2]string{{job.Output.Remote, "generations"}, {job.Snapshots.Remote, "snapshots"}} { // the two may be the same directory
		if remote[0] != "" {
			outputs = append(outputs, strings.TrimRight(remote[0], "/")+"/"+remote[1])
		}
	}
	return outputs
}
