package devicerows

import (
	"slices"

	"aibox/trainer/engine"
)

// pass is the rows of a pass, and where they are.
type pass struct {
	engine.Pass
	at       []int32   // of each row: its place on its device · the number of devices + the number of the device
	kept     []int     // of each device, how many rows were already there
	arriving []rowList // of each device, the rows that come from the host
	leaving  []rowList // of each device, the rows that the next pass does not share
	room     bool      // there is room for its rows
	planned  bool      // at and arriving are known
	changed  bool      // rows on the devices are newer than those of the host
}

// reset makes p a pass that is not planned yet.
func (p *pass) reset(of engine.Pass) { p.Pass, p.room, p.planned, p.changed = of, false, false, false }

// rowList is rows of a pass, and their places in the memory of the device that they are on.
type rowList struct{ rows, places []int32 }

func (l *rowList) add(row, place int32) {
	l.rows, l.places = append(l.rows, row), append(l.places, place)
}

// part is rows lo to hi-1 of the list.
func (l rowList) part(lo, hi int) rowList { return rowList{l.rows[lo:hi], l.places[lo:hi]} }

// listRows lists rows by device, in the memory of lists, except the rows marked in without.
func listRows(lists []rowList, devices int, at []int32, without []bool) []rowList {
	lists = cleared(lists, devices)
	for i, at := range at {
		if without == nil || !without[i] {
			d, place := onDevice(at, devices)
			lists[d].add(int32(i), place)
		}
	}
	return lists
}

// onDevice splits an element of pass.at into the device and the place there. One device needs no
// division.
func onDevice(at int32, devices int) (device, place int32) {
	if devices == 1 {
		return 0, at
	}
	return at % int32(devices), at / int32(devices)
}

// cleared returns n empty lists, reusing the memory of lists.
func cleared(lists []rowList, n int) []rowList {
	if len(lists) != n {
		return make([]rowList, n)
	}
	for i := range lists {
		lists[i] = lists[i].part(0, 0)
	}
	return lists
}

func (p *pass) bytes() int64 {
	n := cap(p.at)
	for _, l := range slices.Concat(p.arriving, p.leaving) {
		n += cap(l.rows) + cap(l.places)
	}
	return 4 * int64(n)
}
