package reader

// Invert fills RowStarts, RowBags and RowWeights, with a counting sort of the features
// by row, for a mini-batch of that many unique rows. The sort keeps the order of the
// features of a row. Batches of a Reader have been inverted.
//
//	Offsets     0     2  3        bag 0 has rows 0 1, bag 1 has row 0
//	Index       0  1  0
//	RowStarts   0     2  3        row 0 is in bags 0 1, row 1 in bag 0
//	RowBags     0  1  0
func (b *Batch) Invert(rows int) {
	b.RowStarts = room(b.RowStarts, rows+1)[:rows+1]
	b.RowBags = room(b.RowBags, len(b.Index))[:len(b.Index)]
	starts := b.RowStarts
	clear(starts)
	for _, row := range b.Index {
		starts[row+1]++
	}
	for i := range rows {
		starts[i+1] += starts[i]
	}
	b.RowWeights = nil
	if b.BagWeights != nil {
		b.rowWeights = room(b.rowWeights, len(b.Index))[:len(b.Index)]
		b.RowWeights = b.rowWeights
	}
	// Each feature is put at the start of its row, which is then increased. In the end
	// starts[i] is where row i+1 begins.
	for bag, first := range b.Offsets[:len(b.Offsets)-1] {
		for p := first; p < b.Offsets[bag+1]; p++ {
			at := &starts[b.Index[p]]
			b.RowBags[*at] = int32(bag)
			if b.BagWeights != nil {
				b.RowWeights[*at] = b.BagWeights[p]
			}
			*at++
		}
	}
	copy(starts[1:], starts[:rows])
	starts[0] = 0
}
