package devicerows

import (
	"aibox/gpu"
	"aibox/internal/kernel"
)

// staging is pinned memory for a chunk of rows or keys of one device.
type staging struct {
	memory gpu.Pinned
	copied []gpu.Event // of each device
	by     gpu.Event   // that was recorded last and not waited for; nil: none
}

// free returns buffer i when no device uses it.
func (r *Rows) free(i int) (*staging, error) {
	s := &r.staging[i%len(r.staging)]
	if s.by == nil {
		return s, nil
	}
	by := s.by
	s.by = nil
	return s, by.Synchronize()
}

// enqueue enqueues a copy between a buffer and a device.
func (p *part) enqueue(s *staging, to, from gpu.Region) error {
	if err := p.Compute.Copy(to, from); err != nil {
		return err
	}
	if err := p.Compute.Record(s.copied[p.number]); err != nil {
		return err
	}
	s.by = s.copied[p.number]
	return nil
}

// moveGrain is how many rows one thread copies at a time.
const moveGrain = 512

// mover copies a chunk of rows of a part between pinned memory and the host's rows, on all threads.
type mover struct {
	r      *Rows
	p      *part
	rows   []float32
	lo     int // the first of the chunk, among those of the part
	toHost bool
	task   func(lo, hi int)
}

func (m *mover) move(r *Rows, p *part, rows []float32, lo, n int, toHost bool) {
	m.r, m.p, m.rows, m.lo, m.toHost = r, p, rows, lo, toHost
	kernel.Parallel(n, moveGrain, m.task)
	m.r, m.p, m.rows = nil, nil, nil
}

func (m *mover) run(lo, hi int) {
	words, devices := m.r.Layout.Words(), len(m.r.parts)
	for i := lo; i < hi; i++ {
		there := m.rows[i*words:][:words]
		here := m.r.pass.Rows.Row((m.lo+i)*devices + m.p.number)
		if m.toHost {
			copy(here, there)
		} else {
			copy(there, here)
		}
	}
}

// upload copies the rows of a part to its device, and their keys.
func (r *Rows) upload(p *part) error {
	n, words := r.owned(p, len(r.pass.Keys)), r.Layout.Words()
	for lo, i := 0, 0; lo < n; lo, i = lo+r.chunk, i+1 {
		rows := min(r.chunk, n-lo)
		if err := r.send(p, i, p.rows, 4*words*lo, 4*words*rows, func(to []byte) { r.mover.move(r, p, gpu.As[float32](to), lo, rows, false) }); err != nil {
			return err
		}
	}
	if !r.keyed() {
		return nil
	}
	for lo, i := 0, 0; lo < n; lo, i = lo+r.chunk, i+1 {
		keys := min(r.chunk, n-lo)
		if err := r.send(p, i, p.keys, 8*lo, 8*keys, func(to []byte) {
			for k := range gpu.As[uint64](to) {
				gpu.As[uint64](to)[k] = r.pass.Keys[(lo+k)*len(r.parts)+p.number]
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// send copies what fill writes to a device, by buffer i.
func (r *Rows) send(p *part, i int, m gpu.Memory, at, bytes int, fill func(to []byte)) error {
	s, err := r.free(i)
	if err != nil {
		return err
	}
	to, err := s.memory.Writing(0, bytes)
	if err != nil {
		return err
	}
	fill(to)
	return p.enqueue(s, gpu.Part(m, at, bytes), gpu.Part(s.memory, 0, bytes))
}

// Download copies all rows of the pass to the host, after all operations that the streams already have.
func (r *Rows) Download() error {
	for _, p := range r.parts {
		if err := r.download(p); err != nil {
			return err
		}
	}
	return nil
}

// download copies one chunk while the host stores the one before.
func (r *Rows) download(p *part) error {
	n, words := r.owned(p, len(r.pass.Keys)), r.Layout.Words()
	chunks := (n + r.chunk - 1) / r.chunk
	for i := range chunks + 1 {
		if i < chunks {
			s, err := r.free(i)
			if err != nil {
				return err
			}
			lo := i * r.chunk
			bytes := 4 * words * min(r.chunk, n-lo)
			if err := p.enqueue(s, gpu.Part(s.memory, 0, bytes), gpu.Part(p.rows, 4*words*lo, bytes)); err != nil {
				return err
			}
		}
		if i == 0 {
			continue
		}
		s, err := r.free(i - 1)
		if err != nil {
			return err
		}
		lo := (i - 1) * r.chunk
		rows := min(r.chunk, n-lo)
		from, err := s.memory.Reading(0, 4*words*rows)
		if err != nil {
			return err
		}
		r.mover.move(r, p, gpu.As[float32](from), lo, rows, true)
	}
	return nil
}

// copier copies slices on all threads.
type copier struct {
	pieces []piece
	bytes  int
	task   func(lo, hi int)
}

type piece struct {
	to, from []byte
	at       int // of its first byte among those of all pieces
}

// copyGrain is how many bytes one thread copies at a time.
const copyGrain = 256 << 10

func (c *copier) add(to, from []byte) {
	if len(from) > 0 {
		c.pieces = append(c.pieces, piece{to, from, c.bytes})
		c.bytes += len(from)
	}
}

// copy copies all pieces that were added.
func (c *copier) copy() {
	kernel.Parallel(c.bytes, copyGrain, c.task)
	clear(c.pieces)
	c.pieces, c.bytes = c.pieces[:0], 0
}

func (c *copier) run(lo, hi int) {
	for i := range c.pieces {
		p := &c.pieces[i]
		if from, to := max(lo, p.at), min(hi, p.at+len(p.from)); from < to {
			copy(p.to[from-p.at:to-p.at], p.from[from-p.at:to-p.at])
		}
	}
}
