package trainer

import (
	"fmt"

	gpucuda "aibox/gpu/cuda"
	"aibox/gpu/profiled"
	"aibox/trainer/engine/cuda"
	"aibox/trainer/forecast"
)

// openPlatform opens the devices that the job asks for. It is called before anything else.
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
	list, err := forecast.DevicesOf(r.opts.platform, r.job)
	if err != nil {
		return err
	}
	for i, d := range list {
		words := []any{"device", d.Number, "name", d.Name, "memory_bytes", d.Total, "free_bytes", d.Free}
		if i > 0 {
			words = append(words, "link_to_first", r.opts.platform.Link(list[0].Number, d.Number).String())
		}
		r.log.Info("the network is computed on a device", words...)
		if cuda.Crowded(d.Free, d.Total) {
			r.log.Warn("other programs, such as another job, use the device (nvidia-smi names them): it may run out of memory, and this job is slower than it would be alone",
				"device", d.Number, "free_bytes", d.Free, "memory_bytes", d.Total)
		}
	}
	return nil
}
