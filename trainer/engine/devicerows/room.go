package devicerows

import (
	"errors"
	"fmt"
	"math"

	"aibox/gpu"
	"aibox/trainer/engine/devicememory"
)

// MakeWay brings all rows to the host and gives back the memory that they had on the devices.
// REQUIRES: the current pass has ended.
func (r *Rows) MakeWay() error {
	r.forgetNext()
	if err := r.settle(true); err != nil {
		return err
	}
	return r.freeRows()
}

// fitAlone makes room for the mini-batches of a pass, and then for its rows.
func (r *Rows) fitAlone(of *pass) error {
	if err := r.reserve(of.Batches); err != nil {
		return err
	}
	err := r.fit(of, 2) // for the next one, too: with rows that stay, memory can only grow beside what there is
	if errors.Is(err, gpu.OutOfMemory) {
		err = r.fit(of, 1)
	}
	return err
}

// fitBeside makes room for a pass beside the current one, if there is enough, also for what its
// mini-batches need more than others have needed so far.
func (r *Rows) fitBeside(of *pass) (bool, error) {
	batches := r.needsOfAll(of.Batches)
	for _, p := range r.parts {
		more := r.growth(p, p.share(len(of.Keys), len(r.parts))) + p.lacks(batches)
		if more == 0 {
			continue
		}
		free, _, err := p.FreeMemory()
		if err != nil {
			return false, err
		}
		if int64(more) > free {
			return false, nil
		}
	}
	err := r.fit(of, 1)
	if errors.Is(err, gpu.OutOfMemory) {
		return false, nil
	}
	return err == nil, err
}

// fit makes room for a pass, or for more of its size, beside the rows that are on the devices.
func (r *Rows) fit(of *pass, passes int) error {
	for _, p := range r.parts {
		if err := r.makeRoom(p, p.share(len(of.Keys), len(r.parts)), passes, len(of.Keys)); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom makes room on a device for the n rows that it has of a pass, times so many passes, and for their
// copies. Rows that are there stay. An error of out of memory says how many rows a pass may have.
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

// bytesFor is how much memory for rows a part can have of its physical device, of which so much is
// free, if the parts that share it have as many rows: all but the last one take some to spare.
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
