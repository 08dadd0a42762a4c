package devicerows

import (
	"slices"

	"aibox/trainer/engine"
)

// pass is the rows of a pass, and where they are.
type pass struct {
	engine.Pass
	at       []int32   // of each row: its number in the memory of its device, times D, plus the number of the device
	kept     []int     // of each device, how many rows were there
	arriving [][]int32 // of each device, the rows that come from the host
	leaving  [][]int32 // of each device, the rows that the next pass does not share
	planned  bool      // at and arriving are known
	changed  bool      // rows on the devices are newer than those of the host
}

// reset makes p the pass that is given.
func (p *pass) reset(of engine.Pass) { p.Pass, p.planned, p.changed = of, false, false }

// listRows lists rows by the device in whose memory they are, but for those that are to be left out.
func listRows(lists [][]int32, devices int, at []int32, without []bool) [][]int32 {
	lists = cleared(lists, devices)
	for i, at := range at {
		if without == nil || !without[i] {
			d := int(at) % devices
			lists[d] = append(lists[d], int32(i))
		}
	}
	return lists
}

// cleared returns n empty lists, with the memory of those there are.
func cleared(lists [][]int32, n int) [][]int32 {
	if len(lists) != n {
		return make([][]int32, n)
	}
	for i := range lists {
		lists[i] = lists[i][:0]
	}
	return lists
}

func (p *pass) bytes() int64 {
	n := cap(p.at)
	for _, l := range slices.Concat(p.arriving, p.leaving) {
		n += cap(l)
	}
	return 4 * int64(n)
}
