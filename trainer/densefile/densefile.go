package densefile

import (
	"fmt"
	"slices"

	"aibox/trainer/engine"
	"aibox/trainer/model"
	"aibox/trainer/optim"
	"aibox/trainer/tensorfile"
)

// Prefixes of the names of tensors.
const (
	ParamPrefix     = "param/"
	BufferPrefix    = "buffer/"
	OptimizerPrefix = "optimizer/"
)

// Network returns the dense parameters and buffers of m. They share memory with m.
func Network(m *model.Model) []tensorfile.Tensor {
	var out []tensorfile.Tensor
	for _, p := range m.Params() {
		out = append(out, tensorfile.Tensor{Name: ParamPrefix + p.Name, Shape: p.Shape, Data: p.Data})
	}
	for _, p := range m.Buffers() {
		out = append(out, tensorfile.Tensor{Name: BufferPrefix + p.Name, Shape: p.Shape, Data: p.Data})
	}
	return out
}

// Load copies saved into tensors of the same names and sizes.
func Load(into, saved []tensorfile.Tensor) error {
	byName := make(map[string]tensorfile.Tensor, len(saved))
	for _, t := range saved {
		byName[t.Name] = t
	}
	for _, t := range into {
		s, ok := byName[t.Name]
		if !ok || len(s.Data) != len(t.Data) {
			return fmt.Errorf("dense file: tensor %s is missing or has another size", t.Name)
		}
		copy(t.Data, s.Data)
	}
	return nil
}

// Trained returns the tensors of the network, averaged if the job asks for that, and the optimizer
// state, with its numbers of steps after step t. Parameters and state share memory with the model.
func Trained(m *model.Model, s *engine.State, rows *optim.Rows, t int64) []tensorfile.Tensor {
	out := Network(m)
	for i, p := range m.Params() {
		out[i].Data = s.Dense.Average(p)
	}
	for _, s := range slices.Concat(s.Dense.State(), s.Dense.Steps(t), s.Dense.Unaveraged(), s.RowSteps.Steps(rows, t)) {
		out = append(out, tensorfile.Tensor{Name: OptimizerPrefix + s.Name, Shape: []int{len(s.Data)}, Data: s.Data})
	}
	return out
}
