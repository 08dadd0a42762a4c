package trainer

import (
	"context"
	"log/slog"

	"aibox/configs"
	"aibox/gpu"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/dataset"
	"aibox/trainer/engine"
	"aibox/trainer/jobparts"
	"aibox/trainer/report"
)

// Bench is what trains in a new run of a job, without the pipeline around it and without
// files: programs that measure single steps use it. Compute threads are those of package
// kernel.
type Bench struct {
	Engine engine.Engine
	Table  sparsetable.Table // an empty one in memory, whatever the job says
	Reader reader.Options    // for the first epoch of data.train
}

// NewBench makes a Bench for a job. Statistics of the data are not gathered, so a column that needs
// them has to be given them in the job. Devices are those of platform; nil: those of the machine.
func NewBench(ctx context.Context, job *configs.Job, platform gpu.Platform, log *slog.Logger) (*Bench, error) {
	r := &run{task: task{job: job, log: log, opts: Options{Status: new(report.Status), platform: platform}}}
	var err error
	if r.Parts, err = jobparts.Make(job); err != nil {
		return nil, err
	}
	if err := r.openPlatform(); err != nil {
		return nil, err
	}
	r.table.day = 1
	r.data = dataset.New(job, r.opts.Status, log)
	r.data.SetSchema(r.Schema)
	if err := r.makeModel(); err != nil {
		return nil, err
	}
	if err := r.initBias(ctx); err != nil {
		return nil, err
	}
	b := new(Bench)
	if b.Table, err = sparsetable.Open(ctx, sparsetable.Options{Layout: r.Layout, Init: r.table.init, Logger: log}); err != nil {
		return nil, err
	}
	if err := r.makeEngine(); err != nil {
		b.Table.Close()
		return nil, err
	}
	b.Engine = r.engine
	b.Reader = r.data.TrainOptions(0, 0)
	return b, nil
}
