package devicerows

import (
	"errors"

	"aibox/gpu"
	"aibox/internal/kernel"
	"aibox/trainer/engine/devicememory"
)

// chunk is a buffer for some rows of a lane. In pinned memory and in device memory, the rows are
// followed by their keys, if needed, and their places.
type chunk struct {
	lane   *lane
	name   string
	pinned gpu.Pinned
	memory gpu.Memory
	list   rowList
	stage  stage
	work   task // runs hostView.task over all rows of the chunk
	hostView
	chunkMarks
}

// hostView is the pinned memory of a chunk, for the worker.
type hostView struct {
	words  []float32
	keys   []uint64
	places []int32
	task   func(lo, hi int) // fill, or store
}

// chunkMarks are events in the streams that move a chunk.
type chunkMarks struct {
	sent    gpu.Event // the upload has arrived
	moved   gpu.Event // rows were written to their places, or read from there
	fetched gpu.Event // rows are in pinned memory
	used    bool      // sent and moved are recorded; only in chunks to a device
}

// stage is what is being done with a chunk.
type stage int

const (
	resting stage = iota
	filling       // by the worker
	copying       // by the device, to the host
	storing       // by the worker
)

// rowGrain is how many rows one thread copies at a time.
const rowGrain = 512

func (c *chunk) init(l *lane, name string) error {
	c.lane, c.name = l, name
	c.task = c.fill
	if l.down {
		c.task = c.store
	}
	c.work = newTask(func() { kernel.Parallel(len(c.list.rows), rowGrain, c.task) })
	for _, e := range []struct {
		event *gpu.Event
		name  string
	}{{&c.sent, "sent"}, {&c.moved, "moved"}, {&c.fetched, "fetched"}} {
		var err error
		if *e.event, err = l.p.NewEvent(name + " " + e.name); err != nil {
			return err
		}
	}
	return nil
}

// layout returns the offsets of keys and places in a chunk of n rows, and its size, in bytes.
func (c *chunk) layout(n int) (keys, places, bytes int) {
	r := c.lane.r
	keys = devicememory.Aligned(r.rowBytes() * n)
	places = keys
	if r.keyed() && !c.lane.down {
		places += devicememory.Aligned(keyBytes * n)
	}
	return keys, places, places + devicememory.Aligned(4*n)
}

// begin starts copying rows. Without wait, it does not start (ready is false) if it would have to
// wait for the device.
func (c *chunk) begin(list rowList, wait bool) (ready bool, err error) {
	l := c.lane
	if c.used && !l.down { // the host has already waited for a chunk that was fetched
		if ready, err := isDone(c.sent, wait); !ready || err != nil {
			return false, err
		}
	}
	c.list = list
	n := len(list.rows)
	keysAt, placesAt, bytes := c.layout(n)
	if l.down {
		to, err := c.pinned.Writing(placesAt, 4*n)
		if err != nil {
			return false, err
		}
		copy(gpu.As[int32](to), list.places)
		return true, c.take()
	}
	to, err := c.pinned.Writing(0, bytes)
	if err != nil {
		return false, err
	}
	c.words, c.places = gpu.As[float32](to[:l.r.rowBytes()*n]), gpu.As[int32](to[placesAt:][:4*n])
	c.keys = gpu.As[uint64](to[keysAt:placesAt])
	c.stage = filling
	l.r.worker.begin(&c.work)
	return true, nil
}

// step moves the chunk to its next stage if the current one is done; with wait it waits for that.
func (c *chunk) step(wait bool) (moved bool, err error) {
	switch c.stage {
	case filling:
		if moved, err = c.work.isDone(wait); moved && err == nil {
			c.stage = resting
			err = c.put()
		}
	case copying:
		if moved, err = isDone(c.fetched, wait); moved && err == nil {
			if c.words, err = c.fetchedWords(); err == nil {
				c.stage = storing
				c.lane.r.worker.begin(&c.work)
			}
		}
	case storing:
		if moved, err = c.work.isDone(wait); moved {
			c.stage = resting
		}
	}
	return moved && err == nil, err
}

// fetchedWords returns the rows that have arrived in pinned memory.
func (c *chunk) fetchedWords() ([]float32, error) {
	b, err := c.pinned.Reading(0, c.lane.r.rowBytes()*len(c.list.rows))
	if err != nil {
		return nil, err
	}
	return gpu.As[float32](b), nil
}

// fill copies rows of the host to the chunk.
func (c *chunk) fill(lo, hi int) {
	of, words, keyed := c.lane.of, c.lane.r.Layout.Words(), c.lane.r.keyed()
	copy(c.places[lo:hi], c.list.places[lo:hi])
	for i, row := range c.list.rows[lo:hi] {
		i += lo
		copy(c.words[i*words:][:words], of.Rows.Row(int(row)))
		if keyed {
			c.keys[i] = of.Keys[row]
		}
	}
}

// store copies the chunk to rows of the host.
func (c *chunk) store(lo, hi int) {
	words := c.lane.r.Layout.Words()
	for i, row := range c.list.rows[lo:hi] {
		copy(c.lane.of.Rows.Row(int(row)), c.words[(lo+i)*words:][:words])
	}
}

// put enqueues the upload of a filled chunk and the copy of its rows to their places.
func (c *chunk) put() error {
	l, p, r, n := c.lane, c.lane.p, c.lane.r, len(c.list.rows)
	keysAt, placesAt, bytes := c.layout(n)
	if c.used {
		if err := l.stream.Wait(c.moved); err != nil { // the device memory still had other rows
			return err
		}
	}
	c.used = true
	if err := c.send(0, bytes); err != nil {
		return err
	}
	places := gpu.Part(c.memory, placesAt, 4*n)
	if err := p.Kernels.PutRows(p.Rows, gpu.All(p.rows), gpu.Part(c.memory, 0, r.rowBytes()*n), places, r.Layout.Words(), n); err != nil {
		return err
	}
	if r.keyed() {
		if err := p.Kernels.PutRows(p.Rows, gpu.All(p.keys), gpu.Part(c.memory, keysAt, keyBytes*n), places, keyBytes/4, n); err != nil {
			return err
		}
	}
	return p.Rows.Record(c.moved)
}

// take enqueues the copy of a chunk's rows from their places to pinned memory. REQUIRES: the places
// are in pinned memory.
func (c *chunk) take() error {
	l, p, r, n := c.lane, c.lane.p, c.lane.r, len(c.list.rows)
	_, placesAt, _ := c.layout(n)
	if err := c.send(placesAt, 4*n); err != nil {
		return err
	}
	rows := gpu.Part(c.memory, 0, r.rowBytes()*n)
	if err := p.Kernels.TakeRows(p.Rows, rows, gpu.All(p.rows), gpu.Part(c.memory, placesAt, 4*n), r.Layout.Words(), n); err != nil {
		return err
	}
	if err := p.Rows.Record(c.moved); err != nil {
		return err
	}
	if err := l.stream.Wait(c.moved); err != nil {
		return err
	}
	if err := l.stream.Copy(gpu.Part(c.pinned, 0, rows.Bytes()), rows); err != nil {
		return err
	}
	c.stage = copying
	return l.stream.Record(c.fetched)
}

// send enqueues the upload of a part of the chunk, and makes the stream of rows wait for it.
func (c *chunk) send(at, bytes int) error {
	l := c.lane
	if err := l.stream.Copy(gpu.Part(c.memory, at, bytes), gpu.Part(c.pinned, at, bytes)); err != nil {
		return err
	}
	if err := l.stream.Record(c.sent); err != nil {
		return err
	}
	return l.p.Rows.Wait(c.sent)
}

// makeRoom grows the chunk's memory to n rows. On an error the chunk keeps its old memory.
// REQUIRES: the chunk is resting.
func (c *chunk) makeRoom(n int) error {
	_, _, bytes := c.layout(n)
	if devicememory.Holds(c.memory, bytes) && c.pinned.Bytes() >= bytes {
		return nil
	}
	if c.used {
		if err := c.moved.Synchronize(); err != nil {
			return err
		}
	}
	const what = "for the copies of rows of a pass; engine.embeddings: cpu needs no such memory, and a smaller pipeline.batches_per_pass or training.batch_size, or more devices, need less"
	var memory gpu.Memory
	var pinned gpu.Pinned
	if err := c.lane.p.grow(&memory, c.name, bytes, what); err != nil {
		return err
	}
	if err := devicememory.GrowPinned(c.lane.r.parts[0], &pinned, c.name, bytes, what); err != nil {
		return errors.Join(err, memory.Free())
	}
	c.memory, memory = memory, c.memory
	c.pinned, pinned = pinned, c.pinned
	if pinned == nil {
		return nil
	}
	return errors.Join(pinned.Free(), memory.Free())
}

// isDone reports whether an event is done; with wait it waits until it is.
func isDone(e gpu.Event, wait bool) (bool, error) {
	if wait {
		return true, e.Synchronize()
	}
	return e.Done()
}
