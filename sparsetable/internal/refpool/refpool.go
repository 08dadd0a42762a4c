// Package refpool recycles the reference lists of released working sets.
package refpool

import "slices"

// MaxIdle is the number of lists kept: enough for a working set that is pulled ahead, one that is
// being trained and one that was released.
const MaxIdle = 3

// Pool has the unused lists. The caller guards it.
type Pool struct {
	idle [][]uint32
	// Held is the size in bytes of the lists that are kept and of those in use. A caller that makes
	// a new list adds its size.
	Held int64
}

// Take returns a list of n references with arbitrary contents, or nil if none is suitable.
func (p *Pool) Take(n int) []uint32 {
	for i, r := range p.idle {
		if cap(r) >= n && cap(r) <= 2*n {
			last := len(p.idle) - 1
			p.idle[i] = p.idle[last]
			p.idle = p.idle[:last]
			return r[:n]
		}
	}
	return nil
}

// Give returns a list to the pool.
func (p *Pool) Give(refs []uint32) {
	if len(p.idle) < MaxIdle {
		p.idle = append(p.idle, refs)
	} else {
		p.Held -= bytes(refs)
	}
}

// DropSmaller frees the lists that are too short for n references, and returns their bytes.
func (p *Pool) DropSmaller(n int) (freed int64) {
	p.idle = slices.DeleteFunc(p.idle, func(r []uint32) bool {
		if cap(r) >= n {
			return false
		}
		freed += bytes(r)
		return true
	})
	p.Held -= freed
	return freed
}

// Drop frees all lists that are not in use, and returns their bytes.
func (p *Pool) Drop() (freed int64) {
	for _, r := range p.idle {
		freed += bytes(r)
	}
	p.idle = nil
	p.Held -= freed
	return freed
}

func bytes(refs []uint32) int64 { return 4 * int64(cap(refs)) }
