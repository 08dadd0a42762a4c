package takeover

import (
	"fmt"
	"slices"
	"strings"

	"aibox/trainer/densefile"
	"aibox/trainer/jobparts"
	"aibox/trainer/metrics"
	"aibox/trainer/model"
	"aibox/trainer/optim"
	"aibox/trainer/tensorfile"
	"aibox/trainer/warmstart"
)

// Dense copies parameters, batch-norm statistics and optimizer state.
func (t *Takeover) Dense() error {
	if t.Parts.Spec.Kind != t.oldSpec.Kind {
		t.Log.Warn("warm start: the earlier model is of another kind; only parameters with the same name, inputs and size are copied",
			"earlier", t.oldSpec.Kind, "now", t.Parts.Spec.Kind)
	}
	if t.Job.Optimizer.Dense.Kind != t.earlier.Optimizer.Dense.Kind {
		t.Log.Warn("warm start: the earlier model had another dense optimizer; the optimizer's state starts fresh",
			"earlier", t.earlier.Optimizer.Dense.Kind, "now", t.Job.Optimizer.Dense.Kind)
	}
	saved := make(map[string]tensorfile.Tensor)
	for _, s := range t.Saved.Dense {
		saved[s.Name] = s
	}
	state := make(map[string][]optim.StateTensor) // of each parameter
	for _, s := range t.State.Dense.State() {
		p := s.Name[:strings.LastIndexByte(s.Name, '/')]
		state[p] = append(state[p], s)
	}
	var fresh []string
	for i, p := range t.Model.Params() {
		began := slices.Repeat([]int64{t.Saved.Step}, len(p.Data)) // the default, for values whose state is not copied
		s, ok := saved[densefile.ParamPrefix+p.Name]
		m, err := warmstart.MatchAxes(p.Name, s.Shape, t.old.Axes(p.Name), p.Shape, t.Model.Axes(p.Name))
		if !ok || err != nil && t.Parts.Spec.Kind != t.oldSpec.Kind { // for example, dcn and dcn_v2 have cross weights of different shapes
			t.State.Dense.Begin(i, began)
			fresh = append(fresh, p.Name)
			continue
		}
		if err != nil {
			return err
		}
		warmstart.Copy(m, p.Data, s.Data)
		warmstart.Copy(m, t.State.Dense.Average(p), s.Data)
		if last, ok := saved[densefile.OptimizerPrefix+optim.UnaveragedName(p.Name)]; ok && len(last.Data) == len(s.Data) && t.Job.Optimizer.Dense.Averaging > 0 {
			warmstart.Copy(m, p.Data, last.Data)
		}
		if m.Fresh > 0 {
			fresh = append(fresh, fmt.Sprintf("%s (%d of %d values)", p.Name, m.Fresh, len(p.Data)))
		}
		if jobparts.DenseKind(t.Job, p.Name) == jobparts.DenseKind(t.earlier, p.Name) {
			t.state(m, state[p.Name], optim.StepsName(p.Name), began, saved)
		}
		t.State.Dense.Begin(i, began)
	}
	for _, p := range t.Model.Buffers() {
		s := saved[densefile.BufferPrefix+p.Name]
		m, err := warmstart.MatchAxes(p.Name, s.Shape, t.old.Axes(p.Name), p.Shape, t.Model.Axes(p.Name))
		if err != nil { // the layer, or its normalization, is new
			fresh = append(fresh, p.Name)
			continue
		}
		warmstart.Copy(m, p.Data, s.Data)
	}
	if len(fresh) > 0 {
		t.Log.Info("warm start: dense parameters that start fresh", "parameters", fresh)
	}
	if gone := without(paramNames(t.old), paramNames(t.Model)); len(gone) > 0 {
		t.Log.Info("warm start: dense parameters of the earlier model are no longer used, and left behind", "parameters", gone)
	}
	return nil
}

func paramNames(m *model.Model) (names []string) {
	for _, p := range m.Params() {
		names = append(names, p.Name)
	}
	return names
}

// state copies the optimizer state of a parameter, and stores in began the step at which the state
// of each value began. stepsName names the earlier model's tensor with the steps that each value
// had taken. That tensor exists if they were fewer than the model's.
func (t *Takeover) state(m *warmstart.Match, state []optim.StateTensor, stepsName string, began []int64, saved map[string]tensorfile.Tensor) {
	size := m.OldSize()
	for _, s := range state {
		if o, ok := saved[densefile.OptimizerPrefix+s.Name]; !ok || len(o.Data) != size {
			t.Log.Warn("warm start: the earlier model lacks optimizer state; it starts fresh", "state", s.Name)
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
			before[v] = t.Saved.Step - int64(steps[0])
		case size:
			before[v] = t.Saved.Step - int64(steps[v])
		}
	}
	warmstart.Copy(m, began, before)
}

// ShiftBias keeps the predictions unchanged if this job keeps another share of the negatives than
// the earlier one: predictions are corrected by the share, and the output bias was learned with the
// earlier share.
func (t *Takeover) ShiftBias() {
	before, now := t.Saved.KeptShare, t.Job.Data.NegativeSampling
	bias := t.Model.OutputBias()
	if before == now || t.Saved.Tensor(densefile.ParamPrefix+bias.Name) == nil {
		return
	}
	shift := metrics.LogitShift(before) - metrics.LogitShift(now)
	t.Log.Info("warm start: the output bias is shifted for the share of negatives that is kept", "earlier", before, "now", now, "shift", metrics.Rounded(metrics.Value(shift)))
	average := t.State.Dense.Average(bias)
	if &average[0] != &bias.Data[0] {
		average[0] += shift
	}
	bias.Data[0] += shift
}
