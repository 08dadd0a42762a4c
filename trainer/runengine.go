package trainer

import (
	"fmt"
	"io"

	"aibox/gpu"
	gpucuda "aibox/gpu/cuda"
	"aibox/gpu/profiled"
	"aibox/internal/humanize"
	"aibox/trainer/engine"
	"aibox/trainer/engine/cpu"
	"aibox/trainer/engine/cuda"
)

// makeEngine makes the engine that goes on from the state of the run.
func (r *run) makeEngine() error {
	job := r.job
	c := engine.Config{
		Network: r.model.Network(), Precision: r.precision, Layout: r.layout, Rows: r.rows, Schedule: r.schedule, Seed: job.Seed,
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
	r.opts.Status.computes(e)
	if err := e.Import(); err != nil {
		return err
	}
	fit, err := e.FitRows(job.Training.BatchSize)
	r.table.passLimit.devices.Store(fit)
	return err
}

// openPlatform looks for the devices that the job asks for, before anything else is done.
func (r *run) openPlatform() (err error) {
	job := &r.job.Engine
	if job.Kind != "cuda" {
		return nil
	}
	if r.opts.platform == nil {
		if r.opts.platform, err = gpucuda.Open(); err != nil {
			return fmt.Errorf("engine.kind: cuda: %w", err)
		}
	}
	if _, measured := r.opts.platform.(*profiled.Platform); r.opts.KernelTimes != nil && !measured {
		r.opts.platform = profiled.New(r.opts.platform, r.opts.KernelTimes)
	}
	infos := r.opts.platform.Devices()
	for i, d := range job.Devices {
		if d >= len(infos) {
			return &OptionError{fmt.Errorf("engine.devices: there is no device %d: %s has %s", d, r.opts.platform.Name(), humanize.Count(int64(len(infos)), "device"))}
		}
		words := []any{"device", d, "name", infos[d].Name, "memory_bytes", infos[d].MemoryBytes}
		if i > 0 {
			words = append(words, "link_to_first", r.opts.platform.Link(job.Devices[0], d).String())
		}
		r.log.Info("the network is computed on a device", words...)
	}
	return nil
}

// ranges tell a profiler of the devices what the run does.
func (r *run) ranges() gpu.Ranger { return gpu.RangerOf(r.opts.platform) }

// closeEngine gives back the devices that the engine has, if it has some.
func (r *run) closeEngine() {
	r.opts.Status.computes(nil)
	if c, ok := r.engine.(io.Closer); ok {
		if err := c.Close(); err != nil {
			r.log.Warn("closing the engine", "error", err)
		}
	}
}
