package emulated

import (
	"encoding/binary"
	"fmt"
	"time"

	"aibox/gpu"
)

// stream implements gpu.Stream.
type stream struct {
	dev        *device
	name       string
	agent      int
	clock      clock                     // what is known to happen before its next operation, beside what the host knows
	last       []*operation              // after which the next one runs: the one that was enqueued last or, behind a graph, several
	capture    *graph                    // that operations go to
	multiplies bool                      // it has what products need
	fused      map[gpu.ProductShape]bool // what Fuses has said
}

func (s *stream) Name() string       { return s.name }
func (s *stream) Device() gpu.Device { return s.dev }
func (s *stream) String() string     { return fmt.Sprintf("stream %q", s.name) }

// do makes a call of the stream that enqueues the work which prepare returns.
func (s *stream) do(what string, prepare func() (work, error)) error {
	p := s.dev.p
	return p.do(s.dev, what+" in "+s.String(), func() error {
		w, err := prepare()
		if err != nil {
			return err
		}
		w.what = what
		for _, u := range w.uses {
			if m := bare(u.Region.Memory); m.freed {
				return gpu.Invalid("%v was freed", m)
			}
		}
		if s.capture != nil {
			s.capture.steps = append(s.capture.steps, w)
			return nil
		}
		_, err = p.enqueue([]*stream{s}, w)
		return err
	})
}

// region checks a region that an operation of the stream uses.
func (s *stream) region(what string, r gpu.Region) (*memory, error) {
	if err := r.Check(what); err != nil {
		return nil, err
	}
	m := bare(r.Memory)
	if m == nil || m.dev.p != s.dev.p {
		return nil, gpu.Invalid("%s: %v is memory of another platform", what, r)
	}
	return m, nil
}

// local checks a region that must lie in memory of the stream's device.
func (s *stream) local(what string, r gpu.Region) (*memory, error) {
	m, err := s.region(what, r)
	if err == nil && (m.pinned || m.dev != s.dev) {
		return nil, gpu.Invalid("%s: %v is not in memory of the device", what, m)
	}
	return m, err
}

// Copy implements gpu.Stream.
func (s *stream) Copy(dst, src gpu.Region) error {
	return s.do(fmt.Sprintf("copy of %v to %v", src, dst), func() (work, error) {
		from, err := s.region("the source", src)
		if err != nil {
			return work{}, err
		}
		to, err := s.region("the destination", dst)
		if err != nil {
			return work{}, err
		}
		away := func(m *memory) bool { return !m.pinned && m.dev != s.dev }
		switch {
		case dst.Width != src.Width || dst.Rows != src.Rows:
			return work{}, gpu.Invalid("%d rows of %d bytes to %d rows of %d", src.Rows, src.Width, dst.Rows, dst.Width)
		case dst.Overlaps(src):
			return work{}, gpu.Invalid("source and destination overlap")
		case away(from) && away(to), away(from) && to.pinned, away(to) && from.pinned:
			return work{}, gpu.Invalid("neither %v nor %v is of the stream's device", from, to)
		}
		run := func() error {
			for i := range count(dst) {
				copy(to.data[dst.Offset+i*dst.Pitch:][:dst.Width], from.data[src.Offset+i*src.Pitch:])
			}
			return nil
		}
		return work{uses: []gpu.Arg{gpu.Read(src), gpu.Write(dst)}, run: run}, nil
	})
}

// Fill implements gpu.Stream.
func (s *stream) Fill(dst gpu.Region, word uint32) error {
	return s.do(fmt.Sprintf("fill of %v", dst), func() (work, error) {
		m, err := s.local("the destination", dst)
		if err != nil {
			return work{}, err
		}
		if (dst.Offset|dst.Width)%4 != 0 || dst.Rows > 1 && dst.Pitch%4 != 0 {
			return work{}, gpu.Invalid("%v is not made of words of 4 bytes", dst)
		}
		run := func() error {
			rows(dst, m.data, func(row []byte, _ int) {
				for ; len(row) > 0; row = row[4:] {
					binary.LittleEndian.PutUint32(row, word)
				}
			})
			return nil
		}
		return work{uses: []gpu.Arg{gpu.Write(dst)}, run: run}, nil
	})
}

// Synchronize implements gpu.Stream.
func (s *stream) Synchronize() error {
	return s.dev.p.do(s.dev, "Synchronize of "+s.String(), func() error {
		if s.capture != nil {
			return gpu.Invalid("the stream is being captured")
		}
		return s.dev.p.wait(s.dev, s.clock, s.last...)
	})
}

// event implements gpu.Event.
type event struct {
	dev   *device
	name  string
	op    *operation // the latest Record
	clock clock      // of that
}

func (e *event) Name() string { return e.name }

// Record implements gpu.Stream.
func (s *stream) Record(e gpu.Event) error {
	what := fmt.Sprintf("Record of event %q", e.Name())
	return s.dev.p.do(s.dev, what+" in "+s.String(), func() error {
		mark, ok := e.(*event)
		if !ok || mark.dev != s.dev {
			return gpu.Invalid("the event is of another device")
		}
		if s.capture != nil {
			return gpu.Invalid("the stream is being captured")
		}
		op, err := s.dev.p.enqueue([]*stream{s}, work{what: what})
		if err != nil {
			return err
		}
		mark.op, mark.clock = op, s.clock.clone()
		return nil
	})
}

// Wait implements gpu.Stream.
func (s *stream) Wait(e gpu.Event) error {
	what := fmt.Sprintf("Wait for event %q", e.Name())
	return s.dev.p.do(s.dev, what+" in "+s.String(), func() error {
		mark, ok := e.(*event)
		if !ok || mark.dev.p != s.dev.p {
			return gpu.Invalid("the event is of another platform")
		}
		if mark.op == nil {
			return gpu.Invalid("the event was never recorded")
		}
		if s.capture != nil {
			return gpu.Invalid("the stream is being captured")
		}
		s.clock.join(mark.clock)
		_, err := s.dev.p.enqueue([]*stream{s}, work{what: what}, mark.op)
		return err
	})
}

// do makes a call of the event, which must have been recorded.
func (e *event) do(what string, f func() error) error {
	return e.dev.p.do(e.dev, fmt.Sprintf("%s of event %q", what, e.name), func() error {
		if e.op == nil {
			return gpu.Invalid("the event was never recorded")
		}
		return f()
	})
}

// Done implements gpu.Event.
func (e *event) Done() (done bool, err error) {
	err = e.do("Done", func() error {
		if !e.op.ran && e.dev.p.rng.IntN(2) == 0 {
			e.dev.p.step(e.dev.p.pending) // so that who asks again and again gets an answer
		}
		if done = e.op.ran; done {
			return e.dev.p.wait(e.dev, e.clock, e.op)
		}
		return nil
	})
	return done, err
}

// Synchronize implements gpu.Event.
func (e *event) Synchronize() error {
	return e.do("Synchronize", func() error { return e.dev.p.wait(e.dev, e.clock, e.op) })
}

// Since implements gpu.Event. Each operation takes a microsecond.
func (e *event) Since(earlier gpu.Event) (t time.Duration, err error) {
	err = e.do("Since", func() error {
		from, ok := earlier.(*event)
		switch {
		case !ok || from.dev != e.dev:
			return gpu.Invalid("event %q is of another device", earlier.Name())
		case from.op == nil || !from.op.ran || !e.op.ran:
			return gpu.Invalid("one of the events is not done")
		}
		t = time.Duration(e.op.at-from.op.at) * time.Microsecond
		return nil
	})
	return t, err
}
