package devicerows

import (
	"fmt"
	"sync/atomic"

	"aibox/gpu"
)

// lane copies rows of a pass between the host and one device, in chunks. What the host does for a
// chunk is done by the worker, and what the device does is in streams of its own, while the caller
// goes on; only rows are put to their places, or taken from there, in the stream in which the
// device works on rows.
type lane struct {
	r      *Rows
	p      *part
	down   bool // to the host
	stream gpu.Stream

	of     *pass
	list   rowList // the rows of it that are copied
	begun  int     // of them, in chunks
	first  int     // chunks [first, last) are at work; chunk i is in chunks[i mod ring]
	last   int
	chunks [ring]chunk
	most   int          // rows in a chunk
	copied atomic.Int64 // rows so far
}

// ring is how many chunks of a lane are at work at most, and chunkBytes is how large their rows are.
const (
	ring       = 3
	chunkBytes = 8 << 20
)

// A chunk is smaller where a pass has few rows: it has an eighth of those that a device has, but
// not less than this.
const leastChunkRows = 256

// chunkRows is how many rows a chunk has where n are copied.
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

// makeRoom makes room for chunks of passes of which the device has n rows. REQUIRES: the lane is done.
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

// start begins to copy rows of a pass. REQUIRES: the lane is done.
func (l *lane) start(of *pass, list rowList) { l.of, l.list, l.begun = of, list, 0 }

// isDone reports whether all rows are copied; those to a device are on their way, and there for what
// follows in the stream in which it works on rows.
func (l *lane) isDone() bool { return l.begun == len(l.list.rows) && l.first == l.last }

// advance does what can be done at once, and reports whether that is anything. With wait it waits
// until something can.
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

// stop waits until the worker does nothing for the lane, and forgets what is left.
func (l *lane) stop() {
	for i := l.first; i < l.last; i++ {
		c := &l.chunks[i%ring]
		_, _ = c.work.isDone(true) // a panic has no effect any more
		c.stage = resting
	}
	l.of, l.list, l.begun, l.first = nil, rowList{}, 0, l.last
}

// copyRows copies with all lanes to the host, or from it, and reports whether that is done. With wait it is.
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
