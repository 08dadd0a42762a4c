package trainer

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"aibox/configs"
	"aibox/reader"
	"aibox/trainer/densefile"
	"aibox/trainer/jobparts"
	"aibox/trainer/metrics"
	"aibox/trainer/model"
	"aibox/trainer/modeldir"
	"aibox/trainer/optim"
	"aibox/trainer/warmstart"
)

// warmStart fills model, optimizers and table from the earlier model. The parts that
// both models have are copied by name: a field, dense feature or tower that was added
// starts with fresh values, one that was removed is dropped. Optimizer state is copied
// if both use the same kind of optimizer; if it cannot be, the log says so.
func (r *run) warmStart(ctx context.Context) error {
	earlier, schema, err := r.earlierJob()
	if err != nil {
		return err
	}
	spec, err := jobparts.ModelSpec(earlier, &schema)
	if err != nil {
		return fmt.Errorf("model of the earlier model directory: %w", err)
	}
	old, err := model.New(spec) // for the names of its columns
	if err != nil {
		return err
	}
	warnChanges(r, earlier)
	warnNetwork(r, earlier)
	if before, now := earlier.Engine.Precision, r.job.Engine.Precision; before != now {
		r.log.Info("warm start: matrix products are computed in another precision", "earlier", before, "now", now)
	}
	t := takeover{run: r, earlier: earlier, old: old, oldSpec: spec}
	if err := t.dense(); err != nil {
		return fmt.Errorf("training.warm_start %s: %w", r.models.previous.Name, err)
	}
	if err := t.rows(ctx); err != nil {
		return fmt.Errorf("training.warm_start %s: %w", r.models.previous.Name, err)
	}
	t.shiftBias()
	r.state.Engine.Step, r.state.Engine.FirstStep = r.models.previous.Step, r.models.previous.Step
	return nil
}

// earlierJob returns the job of the earlier model, and its schema.
func (r *run) earlierJob() (*configs.Job, reader.Schema, error) {
	var schema reader.Schema
	job, err := configs.Parse(filepath.Join(r.models.previous.Dir, "job.yaml"), r.models.previous.Job, configs.LoadOptions{Saved: true})
	if err == nil {
		schema, err = jobparts.Schema(job)
	}
	if err != nil {
		return nil, schema, fmt.Errorf("job file of the earlier model: %w", err)
	}
	return job, schema, nil
}

// takeover moves an earlier model's values into a run.
type takeover struct {
	run     *run
	earlier *configs.Job
	old     *model.Model
	oldSpec model.Spec
}

// dense copies parameters, batch-norm statistics and optimizer state.
func (t *takeover) dense() error {
	r := t.run
	if r.Spec.Kind != t.oldSpec.Kind {
		r.log.Warn("warm start: the earlier model is of another kind; only parameters with the same name, inputs and size are copied",
			"earlier", t.oldSpec.Kind, "now", r.Spec.Kind)
	}
	if r.job.Optimizer.Dense.Kind != t.earlier.Optimizer.Dense.Kind {
		r.log.Warn("warm start: the earlier model had another dense optimizer; the optimizer's state starts fresh",
			"earlier", t.earlier.Optimizer.Dense.Kind, "now", r.job.Optimizer.Dense.Kind)
	}
	saved := make(map[string]modeldir.Tensor)
	for _, s := range r.models.previous.Dense {
		saved[s.Name] = s
	}
	state := make(map[string][]optim.StateTensor) // of each parameter
	for _, s := range r.state.Engine.Dense.State() {
		p := s.Name[:strings.LastIndexByte(s.Name, '/')]
		state[p] = append(state[p], s)
	}
	var fresh []string
	for i, p := range r.model.Params() {
		began := slices.Repeat([]int64{r.models.previous.Step}, len(p.Data)) // the default, for values whose state is not copied
		s, ok := saved[densefile.ParamPrefix+p.Name]
		m, err := warmstart.MatchAxes(p.Name, s.Shape, t.old.Axes(p.Name), p.Shape, r.model.Axes(p.Name))
		if !ok || err != nil && r.Spec.Kind != t.oldSpec.Kind { // as dcn and dcn_v2 have cross weights of their own shapes
			r.state.Engine.Dense.Begin(i, began)
			fresh = append(fresh, p.Name)
			continue
		}
		if err != nil {
			return err
		}
		warmstart.Copy(m, p.Data, s.Data)
		warmstart.Copy(m, r.state.Engine.Dense.Average(p), s.Data)
		if last, ok := saved[densefile.OptimizerPrefix+optim.UnaveragedName(p.Name)]; ok && len(last.Data) == len(s.Data) && r.job.Optimizer.Dense.Averaging > 0 {
			warmstart.Copy(m, p.Data, last.Data)
		}
		if m.Fresh > 0 {
			fresh = append(fresh, fmt.Sprintf("%s (%d of %d values)", p.Name, m.Fresh, len(p.Data)))
		}
		if jobparts.DenseKind(r.job, p.Name) == jobparts.DenseKind(t.earlier, p.Name) {
			t.state(m, state[p.Name], optim.StepsName(p.Name), began, saved)
		}
		r.state.Engine.Dense.Begin(i, began)
	}
	for _, p := range r.model.Buffers() {
		s := saved[densefile.BufferPrefix+p.Name]
		m, err := warmstart.MatchAxes(p.Name, s.Shape, t.old.Axes(p.Name), p.Shape, r.model.Axes(p.Name))
		if err != nil { // the layer, or its normalization, is new
			fresh = append(fresh, p.Name)
			continue
		}
		warmstart.Copy(m, p.Data, s.Data)
	}
	if len(fresh) > 0 {
		r.log.Info("warm start: dense parameters that start fresh", "parameters", fresh)
	}
	return nil
}

// shiftBias keeps the predictions what they were where this job keeps another share of the negatives than the earlier
// one: predictions are corrected by the share, and the output bias has learned the earlier one.
func (t *takeover) shiftBias() {
	r := t.run
	before, now := r.models.previous.KeptShare, r.job.Data.NegativeSampling
	bias := r.model.OutputBias()
	if before == now || r.models.previous.Tensor(densefile.ParamPrefix+bias.Name) == nil {
		return
	}
	shift := metrics.LogitShift(before) - metrics.LogitShift(now)
	r.log.Info("warm start: the output bias is shifted for the share of negatives that is kept", "earlier", before, "now", now, "shift", rounded(metrics.Value(shift)))
	average := r.state.Engine.Dense.Average(bias)
	if &average[0] != &bias.Data[0] {
		average[0] += shift
	}
	bias.Data[0] += shift
}

// state copies the optimizer state of a parameter, and stores in began the step at which
// the state of each value began. stepsName names the earlier model's tensor of the steps
// that each value had taken, which exists if they were fewer than the model's.
func (t *takeover) state(m *warmstart.Match, state []optim.StateTensor, stepsName string, began []int64, saved map[string]modeldir.Tensor) {
	r := t.run
	size := m.OldSize()
	for _, s := range state {
		if o, ok := saved[densefile.OptimizerPrefix+s.Name]; !ok || len(o.Data) != size {
			r.log.Warn("warm start: the earlier model lacks optimizer state; it starts fresh", "state", s.Name)
			return
		}
	}
	for _, s := range state {
		warmstart.Copy(m, s.Data, saved[densefile.OptimizerPrefix+s.Name].Data)
	}
	before := make([]int64, size)
	for v := range before {
		switch steps := saved[densefile.OptimizerPrefix+stepsName].Data; len(steps) {
		case 1:
			before[v] = r.models.previous.Step - int64(steps[0])
		case size:
			before[v] = r.models.previous.Step - int64(steps[v])
		}
	}
	warmstart.Copy(m, began, before)
}
