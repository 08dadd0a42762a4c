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

// Bench has the parts that train in a new run of a job, without the pipeline around them and
// without files, for programs that measure single steps. Its compute threads are those of package
// kernel.
type Bench struct {
	Engine engine.Engine
	Table  sparsetable.Table // an empty one in memory, whatever the job says
	Reader reader.Options    // for the first epoch of data.train
}

// NewBench makes a Bench for a job. It gathers no statistics of the data, so the job must have
// those that a column needs. If platform is nil, the devices are those of the machine.
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
	if err := r.lookAtFirst(ctx); err != nil {
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
