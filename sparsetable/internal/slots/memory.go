package slots

import (
	"fmt"

	"aibox/sparsetable/internal/offheap"
)

// addChunk maps memory for chunkSlots more slots.
func (x *Index) addChunk() error {
	if more := x.Bytes() + chunkBytes(x.filter.bytes) - x.captureBytes(); x.maxBytes > 0 && more > x.maxBytes {
		return fmt.Errorf("%w: %d slots take %d bytes, %d are allowed", ErrFull, (len(x.chunks)+1)*chunkSlots, more, x.maxBytes)
	}
	b, err := x.memory.Alloc(chunkSlots * slotBytes)
	if err != nil {
		return err
	}
	f, err := x.filters.Alloc(chunkSlots * x.filter.bytes)
	if err != nil {
		return err // what was taken stays for the arena to free
	}
	x.chunks = append(x.chunks, chunk{
		locations: (*[chunkSlots]uint64)(offheap.Uint64s(b[:8*chunkSlots])),
		rows:      (*[chunkSlots]uint16)(offheap.Uint16s(b[8*chunkSlots:])),
		filters:   offheap.Uint64s(f),
	})
	return nil
}

func chunkBytes(filterBytes int) int64 {
	return chunkSlots*int64(slotBytes+filterBytes) + chunkHeaderBytes
}

// BytesFor is what an index of o takes for that many rows once ShouldSplit says
// no, captures excepted, give or take the slack of two small slices.
func BytesFor(o Options, rows int64) int64 {
	o.ensureDefaults()
	slots := max(1, (rows+int64(o.TargetRows)-1)/int64(o.TargetRows))
	chunks := (slots + chunkSlots - 1) / chunkSlots
	pages := (slots + int64(o.PageSlots) - 1) / int64(o.PageSlots)
	return chunks*chunkBytes(o.FilterBytes) + bitmapBytes(pages)
}

// Bytes is the memory that the index holds: locations, rows, filters, the list
// of chunks, the marks of pages and the copies of a running capture. Whole
// chunks count, touched or not.
func (x *Index) Bytes() int64 {
	return x.FilterTotalBytes() + int64(len(x.chunks))*chunkSlots*slotBytes +
		int64(cap(x.chunks))*chunkHeaderBytes + int64(cap(x.dirty))*8 + x.captureBytes()
}

// CaptureBytes is the part of Bytes that a running capture holds.
func (x *Index) CaptureBytes() int64 { return x.captureBytes() }

// FilterTotalBytes is the part of Bytes that is filters.
func (x *Index) FilterTotalBytes() int64 {
	return int64(len(x.chunks)) * chunkSlots * int64(x.filter.bytes)
}

// FilterBytes is the size of the filter of a slot, 0 without filters.
func (x *Index) FilterBytes() int { return x.filter.bytes }

// DropFilters frees the filters, when a growing table needs their memory for
// something better. The index goes on as one of FilterBytes 0.
func (x *Index) DropFilters() error {
	x.finishCaptureCopies()
	x.filter = shapeOf(0, int(x.targetRows))
	for i := range x.chunks {
		x.chunks[i].filters = nil
	}
	return x.filters.Release()
}

// Stats describes how rows spread over slots.
type Stats struct {
	Slots   uint32 `json:"slots"`
	Empty   uint32 `json:"empty"`    // slots without a bucket
	Unknown uint32 `json:"unknown"`  // slots whose filter is unknown
	Rows    int64  `json:"rows"`     // in all buckets
	MaxRows int    `json:"max_rows"` // in one bucket
	// Occupancy counts the slots by rows: [i] those with 4i to 4i+3 rows, the
	// last those with that many or more.
	Occupancy [65]uint32 `json:"occupancy"`
}

// Stats counts; it takes a pass over all slots.
func (x *Index) Stats() Stats {
	st := Stats{Slots: x.n}
	for s := range x.n {
		rows := x.Rows(s)
		st.Rows += int64(rows)
		st.MaxRows = max(st.MaxRows, rows)
		st.Occupancy[min(rows/4, len(st.Occupancy)-1)]++
		if x.Location(s) == 0 {
			st.Empty++
		} else if x.FilterUnknown(s) {
			st.Unknown++
		}
	}
	return st
}
