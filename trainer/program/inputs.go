package program

import (
	"fmt"
	"sync"
	"sync/atomic"

	"aibox/internal/kernel"
)

// Inputs is one mini-batch of N examples with U unique rows. F is the number of fields, P the
// number of dense features, R the number of values in a row.
type Inputs struct {
	N          int
	Rows       []float32 // (U, R), values of the mini-batch's unique rows
	Offsets    []int32   // (N*F+1): bag of field f of example e is Index[Offsets[e*F+f]:Offsets[e*F+f+1]]
	Index      []int32   // (features), into the unique rows
	BagWeights []float32 // (features), nil when all are 1
	// For training: the inverted index, as in reader.Batch.
	RowStarts, RowBags []int32
	RowWeights         []float32
	Dense              []float32 // (N, P)
	Labels             []float32 // (N), for training
	Weights            []float32 // (N), for training; nil when all are 1
	Step               int64     // number of the optimizer step, from which dropout takes its random numbers
	Made               bool      // a reader made it: offsets and indexes are in range
}

// Check reports inputs that do not fit a network. Inputs come from a reader or a test, so a fault
// is a bug.
func (in *Inputs) Check(net *Network, training bool) error {
	if len(in.Rows)%net.RowDim != 0 {
		return fmt.Errorf("model: %d row values for rows of %d", len(in.Rows), net.RowDim)
	}
	return in.CheckFor(net, len(in.Rows)/net.RowDim, training)
}

// CheckFor is Check for inputs that will get the values of the given number of rows. If a reader
// has made them, it does not check each feature, which would take longer than a device takes for a
// step.
func (in *Inputs) CheckFor(net *Network, rows int, training bool) error {
	bags := in.N * net.Fields
	switch {
	case in.N < 1:
		return fmt.Errorf("model: mini-batch of %d examples", in.N)
	case len(in.Offsets) != bags+1:
		return fmt.Errorf("model: %d offsets for %d examples of %d fields, want %d", len(in.Offsets), in.N, net.Fields, bags+1)
	case len(in.Dense) != in.N*net.Dense:
		return fmt.Errorf("model: %d dense values for %d examples of %d features", len(in.Dense), in.N, net.Dense)
	case in.BagWeights != nil && len(in.BagWeights) != len(in.Index):
		return fmt.Errorf("model: %d bag weights for %d features", len(in.BagWeights), len(in.Index))
	case training && len(in.Labels) != in.N:
		return fmt.Errorf("model: %d labels for %d examples", len(in.Labels), in.N)
	case training && in.Weights != nil && len(in.Weights) != in.N:
		return fmt.Errorf("model: %d weights for %d examples", len(in.Weights), in.N)
	case training && (len(in.RowStarts) != rows+1 || len(in.RowBags) != len(in.Index) || (in.RowWeights == nil) != (in.BagWeights == nil)):
		return fmt.Errorf("model: no inverted index of %d features of %d rows", len(in.Index), rows)
	case in.Offsets[0] != 0 || int(in.Offsets[bags]) != len(in.Index):
		return fmt.Errorf("model: offsets from %d to %d for %d features", in.Offsets[0], in.Offsets[bags], len(in.Index))
	}
	if in.Made {
		return nil
	}
	c := checks.Get().(*check)
	c.in, c.rows = in, rows
	kernel.Parallel(bags, checkGrain, c.ascend)
	kernel.Parallel(len(in.Index), checkGrain, c.refer)
	wrong := c.wrong.Swap(false)
	c.in = nil
	checks.Put(c)
	if wrong {
		return in.fault(rows)
	}
	return nil
}

// check checks the bags of a mini-batch on all threads, each of which has a part of them.
type check struct {
	in            *Inputs
	rows          int
	wrong         atomic.Bool
	ascend, refer func(lo, hi int) // bound once so that a mini-batch allocates nothing
}

// checkGrain is the number of bags or features that one thread checks at a time: some microseconds
// of work.
const checkGrain = 1 << 14

var checks = sync.Pool{New: func() any {
	c := new(check)
	c.ascend, c.refer = c.offsets, c.index
	return c
}}

// offsets checks that none of the bags lo to hi ends before it begins.
func (c *check) offsets(lo, hi int) {
	negative := int32(0)
	before := c.in.Offsets[lo]
	for _, at := range c.in.Offsets[lo+1 : hi+1] {
		negative |= at | (at - before) // both are non-negative if no offset descends
		before = at
	}
	if negative < 0 {
		c.wrong.Store(true)
	}
}

// index checks that features lo to hi refer to existing rows.
func (c *check) index(lo, hi int) {
	most := uint32(0)
	for _, i := range c.in.Index[lo:hi] {
		most = max(most, uint32(i))
	}
	if int(most) >= c.rows {
		c.wrong.Store(true)
	}
}

// fault describes the first fault in the bags.
func (in *Inputs) fault(rows int) error {
	for b, at := range in.Offsets[1:] {
		if in.Offsets[b] > at {
			return fmt.Errorf("model: offsets of bag %d descend from %d to %d", b, in.Offsets[b], at)
		}
	}
	for p, i := range in.Index {
		if uint32(i) >= uint32(rows) {
			return fmt.Errorf("model: feature %d refers to row %d of %d", p, i, rows)
		}
	}
	return nil
}
