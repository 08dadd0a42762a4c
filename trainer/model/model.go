package model

import (
	"slices"

	"aibox/trainer/optim"
	"aibox/trainer/program"
)

// Model is a network with its parameters.
type Model struct {
	spec    Spec
	params  *params
	buffers *params
	network program.Network
}

// New makes the model that spec describes, with initial values.
func New(spec Spec) (*Model, error) { return newModel(spec, false) }

// Outline is like New, for callers that ask only what a model would take or how it names its units.
// Its parameters have shapes but neither values nor gradients, which may need more memory than
// there is.
func Outline(spec Spec) (*Model, error) { return newModel(spec, true) }

func newModel(spec Spec, outline bool) (*Model, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	m := &Model{spec: spec, params: newParams(spec.Seed), buffers: newParams(spec.Seed)}
	m.params.outline = outline
	// Programs do not depend on the number of examples of their graph. The first graph declares the
	// parameters in order and reports faults that Validate cannot see.
	const examples = 2
	train, err := compile(spec, examples, true, m.params, m.buffers)
	if err != nil {
		return nil, err
	}
	infer, err := compile(spec, examples, false, m.params, m.buffers)
	if err != nil {
		return nil, err
	}
	net := program.Network{Params: m.params.list, Fields: len(spec.Fields), RowDim: spec.RowDim(), Dense: len(spec.Dense)}
	if net.Train, err = train.lower(); err != nil {
		return nil, err
	}
	if net.Infer, err = infer.lower(); err != nil {
		return nil, err
	}
	for _, n := range train.norms {
		net.Norms = append(net.Norms, program.Norm{Mean: n.mean, Variance: n.variance, Both: n.both})
	}
	m.network = net
	return m, nil
}

// Network returns what an engine needs of the model. Its parameters and running statistics are
// those of the model.
func (m *Model) Network() *program.Network { return &m.network }

// Spec returns the spec that the model was made from.
func (m *Model) Spec() Spec { return m.spec }

// Params returns the trained dense parameters, in an order that depends only on the spec. Values
// may be written between mini-batches: the network shares Data, which must stay the same memory.
// Engines fill Grad.
func (m *Model) Params() []*optim.Param { return slices.Clone(m.params.list) }

// OutputBias returns the parameter, of one value, that is added to every logit.
func (m *Model) OutputBias() *optim.Param {
	for _, name := range []string{"output/bias", "linear/bias"} { // lr and fm have no output layer
		if p := m.params.byName[name]; p != nil {
			return p
		}
	}
	panic("model: " + m.spec.Kind + " has no output bias")
}

// Buffers returns the part of the model that is not trained by gradients: the running statistics of
// batch normalization. Grad is nil.
func (m *Model) Buffers() []*optim.Param { return slices.Clone(m.buffers.list) }
