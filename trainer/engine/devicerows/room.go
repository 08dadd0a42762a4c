package devicerows

import (
	"errors"
	"fmt"
	"math"

	"aibox/gpu"
	"aibox/trainer/engine/devicememory"
)

// MakeWay drops the announced pass, copies all rows to the host and frees their memory on the
// devices. REQUIRES: the current pass has ended.
func (r *Rows) MakeWay() error {
	r.forgetNext()
	if err := r.copyToHost(true); err != nil {
		return err
	}
	return r.freeRows()
}

// fitAlone makes room for the mini-batches of a pass, and then for its rows.
func (r *Rows) fitAlone(of *pass) error {
	if err := r.reserve(of.Batches); err != nil {
		return err
	}
	// Room for the pass after it, too: once there are rows that stay, growing needs old and new
	// memory.
	err := r.fit(of, 2)
	if errors.Is(err, gpu.OutOfMemory) {
		err = r.fit(of, 1)
	}
	return err
}

// fitBeside makes room for the rows of a pass beside the current one. It reports false if memory
// does not suffice for that and for the mini-batches of the pass.
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

// fit makes room for the given number of passes of the size of one, beside the rows on the devices.
func (r *Rows) fit(of *pass, passes int) error {
	for _, p := range r.parts {
		if err := r.makeRoom(p, p.share(len(of.Keys), len(r.parts)), passes, len(of.Keys)); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom makes room on a device for n rows of each of the given number of passes, and for the
// chunks to copy them. It keeps rows that are there. of is the number of rows of a pass on all
// devices.
// An out-of-memory error says how many rows a pass may have.
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
	if 0 < rows && rows < int64(of) { // else pinned memory is short
		err = fmt.Errorf("a pass has %d rows, but only about %d fit into the memory of engine.devices: %w", of, rows, err)
	}
	return err
}

// bytesFor is how much memory for rows a part can have on its physical device, of which free bytes
// are free, if all parts that share the device have equally many rows. All of them but the last get
// spare memory too: see grow.
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

// tryRoom is makeRoom without the explanation in its errors.
func (r *Rows) tryRoom(p *part, n, passes, of int) error {
	if p.places.first == 0 && p.places.missing(passes*n) > 0 {
		if err := p.freeRows(); err != nil {
			return err
		}
	}
	for _, l := range []*lane{&p.bringing, &p.fetching} {
		if err := l.makeRoom(n); err != nil {
			return err
		}
	}
	lack := p.places.missing(passes * n)
	if lack == 0 {
		return nil
	}
	rows := p.places.room + lack
	what := fmt.Sprintf("for its %d of the %d rows of a pass; engine.embeddings: cpu needs no such memory, and a smaller pipeline.batches_per_pass or training.batch_size, or more devices, need less", n, of)
	room := math.MaxInt
	if r.keyed() { // before rows, whose spare memory could take the room of the keys
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

// freeRows frees the memory for rows on all devices. REQUIRES: no rows are there.
func (r *Rows) freeRows() error {
	for _, p := range r.parts {
		if err := p.freeRows(); err != nil {
			return err
		}
	}
	return nil
}

// freeRows frees the memory for rows. REQUIRES: no rows are there.
func (p *part) freeRows() error {
	if err := p.Rows.Synchronize(); err != nil { // a fill, or copies of a withdrawn pass, may be pending
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

// growth is how many bytes makeRoom allocates at least, before it frees the old memory.
func (r *Rows) growth(p *part, n int) int {
	lack := p.places.missing(n)
	if lack == 0 {
		return 0
	}
	return (p.places.room + lack) * r.bytesPerRow()
}

// enlarge replaces *m by memory for the given number of rows of each bytes, and copies those in
// use.
func (r *Rows) enlarge(p *part, m *gpu.Memory, name string, each, rows int, what string) error {
	if devicememory.Holds(*m, each*rows) {
		return nil
	}
	used := each * p.places.first // 0 if there is no old memory
	var larger gpu.Memory
	if err := p.grow(&larger, name, each*rows, what); err != nil {
		return err
	}
	if err := p.Rows.Fill(gpu.All(larger), 0); err != nil { // kernels take all of it as their argument
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
