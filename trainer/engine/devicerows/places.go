package devicerows

// places is which rows of a device's memory are in use. They are numbered from 0 on.
type places struct {
	room  int     // for so many rows there is memory
	first int     // from this one on, none was used so far
	free  []int32 // before it
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

// clear gives all back.
func (p *places) clear() { p.first, p.free = 0, p.free[:0] }

// lack is for how many rows memory must grow so that n can be taken.
func (p *places) lack(n int) int { return max(0, p.first+n-len(p.free)-p.room) }

// rowBytes is what a row takes in the memory of its device, and keyBytes what its key does there.
func (r *Rows) rowBytes() int { return 4 * r.Layout.Words() }

const keyBytes = 8

// bytesPerRow is both, as far as they are needed.
func (r *Rows) bytesPerRow() int {
	if r.keyed() {
		return r.rowBytes() + keyBytes
	}
	return r.rowBytes()
}
