package remote

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"aibox/internal/panics"
)

// chunkCache caches the most recently used chunks of files in a remote directory. It fetches
// several at once: those that several readers ask for, and, if a file is read sequentially, those
// that follow.
type chunkCache struct {
	d    *Directory
	ctx  context.Context
	stop context.CancelFunc

	ahead sync.WaitGroup // fetches of chunks that no reader has asked for yet

	mu   sync.Mutex
	cond sync.Cond // on mu; signals that a chunk is no longer busy

	// Under mu:

	chunks []*readChunk
	places int // limit on the number of chunks
	busy   int // chunks being fetched
	runs   map[*arrivingFile]chunkRun
	clock  int64
	stats  ReadingStats
}

// ReadingStats are the statistics of a Reading.
type ReadingStats struct {
	FetchedBytes int64 // from the remote directory
	Fetches      int64 // number of chunks fetched
	Hits         int64 // number of chunks found in the cache
	CacheBytes   int64 // memory of the cache
}

// ReadingCacheBytes is the largest size of the cache of a Reading.
const ReadingCacheBytes = 32 << 20

// readingFetches is the largest number of chunks that a Reading fetches at once.
const readingFetches = 8

// readChunk is a chunk in the cache.
type readChunk struct {
	part *arrivingPart
	i    int
	data []byte // with capacity chunkBytes
	used int64  // value of the clock at the last use
	busy bool   // being fetched
}

// chunkRun says how a file was last read.
type chunkRun struct {
	end    int64 // offset in the file of the end of the last requested chunk
	length int   // number of chunks requested one after the other, including the last; 0 if none was
}

func newChunkCache(d *Directory) *chunkCache {
	h := &chunkCache{d: d, places: ReadingCacheBytes / chunkBytes, runs: make(map[*arrivingFile]chunkRun)}
	h.cond.L = &h.mu
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// close ends fetching. Waiting readers get an error.
func (h *chunkCache) close() {
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	h.ahead.Wait()
}

// bring copies the bytes of a file at offset into buf, and reports whether buf had different bytes.
func (h *chunkCache) bring(f *arrivingFile, buf []byte, offset int64) (changed bool, err error) {
	f.each(offset, offset+int64(len(buf)), func(p *arrivingPart, i int) bool {
		at := p.offset + int64(i)*chunkBytes // of the chunk
		from, to := max(offset, at), min(offset+int64(len(buf)), at+p.chunk(i))
		var other bool
		other, err = h.copyChunk(f, p, i, from-at, buf[from-offset:to-offset])
		changed = changed || other
		return err == nil
	})
	return changed, err
}

// copyChunk copies bytes of a chunk, from an offset in it on, into buf, and reports whether buf had
// different bytes.
func (h *chunkCache) copyChunk(f *arrivingFile, p *arrivingPart, i int, from int64, buf []byte) (changed bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ahead := h.aheadLocked(f, p, i)
	for {
		c := h.lookLocked(p, i)
		switch {
		case c != nil && c.busy:
			h.cond.Wait()
			continue
		case c != nil:
			h.stats.Hits++
			h.fetchAheadLocked(f, p, i, ahead)
		default:
			if c = h.claimLocked(p, i); c == nil {
				h.cond.Wait()
				continue
			}
			h.fetchAheadLocked(f, p, i, ahead)
			if err := h.fetchLocked(c, f, p, i); err != nil {
				return false, err
			}
		}
		h.clock++
		c.used = h.clock
		have := c.data[from:][:len(buf)]
		changed = !bytes.Equal(have, buf)
		copy(buf, have)
		return changed, nil
	}
}

// aheadLocked records that a chunk is requested, and returns how many of the following chunks are
// worth fetching: twice as many as were requested one after the other before it, unless that takes
// much of the cache. REQUIRES: h.mu is held.
func (h *chunkCache) aheadLocked(f *arrivingFile, p *arrivingPart, i int) int {
	run, at := h.runs[f], p.offset+int64(i)*chunkBytes
	end := at + p.chunk(i)
	switch {
	case run.length > 0 && run.end == end: // the same chunk again
	case run.length > 0 && run.end == at:
		run.length++
	default:
		run.length = 1
	}
	run.end = end
	h.runs[f] = run
	return min(2*(run.length-1), readingFetches-1, h.places/4)
}

// fetchAheadLocked starts fetching up to n chunks after one, if they are not in the cache and there
// is room for them. REQUIRES: h.mu is held.
func (h *chunkCache) fetchAheadLocked(f *arrivingFile, p *arrivingPart, i, n int) {
	at := p.offset + int64(i)*chunkBytes + p.chunk(i)
	f.each(at, f.Bytes, func(p *arrivingPart, i int) bool {
		if n--; n < 0 || h.ctx.Err() != nil {
			return false
		}
		if h.lookLocked(p, i) != nil {
			return true
		}
		c := h.claimLocked(p, i)
		if c == nil {
			return false
		}
		h.ahead.Go(func() {
			defer panics.Exit("fetching what is read next")
			h.mu.Lock()
			defer h.mu.Unlock()
			_ = h.fetchLocked(c, f, p, i) // a reader that asks for it tries again, and reports the error
		})
		return true
	})
}

// lookLocked returns a chunk in the cache; nil if it is not there. REQUIRES: h.mu is held.
func (h *chunkCache) lookLocked(p *arrivingPart, i int) *readChunk {
	for _, c := range h.chunks {
		if c.part == p && c.i == i {
			return c
		}
	}
	return nil
}

// claimLocked returns a place in the cache for a chunk that the caller must fetch; nil if too many
// are being fetched already. REQUIRES: h.mu is held.
func (h *chunkCache) claimLocked(p *arrivingPart, i int) *readChunk {
	if h.busy == readingFetches {
		return nil
	}
	c := h.freeLocked()
	if c != nil {
		h.busy++
		h.clock++
		c.part, c.i, c.busy, c.used = p, i, true, h.clock
	}
	return c
}

// freeLocked returns a place in the cache: a new one, or that of the least recently used chunk; nil
// if all are being fetched. REQUIRES: h.mu is held.
func (h *chunkCache) freeLocked() (free *readChunk) {
	if len(h.chunks) < h.places {
		free = &readChunk{data: make([]byte, chunkBytes)}
		h.chunks = append(h.chunks, free)
		h.stats.CacheBytes += chunkBytes
		return free
	}
	for _, c := range h.chunks {
		if !c.busy && (free == nil || c.used < free.used) {
			free = c
		}
	}
	return free
}

// fetchLocked fetches a chunk into the place in the cache that was claimed for it. REQUIRES: h.mu
// is held; it is released meanwhile.
func (h *chunkCache) fetchLocked(c *readChunk, f *arrivingFile, p *arrivingPart, i int) error {
	h.mu.Unlock()
	err := h.d.attempts(f.Name, func() error {
		s := partStream{d: h.d, ctx: h.ctx, p: p.Part}
		return errors.Join(s.read(int64(i)*chunkBytes, c.data[:p.chunk(i)]), s.close())
	}, func() {})
	h.mu.Lock()
	c.busy = false
	h.busy--
	h.cond.Broadcast()
	if err != nil {
		c.part, c.used = nil, 0
		return err
	}
	h.stats.Fetches++
	h.stats.FetchedBytes += p.chunk(i)
	return nil
}

// forget removes from the cache the chunks that contain the bytes [from, to) of a file.
func (h *chunkCache) forget(f *arrivingFile, from, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.each(from, to, func(p *arrivingPart, i int) bool {
		if c := h.lookLocked(p, i); c != nil && !c.busy {
			c.part, c.used = nil, 0
		}
		return true
	})
}
