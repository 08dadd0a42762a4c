package trainer

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"aibox/configs"
	"aibox/internal/errkind"
	"aibox/reader/source"
	"aibox/trainer/jobparts"
	"aibox/trainer/jobsource"
	"aibox/trainer/model"
)

// Check reports everything in a job that training would refuse before it opens
// any of the job's files. Package configs has reported the faults that belong to a
// line of the job file; Check reports the others, among them a network that no machine could hold, and outputs
// that would overwrite local files that the job reads.
func Check(ctx context.Context, job *configs.Job) error {
	p, err := jobparts.Make(job)
	if err == nil {
		_, err = model.Outline(p.Spec)
	}
	sources := jobsource.New(job, slog.New(slog.DiscardHandler))
	local := slices.DeleteFunc(Inputs(job), func(uri string) bool { return !source.IsLocal(uri) })
	err = errors.Join(err, sources.RefuseOverwrite(ctx, local, jobOutputs(job)), refuseOtherModels(job), sources.Close())
	return errkind.As(errkind.Job, err) // all options of a training job come from its file
}
