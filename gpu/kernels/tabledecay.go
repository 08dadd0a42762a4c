package kernels

import "aibox/gpu"

var kernelSettle = declare("table_settle", "wrrrr iiii")

// FactorsBytes is what the factors of a row take: four float32, those of the first value and those
// of the others, each a pair of decay.Factors.
const FactorsBytes = 16

// Settle computes the factors of the values of the mini-batch's rows for the steps from their
// clocks up to a moment: FactorsBytes for each row. moment and timeline are in the form of
// decay.Moment.AppendWords and decay.Timeline.AppendWords.
func (k *Set) Settle(s gpu.Stream, t *Table, b *TableBatch, moment, timeline, factors gpu.Region) error {
	if b.Rows == 0 {
		return nil
	}
	if !t.Decays {
		return gpu.Invalid("the rows of the table do not decay")
	}
	k.with().add(gpu.Write(factors), gpu.Read(t.Rows), gpu.Read(b.Index), gpu.Read(moment), gpu.Read(timeline))
	k.ints(b.Rows, t.Words(), t.valueWords(), t.State)
	return k.launch(s, kernelSettle, rowThreads(b.Rows))
}
