package sparsetable

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/refpool"
)

// A row that a Pull had to read will, as a rule, not be needed again for a long
// time. It is trained once and is then among the first rows to leave the cache. To
// write it, its slot's bucket would have to be read a second time. So a working set
// keeps copies of the buckets that were read for it, within a part of the budget;
// this is called carrying them. When the set is released, the background writer
// merges the trained rows into these copies and writes them as the new buckets. A
// miss then costs one read, and no second one when its row leaves.
//
// The copies lie in chunks outside the garbage collector's heap. The chunks of a
// set are filled one after the other. A copy has this form:
//
//	slot 4 · rows 4 · location 8 · bytes of entries 8 · entries

const (
	carryHeaderBytes = 24
	// carryChunkBytes holds more than a hundred buckets.
	carryChunkBytes = 256 << 10
	// carryBatch is how many carried buckets are handled each time that rewrite is
	// taken, which is then held for some 200 microseconds; fewer in small tables.
	carryBatch = 64
)

// carry holds the copies of buckets that one working set carries.
type carry struct {
	chunks [][]byte // the last is being filled
	used   int      // bytes of the last chunk; the others are full or end with a zero header
}

// carried manages the memory of all carries.
type carried struct {
	sync.Mutex
	mapped  int64    // bytes of all chunks
	free    [][]byte // unused chunks
	waiting []*carry // of sets that were released
	idle    []*carry // empty ones, to be used again
}

// newCarry returns an empty carry.
func (t *ssd) newCarry() *carry {
	c := &t.carried
	c.Lock()
	defer c.Unlock()
	if n := len(c.idle); n > 0 {
		last := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return last
	}
	return new(carry)
}

// keep copies the bucket of a finished request, and reports whether there was
// room for it.
func (t *ssd) keep(c *carry, r *bucketfile.Request) bool {
	entries := r.Bucket.Entries()
	need := (carryHeaderBytes + len(entries) + 7) &^ 7
	if need > carryChunkBytes {
		return false
	}
	if len(c.chunks) == 0 || c.used+need > carryChunkBytes {
		chunk := t.carryChunk()
		if chunk == nil {
			return false
		}
		if n := len(c.chunks); n > 0 {
			clear(c.chunks[n-1][c.used:min(c.used+carryHeaderBytes, carryChunkBytes)])
		}
		c.chunks, c.used = append(c.chunks, chunk), 0
	}
	b := c.chunks[len(c.chunks)-1][c.used:]
	le := binary.LittleEndian
	le.PutUint32(b, r.Slot)
	le.PutUint32(b[4:], uint32(r.Bucket.Len()))
	le.PutUint64(b[8:], uint64(r.Location))
	le.PutUint64(b[16:], uint64(len(entries)))
	copy(b[carryHeaderBytes:], entries)
	c.used += need
	return true
}

// carryChunk takes a chunk, nil if the budget has none left.
func (t *ssd) carryChunk() []byte {
	c := &t.carried
	c.Lock()
	defer c.Unlock()
	if n := len(c.free); n > 0 {
		chunk := c.free[n-1]
		c.free = c.free[:n-1]
		return chunk
	}
	if c.mapped+carryChunkBytes > t.plan.carryBytes {
		return nil
	}
	chunk, err := offheap.Map(carryChunkBytes)
	if err != nil {
		return nil // carrying only saves reads, so it is not an error
	}
	c.mapped += carryChunkBytes
	return chunk
}

// handOver gives the buckets of a released set to the background writer.
func (t *ssd) handOver(c *carry) {
	if c == nil {
		return
	}
	if len(c.chunks) == 0 {
		t.dropCarry(c)
		return
	}
	t.carried.Lock()
	t.carried.waiting = append(t.carried.waiting, c)
	t.carried.Unlock()
	t.wake()
}

// dropCarry empties a carry.
func (t *ssd) dropCarry(c *carry) {
	if c == nil {
		return
	}
	defer t.wakePrefetch() // it may have waited for room
	t.carried.Lock()
	defer t.carried.Unlock()
	t.carried.free = append(t.carried.free, c.chunks...)
	clear(c.chunks)
	c.chunks, c.used = c.chunks[:0], 0
	if len(t.carried.idle) < refpool.MaxIdle {
		t.carried.idle = append(t.carried.idle, c)
	}
}

// nextCarry takes a carry that waits to be written, nil if there is none.
func (t *ssd) nextCarry() *carry {
	t.carried.Lock()
	defer t.carried.Unlock()
	w := t.carried.waiting
	if len(w) == 0 {
		return nil
	}
	c := w[0]
	copy(w, w[1:])
	w[len(w)-1] = nil
	t.carried.waiting = w[:len(w)-1]
	return c
}

// freeCarries gives the memory of all carries back. REQUIRES: no working set is left.
func (t *ssd) freeCarries() error {
	for c := t.nextCarry(); c != nil; c = t.nextCarry() {
		t.dropCarry(c)
	}
	t.carried.Lock()
	defer t.carried.Unlock()
	var errs []error
	for _, chunk := range t.carried.free {
		errs = append(errs, offheap.Unmap(chunk))
	}
	t.carried.free, t.carried.mapped = nil, 0
	return errors.Join(errs...)
}

// writeCarries writes the buckets of all sets that are released by now. It returns
// false if there are none.
func (t *ssd) writeCarries(ctx context.Context) (worked bool, err error) {
	t.carried.Lock()
	waiting := len(t.carried.waiting)
	t.carried.Unlock()
	for range waiting { // others may be released meanwhile, but other work comes first
		c := t.nextCarry()
		if c == nil {
			break
		}
		worked = true
		if err := t.writeCarried(ctx, c); err != nil {
			return worked, err
		}
	}
	return worked, nil
}

// writeCarried merges the rows of a released set into the buckets that it
// carried.
func (t *ssd) writeCarried(ctx context.Context, c *carry) error {
	defer t.dropCarry(c)
	if !t.outgrowsCache() {
		return nil
	}
	for len(c.chunks) > 0 {
		chunk, end := c.chunks[0], carryChunkBytes
		if len(c.chunks) == 1 {
			end = c.used
		}
		for rest := chunk[:end]; len(rest) >= carryHeaderBytes && rest != nil; {
			var err error
			if rest, err = t.writeCarriedBatch(rest); err != nil {
				return err
			}
			if err := t.keepSpace(ctx); err != nil {
				return err
			}
		}
		t.freeChunk(c)
	}
	return nil
}

// freeChunk gives back the first chunk of c, as the next Pull may already need it.
func (t *ssd) freeChunk(c *carry) {
	t.carried.Lock()
	defer t.carried.Unlock()
	t.carried.free = append(t.carried.free, c.chunks[0])
	last := copy(c.chunks, c.chunks[1:])
	c.chunks[last] = nil
	c.chunks = c.chunks[:last]
}

// outgrowsCache reports whether buckets have more rows than three quarters of what
// the cache holds, so that rows will have to leave it.
func (t *ssd) outgrowsCache() bool {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	return t.rewrite.stored > t.fitRows.Load()/4*3
}

// writeCarriedBatch writes the first carried buckets of chunk and returns the
// others; nil at the end. It skips buckets that were superseded meanwhile, and
// slots whose dirty rows are all needed again soon.
func (t *ssd) writeCarriedBatch(chunk []byte) (rest []byte, err error) {
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	le := binary.LittleEndian
	for range min(carryBatch, t.evictStep()) {
		if len(chunk) < carryHeaderBytes {
			return nil, nil
		}
		slot, rows := le.Uint32(chunk), int(le.Uint32(chunk[4:]))
		location, bytes := bucketfile.Location(le.Uint64(chunk[8:])), int(le.Uint64(chunk[16:]))
		if location == 0 {
			return nil, nil
		}
		entries := chunk[carryHeaderBytes:][:bytes]
		chunk = chunk[(carryHeaderBytes+bytes+7)&^7:]
		if !t.liesAt(slot, location) || t.leavingRows(slot) == 0 {
			continue
		}
		b := t.files.RebuildBucket(slot, rows, entries)
		if err := t.rewriteSlot(slot, &b, nil); err != nil {
			return nil, err
		}
	}
	return chunk, nil
}
