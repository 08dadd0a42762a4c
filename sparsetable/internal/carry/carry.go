package carry

import (
	"encoding/binary"
	"errors"
	"sync"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/refpool"
)

const (
	headerBytes = 24
	// A chunk holds more than a hundred buckets.
	chunkBytes = 256 << 10
)

// Buckets are the copies of buckets that one working set carries.
type Buckets struct {
	chunks [][]byte // the last is being filled
	used   int      // bytes of the last chunk; the others are full or end with a zero header
}

// Chunks is the number of chunks of memory that the copies take.
func (b *Buckets) Chunks() int { return len(b.chunks) }

// First returns the used part of the first chunk; nil: there is none.
func (b *Buckets) First() []byte {
	switch len(b.chunks) {
	case 0:
		return nil
	case 1:
		return b.chunks[0][:b.used]
	}
	return b.chunks[0]
}

// Memory manages the memory of all copies, and the copies that wait to be written.
type Memory struct {
	mu      sync.Mutex
	limit   int64      // maximum bytes of the copies
	mapped  int64      // bytes of all chunks
	free    [][]byte   // unused chunks
	waiting []*Buckets // of sets that were released
	idle    []*Buckets // empty ones, to be reused
}

// SetLimit sets how many bytes the copies may take. Copies beyond the limit remain until they are
// dropped.
func (m *Memory) SetLimit(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = bytes
	m.trimLocked()
}

// trimLocked unmaps unused chunks beyond the limit.
func (m *Memory) trimLocked() {
	for n := len(m.free); n > 0 && m.mapped > m.limit; n-- {
		if offheap.Unmap(m.free[n-1]) != nil {
			return // the chunk stays usable
		}
		m.free, m.mapped = m.free[:n-1], m.mapped-chunkBytes
	}
}

// Bytes returns how much memory the copies take, and may take.
func (m *Memory) Bytes() (mapped, most int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mapped, max(m.mapped, m.limit)
}

// New returns Buckets without copies.
func (m *Memory) New() *Buckets {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.idle); n > 0 {
		last := m.idle[n-1]
		m.idle = m.idle[:n-1]
		return last
	}
	return new(Buckets)
}

// Keep copies the bucket of a finished request, and reports whether there was room for it.
func (m *Memory) Keep(b *Buckets, r *bucketfile.Request) bool {
	entries := r.Bucket.Entries()
	need := (headerBytes + len(entries) + 7) &^ 7
	if need > chunkBytes {
		return false
	}
	if len(b.chunks) == 0 || b.used+need > chunkBytes {
		chunk := m.chunk()
		if chunk == nil {
			return false
		}
		if n := len(b.chunks); n > 0 {
			clear(b.chunks[n-1][b.used:min(b.used+headerBytes, chunkBytes)])
		}
		b.chunks, b.used = append(b.chunks, chunk), 0
	}
	to := b.chunks[len(b.chunks)-1][b.used:]
	le := binary.LittleEndian
	le.PutUint32(to, r.Slot)
	le.PutUint32(to[4:], uint32(r.Bucket.Len()))
	le.PutUint64(to[8:], uint64(r.Location))
	le.PutUint64(to[16:], uint64(len(entries)))
	copy(to[headerBytes:], entries)
	b.used += need
	return true
}

// Copy is the copy of a bucket.
type Copy struct {
	Slot     uint32
	Rows     int
	Location bucketfile.Location
	Entries  []byte // of the rows, as in the bucket
}

// Cut returns the first copy in a chunk, and the rest of the chunk. ok is false at the end.
func Cut(chunk []byte) (c Copy, rest []byte, ok bool) {
	if len(chunk) < headerBytes {
		return c, nil, false
	}
	le := binary.LittleEndian
	c = Copy{Slot: le.Uint32(chunk), Rows: int(le.Uint32(chunk[4:])), Location: bucketfile.Location(le.Uint64(chunk[8:]))}
	if c.Location == 0 {
		return c, nil, false
	}
	bytes := int(le.Uint64(chunk[16:]))
	c.Entries = chunk[headerBytes:][:bytes]
	return c, chunk[(headerBytes+bytes+7)&^7:], true
}

// chunk returns an unused chunk, or nil if the limit leaves none.
func (m *Memory) chunk() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.free); n > 0 {
		chunk := m.free[n-1]
		m.free = m.free[:n-1]
		return chunk
	}
	if m.mapped+chunkBytes > m.limit {
		return nil
	}
	chunk, err := offheap.Map(chunkBytes)
	if err != nil {
		return nil // carrying only saves reads, so it is not an error
	}
	m.mapped += chunkBytes
	return chunk
}

// HasRoom reports whether a quarter of the limit is free.
func (m *Memory) HasRoom() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limit-m.mapped+int64(len(m.free))*chunkBytes >= m.limit/4
}

// HandOver adds the copies to those that wait to be written.
func (m *Memory) HandOver(b *Buckets) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, b)
}

// Waiting is the number of Buckets that wait to be written.
func (m *Memory) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting)
}

// Next removes and returns the Buckets that have waited longest, or nil if there are none.
func (m *Memory) Next() *Buckets {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.waiting
	if len(w) == 0 {
		return nil
	}
	b := w[0]
	copy(w, w[1:])
	w[len(w)-1] = nil
	m.waiting = w[:len(w)-1]
	return b
}

// DropFirst frees the first chunk, because the next Pull may already need it.
func (m *Memory) DropFirst(b *Buckets) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, b.chunks[0])
	m.trimLocked()
	last := copy(b.chunks, b.chunks[1:])
	b.chunks[last] = nil
	b.chunks = b.chunks[:last]
}

// Drop frees all copies. b must not be used afterwards.
func (m *Memory) Drop(b *Buckets) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, b.chunks...)
	m.trimLocked()
	clear(b.chunks)
	b.chunks, b.used = b.chunks[:0], 0
	if len(m.idle) < refpool.MaxIdle {
		m.idle = append(m.idle, b)
	}
}

// Close frees the memory of all copies. REQUIRES: only waiting Buckets are left.
func (m *Memory) Close() error {
	for b := m.Next(); b != nil; b = m.Next() {
		m.Drop(b)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, chunk := range m.free {
		errs = append(errs, offheap.Unmap(chunk))
	}
	m.free, m.mapped = nil, 0
	return errors.Join(errs...)
}
