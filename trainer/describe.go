package trainer

import (
	"aibox/configs"
	"aibox/internal/process"
	"aibox/pipeline"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
	"aibox/trainer/report"
)

// describe fills in the fields of the summary that are known at any time of a run.
func (r *run) describe() {
	s := &r.summary
	s.Name, s.Version, s.Seed = r.job.Name, r.opts.Version, r.job.Seed
	s.ModelKind, s.ModelDir, s.WarmStart = r.job.Model.Kind, r.job.Output.ModelDir, r.job.Training.WarmStart
	if s.WarmStart == configs.WarmStartLatest {
		s.WarmStart = ""
		if r.models.Start != nil {
			s.WarmStart = r.models.Start.Name
		}
	}
	s.Precision = r.job.Engine.Precision
	s.InitialBias, s.Warnings = r.state.InitialBias, r.state.Warnings
	s.Examples, s.Epochs = r.state.Examples, r.state.Epochs
	s.TrainRows, s.EvalRows, s.ValidationRows = r.state.TrainRows, r.state.EvalRows, r.state.ValidationRows
	s.Snapshots, s.Resumed, s.Recoveries = r.snapshots.summary, r.resumed, r.recoveries
	s.LeftOut = r.leftOut
	s.LostSamples = report.LostSamples(r.recoveries)
	s.Arrival = r.arriving.Report()
	r.snapshots.uploads.Report(&s.Snapshots)
	if n := len(s.Epochs); n > 0 {
		last := &s.Epochs[n-1]
		s.Limiting = pipeline.Limiting(last.StageStats())
		s.Bound = bound(r.job, last.StageStats(), last.Busy(), len(r.data.Train.Files))
	}
	s.ElapsedSeconds = r.elapsed()
	training := 0.0 // seconds
	for _, e := range s.Epochs {
		training += e.Seconds
	}
	if training > 0 {
		s.ExamplesPerSec = float64(s.Examples) / training
	}
	s.PeakMemoryBytes = process.MemoryOrZero().Peak
	s.Devices = report.DevicesOf(r.engine)
}

// summarize fills in the fields of the summary that are known just before the model is committed.
func (r *run) summarize(m *modeldir.Manifest, table sparsetable.Stats, expired int64) {
	s := &r.summary
	r.describe()
	s.Generation = r.models.writer.Number()
	s.Digest, s.KeptEpoch, s.Steps = m.Digest, m.Epoch, m.Step
	s.Table, s.ExpiredRows = table, expired
	s.Memory = r.memory(table)
	for _, p := range r.model.Params() {
		s.DenseParameters += int64(len(p.Data))
	}
	e := r.state.OfEpoch(m.Epoch)
	s.Eval, s.Validation = e.Eval, e.Validation
	s.Warnings = warnings(r)
	s.Files = report.Paths(r.job)
}
