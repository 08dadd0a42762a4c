package trainer

import (
	"context"
	"path/filepath"

	"aibox/configs"
	"aibox/trainer/modeldir"
)

// checkOutputs refuses a job that would overwrite what it reads: its data, the model
// that it starts from, or its own job file.
func (r *run) checkOutputs(ctx context.Context) error {
	inputs := append(append([]string{}, r.job.Data.Train...), r.job.Data.Eval...)
	if r.job.Training.WarmStart != "" {
		inputs = append(inputs, filepath.Join(r.job.Training.WarmStart, modeldir.ManifestName))
	}
	if file := r.job.File(); file != "" {
		inputs = append(inputs, file)
	}
	return r.data.sources.RefuseOverwrite(ctx, inputs, jobOutputs(r.job))
}

// jobOutputs are the files that a job writes. Where the names of a directory's files
// are known only during the run, one file stands for all of them.
func jobOutputs(job *configs.Job) []string {
	paths := reportPaths(job)
	outputs := []string{
		filepath.Join(job.Output.ModelDir, modeldir.ManifestName), paths["summary"], paths["quarantine"],
		filepath.Join(job.Output.ModelDir, failedQuarantineName), paths["metrics"],
	}
	if dir := paths["tensorboard"]; dir != "" {
		outputs = append(outputs, filepath.Join(dir, "events"))
	}
	for _, dir := range job.SparseTable.Dirs {
		outputs = append(outputs, filepath.Join(dir, "table"))
	}
	return outputs
}
