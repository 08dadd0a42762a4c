package optim

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Adam corrects its moments by the number of steps since they were zero. A value that a warm start
// adds, with a tower, a field or an optimizer, has taken fewer steps than the model. With the
// model's number, its first updates would be too large by the factor (1-beta1)/sqrt(1-beta2), which
// is 3 for the usual betas. So steps are counted per value. They are stored as stretches of values
// that began together, which cost nothing if all values of a tensor did.

// maxCounted is the largest number of steps that is counted: up to it float32 is exact. With the
// usual betas, the corrections end far earlier.
const maxCounted = 1 << 24

// stretch is a range of a parameter's values, up to end, whose state was zero after step began of
// the model.
type stretch struct {
	end   int
	began int64
}

// stretchJSON is a stretch in a file.
type stretchJSON struct {
	End   int   `json:"end"`
	Began int64 `json:"began"`
}

// MarshalJSON writes, for each parameter, when the state of its values began. State returns the
// state itself.
func (d *Dense) MarshalJSON() ([]byte, error) {
	all := make([][]stretchJSON, len(d.began))
	for i, stretches := range d.began {
		all[i] = []stretchJSON{}
		for _, s := range stretches {
			all[i] = append(all[i], stretchJSON{s.end, s.began})
		}
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON wrote for the same parameters.
func (d *Dense) UnmarshalJSON(b []byte) error {
	var all [][]stretchJSON
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if len(all) != len(d.params) {
		return fmt.Errorf("optim: steps of %d parameters for %d", len(all), len(d.params))
	}
	for i, stretches := range all {
		end := 0
		d.began[i] = nil
		for _, s := range stretches {
			if s.End <= end {
				return fmt.Errorf("optim: steps of %s are out of order", d.params[i].Name)
			}
			end = s.End
			d.began[i] = append(d.began[i], stretch{s.End, s.Began})
		}
		if n := len(d.params[i].Data); stretches != nil && end != 0 && end != n {
			return fmt.Errorf("optim: steps of %d values of %s for %d", end, d.params[i].Name, n)
		}
	}
	return nil
}

// StepsName is the name of the tensor with a parameter's steps, as in PyTorch.
func StepsName(param string) string { return param + "/step" }

// hasSteps reports whether the updates of a kind of optimizer depend on the number of steps.
func hasSteps(kind string) bool { return kind == "adam" || kind == "adamw" }

// settled reports whether the corrections after the given number of steps are 1, so that the exact
// number no longer matters.
func settled(steps int64, beta1, beta2 float64) bool {
	return 1-powInt(beta1, steps) == 1 && 1-powInt(beta2, steps) == 1
}

// settled is the function settled for the optimizer of parameter i.
func (d *Dense) settled(i int, steps int64) bool {
	if r := d.own[i]; r != nil {
		return r.Settled(steps)
	}
	return settled(steps, d.cfg.Beta1, d.cfg.Beta2)
}

// StepCount converts a number of steps to the form in which it is saved.
func StepCount(n int64) float32 { return float32(min(n, maxCounted)) }

// Steps returns, after step t of the model, the numbers of steps that values have taken with their
// state, for the parameters where that number is not t and matters. It is one number if all values
// of a parameter share it, else one for each.
func (d *Dense) Steps(t int64) []StateTensor {
	var out []StateTensor
	for i, p := range d.params {
		if !slices.ContainsFunc(d.began[i], func(s stretch) bool { return s.began > 0 && !d.settled(i, t-s.began) }) {
			continue
		}
		var steps []float32
		for _, s := range d.began[i] {
			n := StepCount(t - s.began)
			for len(steps) < s.end {
				steps = append(steps, n)
			}
		}
		if len(d.began[i]) == 1 {
			steps = steps[:1]
		}
		out = append(out, StateTensor{Name: StepsName(p.Name), Data: steps})
	}
	return out
}

// Begin sets, for each value of parameter i, the step of the model after which its state was zero.
// If Begin is not called, the state was zero before the first step.
func (d *Dense) Begin(i int, began []int64) {
	d.began[i] = nil
	if !hasSteps(d.kind(i)) {
		return
	}
	for v, b := range began[:len(d.params[i].Data)] {
		if last := len(d.began[i]) - 1; last >= 0 && d.began[i][last].began == b {
			d.began[i][last].end = v + 1
		} else {
			d.began[i] = append(d.began[i], stretch{v + 1, b})
		}
	}
	if len(d.began[i]) == 1 && d.began[i][0].began == 0 {
		d.began[i] = nil
	}
}

// together calls do for each stretch among values lo to hi of parameter i, with the number of the
// step that the stretch takes in step t of the model.
func (d *Dense) together(i, lo, hi int, t int64, do func(lo, hi int, t int64)) {
	if d.began[i] == nil && lo < hi {
		do(lo, hi, t)
	}
	for _, x := range d.began[i] {
		if end := min(hi, x.end); lo < end {
			do(lo, end, t-x.began)
			lo = end
		}
	}
}
