package trainer

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/reader/source"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
	"aibox/trainer/model"
	"aibox/trainer/program"
)

// Check reports everything in a job that training would refuse before it opens any of the job's
// files. Package configs has reported the faults that belong to a line of the job file. Check
// reports the others, among them a network that no machine could hold, and outputs that would
// overwrite local files that the job reads.
func Check(ctx context.Context, job *configs.Job) error {
	p, err := jobparts.Make(job)
	if err == nil {
		var m *model.Model
		if m, err = model.Outline(p.Spec); err == nil {
			err = checkSizes(job, m.Network())
		}
	}
	sources := jobsource.New(job, slog.New(slog.DiscardHandler))
	local := slices.DeleteFunc(Inputs(job), func(uri string) bool { return !source.IsLocal(uri) })
	err = errors.Join(err, sources.RefuseOverwrite(ctx, local, jobOutputs(job)), refuseOtherModels(job), sources.Close())
	return errkind.As(errkind.Job, err) // all options of a training job come from its file
}

// checkSizes fails if the devices of a job cannot compute its network, or mini-batches of its size,
// however much memory they have.
func checkSizes(job *configs.Job, net *program.Network) error {
	if job.Engine.Kind != "cuda" {
		return nil
	}
	const most = "devices compute arrays of at most 2^31-1 numbers"
	if !cuda.NumbersParameters(net) {
		return errkind.Errorf(errkind.Job, "model: %s, and the network has more parameters: make its layers narrower", most)
	}
	if n := cuda.MostExamples(net, len(job.Engine.Devices)); job.Training.BatchSize > n {
		return errkind.Errorf(errkind.Job, "training.batch_size: %s, and a layer of the network has more for %d examples: make training.batch_size smaller (%d fits), or divide the mini-batch among more engine.devices", most, job.Training.BatchSize, n)
	}
	return nil
}
