package devicerows

import (
	"errors"
	"fmt"
	"math"

	"aibox/gpu"
	"aibox/trainer/engine/devicememory"
)

// places is which rows of a device's memory are in use. They are numbered from 0 on.
type places struct {
	room  int     // for so many rows there is memory
	first int     // from this one on, none was used so far
	free  []int32 // before it
}

// take returns a place that is free. REQUIRES: there is room.
func (p *places) take() int32 {
	if n := len(p.free); n > 0 {
		at := p.free[n-1]
		p.free = p.free[:n-1]
		return at
	}
	p.first++
	return int32(p.first - 1)
}

// give gives places back.
func (p *places) give(at []int32) { p.free = append(p.free, at...) }

// clear gives all back.
func (p *places) clear() { p.first, p.free = 0, p.free[:0] }

// lack is for how many rows memory must grow so that n can be taken.
func (p *places) lack(n int) int { return max(0, p.first+n-len(p.free)-p.room) }

// rowBytes is what a row takes in the memory of its device, and keyBytes what its key does there.
func (r *Rows) rowBytes() int { return 4 * r.Layout.Words() }

const keyBytes = 8

// bytesPerRow is both, as far as they are needed.
func (r *Rows) bytesPerRow() int {
	if r.keyed() {
		return r.rowBytes() + keyBytes
	}
	return r.rowBytes()
}

// makeRoom makes room on a device for the n rows that it has of a pass, times so many passes, and for their copies. Rows that are there stay.
// An error of out of memory says how many rows a pass may have.
func (r *Rows) makeRoom(p *part, n, passes, of int) error {
	err := r.tryRoom(p, n, passes, of)
	if !errors.Is(err, gpu.OutOfMemory) {
		return err
	}
	free, _, unknown := p.FreeMemory()
	if unknown != nil {
		return err
	}
	rows := r.rowsIn(r.bytesFor(p, free), passes) * int64(len(r.parts))
	if 0 < rows && rows < int64(of) { // else it is pinned memory that lacks
		err = fmt.Errorf("a pass has %d rows, and about %d fit the memory of engine.devices: %w", of, rows, err)
	}
	return err
}

// bytesFor is how much memory for rows a part can have of its physical device, of which so much is free, if the parts that share it have as many rows: all but
// the last one take some to spare.
func (r *Rows) bytesFor(p *part, free int64) int64 {
	others := int64(-1)
	for _, o := range r.parts {
		if o.Number() == p.Number() {
			free += o.passBytes()
			others++
		}
	}
	return free * spare / (others*(spare+1) + spare)
}

func (r *Rows) tryRoom(p *part, n, passes, of int) error {
	if p.places.first == 0 && p.places.lack(passes*n) > 0 {
		if err := p.freeRows(); err != nil {
			return err
		}
	}
	for _, l := range []*lane{&p.bringing, &p.fetching} {
		if err := l.makeRoom(n); err != nil {
			return err
		}
	}
	lack := p.places.lack(passes * n)
	if lack == 0 {
		return nil
	}
	rows := p.places.room + lack
	what := fmt.Sprintf("for the %d rows that it has of a pass with %d; engine.embeddings: cpu needs none, and a smaller pipeline.batches_per_pass or training.batch_size, or more devices, need less", n, of)
	room := math.MaxInt
	if r.keyed() { // first, so that rows do not take their room to spare
		if err := r.enlarge(p, &p.keys, "keys of rows", keyBytes, rows, what); err != nil {
			return err
		}
		room = p.keys.Bytes() / keyBytes
	}
	if err := r.enlarge(p, &p.rows, "rows", r.rowBytes(), rows, what); err != nil {
		return err
	}
	p.places.room = min(room, p.rows.Bytes()/r.rowBytes())
	return nil
}

// freeRows gives back the memory for rows of all devices. REQUIRES: there are none.
func (r *Rows) freeRows() error {
	for _, p := range r.parts {
		if err := p.freeRows(); err != nil {
			return err
		}
	}
	return nil
}

// freeRows gives back the memory for rows. REQUIRES: there are none.
func (p *part) freeRows() error {
	if err := p.Rows.Synchronize(); err != nil { // it may be filled, or get rows of a pass that was withdrawn
		return err
	}
	p.places.room = 0
	for _, m := range []*gpu.Memory{&p.rows, &p.keys} {
		if err := devicememory.Free(m); err != nil {
			return err
		}
	}
	return nil
}

// growth is how many bytes makeRoom takes at least, beside what there is.
func (r *Rows) growth(p *part, n int) int {
	lack := p.places.lack(n)
	if lack == 0 {
		return 0
	}
	return (p.places.room + lack) * r.bytesPerRow()
}

// enlarge replaces *m by memory for so many rows, of some bytes each, and keeps those that are in use.
func (r *Rows) enlarge(p *part, m *gpu.Memory, name string, each, rows int, what string) error {
	if devicememory.Holds(*m, each*rows) {
		return nil
	}
	used := each * p.places.first // if there are none, there is no old memory
	var larger gpu.Memory
	if err := p.grow(&larger, name, each*rows, what); err != nil {
		return err
	}
	if err := p.Rows.Fill(gpu.All(larger), 0); err != nil { // kernels are given all of it
		return err
	}
	if used > 0 {
		if err := p.Rows.Copy(gpu.Part(larger, 0, used), gpu.Part(*m, 0, used)); err != nil {
			return err
		}
		if err := p.Rows.Synchronize(); err != nil {
			return err
		}
	}
	old := *m
	*m = larger
	return devicememory.Free(&old)
}
