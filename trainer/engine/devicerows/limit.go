package devicerows

import (
	"math"
	"sync"

	"aibox/reader"
	"aibox/trainer/engine/devicememory"
)

// Limit is the limit on the rows of passes that the memory of the devices imposes. Any goroutine
// may use it.
type Limit struct {
	rows  *Rows
	bytes int64 // of each device, for rows and mini-batches

	mu    sync.Mutex
	needs needs // guarded by mu: the largest of the mini-batches so far, whose memory is kept
}

// Limit returns the limit for the given bytes on each device.
func (r *Rows) Limit(bytes int64) *Limit { return &Limit{rows: r, bytes: bytes} }

// Rows is how many rows a pass with these mini-batches may have, so that two such passes fit the
// devices at once.
func (l *Limit) Rows(batches []reader.Batch) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.needs = l.needs.largest(l.rows.needsOfAll(batches))
	mini := int64(l.needs.work + len(l.rows.slots)*l.needs.inputs)
	return max(1, l.rows.rowsIn(l.bytes-mini-mini/spare, 2)*int64(len(l.rows.parts)))
}

// rowsIn is how many rows of each of the given number of passes fit the given bytes of a device,
// beside the chunks to copy them.
func (r *Rows) rowsIn(bytes int64, passes int) int64 {
	each := int64(r.bytesPerRow())
	copied := each + 4 // of a row in a chunk
	ofPasses := int64(passes) * each
	if full := 2 * ring * (copied*int64(r.chunkRows(math.MaxInt/2)) + 3*devicememory.Align); bytes >= 3*full {
		return (bytes - full) / ofPasses
	}
	return (bytes - 2*ring*(copied*leastChunkRows+3*devicememory.Align)) / (ofPasses + 2*ring*copied/8)
}
