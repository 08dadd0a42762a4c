package devicerows

import (
	"fmt"
	"sync/atomic"

	"aibox/gpu"
)

// lane copies rows of a pass between the host and one device, in chunks, while the caller goes on.
// The worker does the host's part. The device copies chunks in a stream of the lane, and moves rows
// between chunks and their places in the stream of rows.
type lane struct {
	r      *Rows
	p      *part
	down   bool // to the host
	stream gpu.Stream

	of     *pass
	list   rowList // the rows of it that are copied
	begun  int     // how many of them have been assigned to chunks
	first  int     // chunks [first, last) are in flight; chunk i is in chunks[i mod ring]
	last   int
	chunks [ring]chunk
	most   int          // rows that fit a chunk
	copied atomic.Int64 // rows so far
}

// ring is the number of chunks of a lane, and chunkBytes the most bytes of rows in a chunk.
const (
	ring       = 3
	chunkBytes = 8 << 20
)

// leastChunkRows bounds the size of chunks from below where a device has few rows of a pass: a
// chunk is an eighth of them, but at least this many.
const leastChunkRows = 256

// chunkRows is how many rows a chunk has if n rows are copied.
func (r *Rows) chunkRows(n int) int {
	return min(max(leastChunkRows, (n+7)/8), max(1, chunkBytes/r.rowBytes()))
}

func (l *lane) init(r *Rows, p *part, name string, down bool, stream gpu.Stream) error {
	l.r, l.p, l.down, l.stream = r, p, down, stream
	for i := range l.chunks {
		if err := l.chunks[i].init(l, fmt.Sprintf("%s %d", name, i)); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom grows the chunks for passes of which the device has n rows. REQUIRES: the lane is done.
func (l *lane) makeRoom(n int) error {
	most := l.r.chunkRows(n)
	if most <= l.most {
		return nil
	}
	for i := range l.chunks {
		if err := l.chunks[i].makeRoom(most); err != nil {
			return err
		}
	}
	l.most = most
	return nil
}

// start sets the rows of a pass that are copied next. REQUIRES: the lane is done.
func (l *lane) start(of *pass, list rowList) { l.of, l.list, l.begun = of, list, 0 }

// isDone reports whether all rows are copied. Rows to a device may still be on their way, but later
// operations in its stream of rows see them.
func (l *lane) isDone() bool { return l.begun == len(l.list.rows) && l.first == l.last }

// advance does what can be done without waiting, and reports whether that was anything. With wait
// it waits for the first chunk.
func (l *lane) advance(wait bool) (moved bool, err error) {
	for i := l.first; i < l.last; i++ {
		step, err := l.chunks[i%ring].step(wait && i == l.first)
		if err != nil {
			return false, err
		}
		moved = moved || step
	}
	for ; l.first < l.last && l.chunks[l.first%ring].stage == resting; l.first++ {
		l.copied.Add(int64(len(l.chunks[l.first%ring].list.rows)))
	}
	for l.begun < len(l.list.rows) && l.last-l.first < ring {
		c := &l.chunks[l.last%ring]
		end := min(l.begun+l.most, len(l.list.rows))
		ready, err := c.begin(l.list.part(l.begun, end), wait && l.first == l.last)
		if err != nil {
			return false, err
		}
		if !ready {
			break
		}
		l.begun = end
		l.last++
		moved = true
	}
	return moved, nil
}

// stop waits until the worker is done with the lane, and drops the remaining rows.
func (l *lane) stop() {
	for i := l.first; i < l.last; i++ {
		c := &l.chunks[i%ring]
		_, _ = c.work.isDone(true) // an error is irrelevant now
		c.stage = resting
	}
	l.of, l.list, l.begun, l.first = nil, rowList{}, 0, l.last
}

// copyRows advances all lanes of one direction and reports whether they are done; with wait it
// waits until they are.
func (r *Rows) copyRows(down, wait bool) (bool, error) {
	for {
		moved := false
		var behind *lane
		for _, p := range r.parts {
			l := p.lane(down)
			m, err := l.advance(false)
			if err != nil {
				return false, err
			}
			moved = moved || m
			if behind == nil && !l.isDone() {
				behind = l
			}
		}
		switch {
		case behind == nil:
			return true, nil
		case moved:
		case !wait:
			return false, nil
		default:
			if _, err := behind.advance(true); err != nil {
				return false, err
			}
		}
	}
}

func (p *part) lane(down bool) *lane {
	if down {
		return &p.fetching
	}
	return &p.bringing
}
