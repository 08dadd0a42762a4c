package slots

import (
	"errors"
	"unsafe"

	"aibox/sparsetable/internal/offheap"
)

// addChunk maps memory for chunkSlots more slots.
func (x *Index) addChunk() error {
	b, err := offheap.Map(chunkSlots * slotBytes)
	if err != nil {
		return err
	}
	c := chunk{locations: (*[chunkSlots]uint64)(offheap.Uint64s(b)), marks: new(marks)}
	if x.filter.bytes > 0 {
		if c.memory, err = offheap.Map(chunkSlots * x.filter.bytes); err != nil {
			return errors.Join(err, offheap.Unmap(b))
		}
		c.filters = offheap.Uint64s(c.memory)
	}
	x.chunks = append(x.chunks, c)
	return nil
}

// unmap frees the memory of a chunk and leaves the chunk empty.
func (c *chunk) unmap() error {
	b := unsafe.Slice((*byte)(unsafe.Pointer(c.locations)), chunkSlots*slotBytes)
	err := errors.Join(offheap.Unmap(b), c.unmapFilters())
	*c = chunk{}
	return err
}

func (c *chunk) unmapFilters() error {
	if c.memory == nil {
		return nil
	}
	err := offheap.Unmap(c.memory)
	c.filters, c.memory = nil, nil
	return err
}

func chunkBytes(filterBytes int) int64 {
	return chunkSlots*int64(slotBytes+filterBytes) + marksBytes + chunkHeaderBytes
}

// BytesFor is the size in bytes of an index of o for that many rows, with all the slots that
// ShouldSplit asks for. It does not include captures and the slack of two small slices.
func BytesFor(o Options, rows int64) int64 {
	o.ensureDefaults()
	slots := max(1, (rows+int64(o.TargetRows)-1)/int64(o.TargetRows))
	chunks := (slots + chunkSlots - 1) / chunkSlots
	pages := (slots + int64(o.PageSlots) - 1) / int64(o.PageSlots)
	return chunks*chunkBytes(o.FilterBytes) + bitmapBytes(pages)
}

// SlotsIn is the number of slots that fit in that many bytes.
func SlotsIn(bytes int64, filterBytes int) int64 {
	chunks := bytes / (chunkBytes(filterBytes) + bitmapBytes(chunkSlots/DefaultPageSlots))
	return chunks * chunkSlots
}

// GrowthBytes is by how much Bytes grows when the index gets n more slots. It does not include the
// slack of two small slices.
func (x *Index) GrowthBytes(n int) int64 {
	chunks := (int64(x.n)+int64(n)+chunkSlots-1)/chunkSlots - int64(len(x.chunks))
	return chunks * (chunkBytes(x.filter.bytes) + chunkSlots>>x.pageShift/8)
}

// Bytes is the memory that the index holds: locations, filters, the list of chunks, the marks of
// slots and pages, and the copies of a running capture. Chunks count as a whole, even if their
// memory has not been touched.
func (x *Index) Bytes() int64 {
	return x.FilterTotalBytes() + int64(len(x.chunks))*(chunkSlots*slotBytes+marksBytes) +
		int64(cap(x.chunks))*chunkHeaderBytes + int64(cap(x.dirty))*8 + x.captureBytes()
}

// CaptureBytes is the part of Bytes that a running capture holds.
func (x *Index) CaptureBytes() int64 { return x.captureBytes() }

// FilterTotalBytes is the part of Bytes that the filters take.
func (x *Index) FilterTotalBytes() int64 {
	return int64(len(x.chunks)) * chunkSlots * int64(x.filter.bytes)
}

// FilterBytes is the size of the filter of a slot, 0 without filters.
func (x *Index) FilterBytes() int { return x.filter.bytes }

// Stats describes the distribution of buckets over slots.
type Stats struct {
	Slots   uint32 `json:"slots"`
	Empty   uint32 `json:"empty"`    // slots without a bucket
	Unknown uint32 `json:"unknown"`  // slots whose filter is unknown
	MaxSize int    `json:"max_size"` // of a bucket
	// Sizes[i] is the number of slots whose bucket has size i; the last element also counts larger
	// ones.
	Sizes [65]uint32 `json:"sizes"`
}

// Stats counts the slots in one pass over all of them. size returns the size, at least 1, of the
// bucket at a location.
func (x *Index) Stats(size func(location uint64) int) Stats {
	st := Stats{Slots: x.n}
	for s := range x.n {
		l := x.Location(s)
		if l == 0 {
			st.Empty++
			st.Sizes[0]++
			continue
		}
		n := size(l)
		st.MaxSize = max(st.MaxSize, n)
		st.Sizes[min(n, len(st.Sizes)-1)]++
		if x.FilterUnknown(s) {
			st.Unknown++
		}
	}
	return st
}
