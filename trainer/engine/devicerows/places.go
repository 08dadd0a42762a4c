package devicerows

// places allocates places for rows in a device's memory. They are numbered from 0.
type places struct {
	room  int     // how many places there is memory for
	first int     // places from first on have not been used yet
	free  []int32 // free places below first
}

// take returns a place that is free. REQUIRES: there is room.
func (p *places) take() int32 {
	if n := len(p.free); n > 0 {
		at := p.free[n-1]
		p.free = p.free[:n-1]
		return at
	}
	p.first++
	return int32(p.first - 1)
}

// give gives places back.
func (p *places) give(at []int32) { p.free = append(p.free, at...) }

// clear gives all places back.
func (p *places) clear() { p.first, p.free = 0, p.free[:0] }

// missing is by how many rows memory must grow so that n places can be taken.
func (p *places) missing(n int) int { return max(0, p.first+n-len(p.free)-p.room) }

// rowBytes is the size of a row in device memory, and keyBytes that of its key.
func (r *Rows) rowBytes() int { return 4 * r.Layout.Words() }

const keyBytes = 8

// bytesPerRow is the size of a row with its key, if keys are needed.
func (r *Rows) bytesPerRow() int {
	if r.keyed() {
		return r.rowBytes() + keyBytes
	}
	return r.rowBytes()
}
