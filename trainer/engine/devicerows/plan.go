package devicerows

import (
	"sync/atomic"

	"aibox/internal/kernel"
	"aibox/trainer/engine"
)

// plan finds the rows that two passes share, which stay where they are, and assigns places to the
// other rows of the second pass. It has its own worker. The first part, match, needs only the keys,
// so it starts when a pass is announced, while rows of the pass before are still being copied to
// the host. The second part, assign, needs the places that those leave.
type plan struct {
	parts     []*part
	from, to  *pass   // from is nil if nothing stays
	table     []int32 // hash table of the keys of from: row + 1; 0 is empty
	shared    []bool  // of each row of from
	missing   []int32 // the rows of to that are not on a device
	quotas    []int   // of each device, how many more rows it gets
	matching  task
	assigning task
	worker    *worker

	noteTask, findTask func(lo, hi int)
}

func (p *plan) init(parts []*part) {
	p.parts, p.quotas = parts, make([]int, len(parts))
	p.matching, p.assigning = newTask(p.match), newTask(p.assign)
	p.noteTask, p.findTask = p.note, p.find
}

// begin starts the first part.
func (p *plan) begin(from, to *pass) {
	p.from, p.to = from, to
	p.worker.begin(&p.matching)
}

// isDone starts the second part once the first is done, and reports whether both are done; with
// wait it waits until they are. REQUIRES: the first part was started, and each device has room for
// its share of the rows of to.
func (p *plan) isDone(wait bool) (bool, error) {
	if done, err := p.matching.isDone(wait); !done || err != nil {
		return false, err
	}
	if !p.assigning.begun {
		p.worker.begin(&p.assigning)
	}
	return p.assigning.isDone(wait)
}

// stop waits until the worker is done with the plan.
func (p *plan) stop() {
	_, _ = p.matching.isDone(true) // an error is irrelevant: the plan is dropped
	_, _ = p.assigning.isDone(true)
}

// planGrain is how many keys one thread looks up at a time.
const planGrain = 4096

// match is the first part: it fills to.at, with nowhere for missing rows, and to.kept, missing, and
// from.leaving.
func (p *plan) match() {
	p.to.at = engine.Resize(p.to.at, len(p.to.Keys))
	if p.from == nil {
		for i := range p.to.at {
			p.to.at[i] = nowhere
		}
	} else {
		size := 64
		for size < 2*len(p.from.Keys) {
			size *= 2
		}
		p.table, p.shared = engine.Resize(p.table, size), engine.Resize(p.shared, len(p.from.Keys))
		clear(p.table)
		clear(p.shared)
		kernel.Parallel(len(p.from.Keys), planGrain, p.noteTask)
		kernel.Parallel(len(p.to.Keys), planGrain, p.findTask)
		p.from.leaving = listRows(p.from.leaving, len(p.parts), p.from.at, p.shared)
	}
	devices := len(p.parts)
	p.to.kept = engine.Resize(p.to.kept, devices)
	clear(p.to.kept)
	p.missing = p.missing[:0]
	for i, at := range p.to.at {
		if at == nowhere {
			p.missing = append(p.missing, int32(i))
		} else {
			d, _ := onDevice(at, devices)
			p.to.kept[d]++
		}
	}
}

// nowhere in pass.at is a row without a place.
const nowhere = -1

// hash is the index in table where the linear probing for a key begins.
func (p *plan) hash(key uint64) int {
	key ^= key >> 32
	key *= 0x9e3779b97f4a7c15
	return int(key>>32) & (len(p.table) - 1)
}

// note enters rows lo to hi-1 of from into the table. Several threads run it at once.
func (p *plan) note(lo, hi int) {
	for i := lo; i < hi; i++ {
		at := p.hash(p.from.Keys[i])
		for !atomic.CompareAndSwapInt32(&p.table[at], 0, int32(i+1)) {
			at = (at + 1) & (len(p.table) - 1)
		}
	}
}

// find looks up rows lo to hi-1 of to in the table.
func (p *plan) find(lo, hi int) {
	for i := lo; i < hi; i++ {
		key := p.to.Keys[i]
		p.to.at[i] = nowhere
		for at := p.hash(key); p.table[at] != 0; at = (at + 1) & (len(p.table) - 1) {
			if row := p.table[at] - 1; p.from.Keys[row] == key {
				p.to.at[i], p.shared[row] = p.from.at[row], true
				break
			}
		}
	}
}

// assign is the second part: it gives the missing rows places, so that the devices have equally
// many rows if the kept ones allow it, and fills to.arriving.
func (p *plan) assign() {
	devices := len(p.parts)
	for d := range p.quotas {
		p.quotas[d] = p.parts[d].share(len(p.to.at), devices) - p.to.kept[d]
	}
	p.to.arriving = cleared(p.to.arriving, devices)
	d := 0
	for _, row := range p.missing {
		for p.quotas[d] <= 0 {
			d = next(d, devices)
		}
		p.quotas[d]--
		place := p.parts[d].places.take()
		p.to.at[row] = place*int32(devices) + int32(d)
		p.to.arriving[d].add(row, place)
		d = next(d, devices)
	}
}

// next is the device after d, cyclically.
func next(d, devices int) int {
	if d++; d == devices {
		return 0
	}
	return d
}

// share is how many of n rows a device gets.
func (p *part) share(n, devices int) int { return (n - p.number + devices - 1) / devices }
