package profiled

import "aibox/gpu"

// device implements gpu.Device.
type device struct {
	gpu.Device
	times   *Times
	streams []*stream
	pending []*mark // operations whose time was not read yet, in their order
	spare   []*mark
}

// mark is an operation between two events.
type mark struct {
	operation
	bytes         int64
	before, after gpu.Event
}

// mostPending bounds the operations whose times were not read yet.
const mostPending = 1024

// NewStream implements gpu.Device.
func (d *device) NewStream(name string) (gpu.Stream, error) {
	s, err := d.Device.NewStream(name)
	if err != nil {
		return nil, err
	}
	mine := &stream{Stream: s, dev: d}
	d.streams = append(d.streams, mine)
	return mine, nil
}

// begin marks the beginning of an operation in a stream of the measured device.
func (d *device) begin(s gpu.Stream, o operation, bytes int64) (*mark, error) {
	if len(d.pending) >= mostPending {
		if err := d.pending[0].after.Synchronize(); err != nil {
			return nil, err
		}
		if err := d.read(); err != nil {
			return nil, err
		}
	}
	if len(d.spare) == 0 {
		m := new(mark)
		for _, e := range []*gpu.Event{&m.before, &m.after} {
			var err error
			if *e, err = d.NewEvent("profile"); err != nil {
				return nil, err
			}
		}
		d.spare = append(d.spare, m)
	}
	m := d.spare[len(d.spare)-1]
	m.operation, m.bytes = o, bytes
	return m, s.Record(m.before)
}

// end marks the end of the latest operation that has begun, which is enqueued. If that fails, the
// operation may have broken the device, as the next call says.
func (d *device) end(s gpu.Stream, m *mark) {
	if s.Record(m.after) != nil {
		return
	}
	d.spare = d.spare[:len(d.spare)-1]
	d.pending = append(d.pending, m)
}

// read reads the times of operations that are finished.
func (d *device) read() error {
	n := 0
	for _, m := range d.pending {
		if done, err := m.after.Done(); err != nil || !done {
			if err != nil {
				return err
			}
			break
		}
		took, err := m.after.Since(m.before)
		if err != nil {
			return err
		}
		d.times.add(d.Number(), m.operation, m.bytes, took)
		d.spare = append(d.spare, m)
		n++
	}
	d.pending = d.pending[:copy(d.pending, d.pending[n:])]
	return nil
}

// free is an error if a stream is being captured.
func (d *device) free() error {
	for _, s := range d.streams {
		if err := s.free(); err != nil {
			return err
		}
	}
	return nil
}

// Synchronize implements gpu.Device.
func (d *device) Synchronize() error {
	if err := d.free(); err != nil {
		return err
	}
	if err := d.Device.Synchronize(); err != nil {
		return err
	}
	return d.read()
}

// Close implements gpu.Device. Of a device that is broken, the times that were not read are lost.
func (d *device) Close() error {
	if err := d.free(); err != nil {
		return err
	}
	_ = d.Synchronize()
	return d.Device.Close()
}
