package trainer

import (
	"fmt"
	"io"

	"aibox/gpu"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/flow"
	"aibox/trainer/jobparts"
)

// makeEngine makes the engine, which starts from the state of the run.
func (r *run) makeEngine() error {
	job := r.job
	c := engine.Config{
		Network: r.model.Network(), Precision: r.Precision, Layout: r.Layout, Rows: r.Rows, Schedule: r.Schedule, Seed: job.Seed,
		Day: r.table.day, ShowDecay: float32(job.SparseTable.ShowDecay), MinOccurrences: job.SparseTable.Admission.MinOccurrences,
	}
	if job.Engine.Kind != "cuda" {
		e, err := cpu.New(c, &r.state.Engine)
		if err != nil {
			return err
		}
		r.engine = e
		return e.Import()
	}
	e, err := cuda.New(c, &r.state.Engine, cuda.Options{
		Platform: r.opts.platform, Devices: job.Engine.Devices, RowsOnDevice: job.Engine.Embeddings == "device",
	})
	if err != nil {
		return fmt.Errorf("engine.devices: %w", err)
	}
	r.engine = e
	r.opts.Status.Computes(e)
	if err := e.Import(); err != nil {
		return err
	}
	limit, err := e.RowLimit(job.Training.BatchSize)
	if limit != nil {
		r.table.passLimit.Devices = limit.Rows
	}
	return err
}

// stages returns the stages that training and evaluation share.
func (r *run) stages() flow.Stages {
	return flow.Stages{
		Table: r.table.Table, Limit: &r.table.passLimit, Engine: r.engine, Announces: jobparts.Announces(r.job),
		Queues: flow.QueuesOf(r.job), Bytes: &r.table.passBytes, Space: r.snapshots.giveSpace, Ranges: r.ranges(), Log: r.log,
	}
}

// ranges returns the Ranger that tells a profiler of the devices what the run does.
func (r *run) ranges() gpu.Ranger { return gpu.RangerOf(r.opts.platform) }

// closeEngine releases the devices of the engine, if it has any.
func (r *run) closeEngine() {
	r.opts.Status.Computes(nil)
	if c, ok := r.engine.(io.Closer); ok {
		if err := c.Close(); err != nil {
			r.log.Warn("closing the engine", "error", err)
		}
	}
}
