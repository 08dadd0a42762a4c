package devicerows

import (
	"aibox/gpu/kernels"
	"aibox/trainer/decay"
	"aibox/trainer/engine"
	"aibox/trainer/engine/devicememory"
)

// section is the part of a mini-batch that one device gets.
type section struct {
	Share
	at, bytes int // offset and size in the pinned memory
	first     int // the position of its first row in order
	counts
	options
	batchPlaces
	trainingPlaces
}

// counts is the numbers of elements in a section.
type counts struct {
	rows          int // rows on the device
	all           int // rows of the mini-batch
	bagCount      int // features in the bags of its examples
	rowBagCount   int // occurrences of its rows in the mini-batch
	timelineWords int
	floats        int // constants of the row update
}

// options says which optional parts a section has.
type options struct {
	weighted, rowWeighted, averages, decays bool
	single                                  bool // each bag has one row
}

// batchPlaces is the places of the parts that every section has, in bytes from its beginning.
type batchPlaces struct {
	index, offsets, bags, bagWeights int
	averaged, moment, timeline       int
}

// trainingPlaces is the places of the parts for training.
type trainingPlaces struct {
	starts, rowBags, rowWeights, labels int
	step, groups, constants             int
}

// layout orders the rows of a mini-batch by device and lays out its sections. It returns their
// total size in bytes.
func (r *Rows) layout(s *staging) int {
	o, b, fields, devices := &s.order, s.batch, r.Network.Fields, len(r.parts)
	o.set(b, r.current.at, devices)
	s.sections = engine.Resize(s.sections, devices)
	at := 0
	for d := range s.sections {
		share := s.shares[d]
		lo, hi := b.Offsets[share.First*fields], b.Offsets[(share.First+share.N)*fields]
		x := section{
			Share: share, at: at, first: o.first[d],
			counts:  counts{rows: o.first[d+1] - o.first[d], all: len(b.Rows), bagCount: int(hi - lo)},
			options: options{weighted: b.BagWeights != nil, averages: r.averaged != nil, decays: r.decays, single: b.Single()},
		}
		if x.decays {
			x.timelineWords = s.words - decay.MomentWords
		}
		if s.training {
			x.rowBagCount, x.rowWeighted = o.features[d+1]-o.features[d], b.RowWeights != nil
			x.floats = s.floats
		}
		r.place(&x, s.training, b.N)
		at += x.bytes
		s.sections[d] = x
	}
	return at
}

// place sets the places of the parts of a section, for a mini-batch with the given number of
// examples, and the size of the section.
func (r *Rows) place(x *section, training bool, examples int) {
	fields := r.Network.Fields
	place := func(bytes int) int {
		at := x.bytes
		x.bytes += devicememory.Aligned(bytes)
		return at
	}
	x.index = place(4 * x.rows)
	if !x.single {
		x.offsets = place(4 * (x.N*fields + 1))
	}
	x.bags = place(4 * x.bagCount)
	if x.weighted {
		x.bagWeights = place(4 * x.bagCount)
	}
	if x.averages {
		x.averaged = place(4 * fields)
	}
	if x.decays {
		x.moment = place(8 * decay.MomentWords)
		x.timeline = place(8 * x.timelineWords)
	}
	if !training {
		return
	}
	x.starts = place(4 * (x.rows + 1))
	x.rowBags = place(4 * x.rowBagCount)
	if x.rowWeighted {
		x.rowWeights = place(4 * x.rowBagCount)
	}
	x.labels = place(4 * examples)
	x.step = place(kernels.RowStepBytes)
	x.groups = place(4 * fields)
	x.constants = place(4 * x.floats)
}
