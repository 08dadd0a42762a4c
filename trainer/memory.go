package trainer

import (
	"context"

	"aibox/internal/process"
	"aibox/sparsetable"
	"aibox/trainer/forecast"
)

// warnOfMemory warns if the job may need more memory than there is. Linux would kill it without a
// message, perhaps hours later.
func (r *run) warnOfMemory(ctx context.Context) {
	size, err := forecast.Sample(ctx, r.job, r.data.Sources, r.data.Train, r.data.Eval)
	if err != nil {
		return // training reports what is wrong with the data
	}
	m, err := forecast.ForHost(r.job, size)
	if err != nil {
		return
	}
	if excess := m.Excess(r.job, process.MostMemory()); excess != "" {
		r.log.Warn(excess)
	}
}

// memory returns the memory that the run has taken so far.
func (r *run) memory(table sparsetable.Stats) forecast.Memory {
	m := forecast.Memory{Table: table.MemoryBytes, Passes: r.table.passBytes.Most(), Process: process.MemoryOrZero().Peak}
	if r.engine != nil {
		m.Engine = r.engine.MemoryBytes()
		m.Dense = forecast.DenseBytes(r.model, r.state.Engine.Dense)
	}
	m.Reading = forecast.ReadingBytes(r.job, &r.Parts, forecast.DataSize{Read: max(1, r.mostRead())}) // an upper bound, since it is not measured
	m.Priority = r.snapshots.uploads.PriorityBytes()
	m.Runtime = max(0, m.Process-m.Table-m.Passes-m.Priority-m.Engine-m.Dense)
	m.Reading = min(m.Reading, m.Runtime)
	m.Runtime -= m.Reading
	return m
}

// mostRead returns the largest number of rows that one reading of the data has had.
func (r *run) mostRead() int64 {
	return max(r.state.Examples, r.state.TrainRows.Good, r.state.EvalRows.Good)
}
