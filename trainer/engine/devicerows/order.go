package devicerows

import (
	"aibox/reader"
	"aibox/trainer/engine"
)

// order is the unique rows of a mini-batch sorted by device, and within a device in the order of
// the mini-batch. With one device that is the order of the mini-batch.
type order struct {
	first    []int   // of each device, the position of its first row; and the end
	features []int   // of each device, the position of the first occurrence of its rows; and the end
	rows     []int32 // at each position, the row of the mini-batch; unused with one device
	place    []int32 // of each row of the mini-batch, its position
}

// set orders the rows of a mini-batch. at is pass.at of its pass.
func (o *order) set(b *reader.Batch, at []int32, devices int) {
	o.first, o.features = engine.Resize(o.first, devices+1), engine.Resize(o.features, devices+1)
	clear(o.first)
	clear(o.features)
	occurrences := len(b.RowStarts) > 0 // in training
	if devices == 1 {
		o.first[1] = len(b.Rows)
		if occurrences {
			o.features[1] = int(b.RowStarts[len(b.Rows)])
		}
		return
	}
	for i, row := range b.Rows {
		d := int(at[row])%devices + 1
		o.first[d]++
		if occurrences {
			o.features[d] += int(b.RowStarts[i+1] - b.RowStarts[i])
		}
	}
	for d := range devices {
		o.first[d+1] += o.first[d]
		o.features[d+1] += o.features[d]
	}
	o.rows, o.place = engine.Resize(o.rows, len(b.Rows)), engine.Resize(o.place, len(b.Rows))
	for i, row := range b.Rows {
		d := int(at[row]) % devices
		o.place[i] = int32(o.first[d])
		o.rows[o.first[d]] = int32(i)
		o.first[d]++
	}
	copy(o.first[1:], o.first[:devices]) // the loop has advanced each to the first of the next device
	o.first[0] = 0
}

func (o *order) bytes() int64 {
	return 8*int64(cap(o.first)+cap(o.features)) + 4*int64(cap(o.rows)+cap(o.place))
}
