package kernel

import "unsafe"

// Copier copies numbers on all threads. It copies all slices that were added in one go, because
// waking threads takes some microseconds. The zero value has no slices.
type Copier struct {
	parts []copied
	words int
	task  func(lo, hi int) // run, bound once
}

// copied is the words of two slices.
type copied struct {
	to, from []uint32
	table    []int32 // what becomes of from; nil: it is copied as it is
	at       int     // of the first word among those of all
}

// copyGrain is how many words one thread copies at a time. CopyBeside uses one more thread per
// besideGrain words, which take about 100 microseconds; waking a thread takes half of that on a
// virtual machine.
const (
	copyGrain   = 32 << 10
	besideGrain = 96 << 10
)

// CopyTo adds a copy of from to the beginning of to.
func CopyTo[T int32 | float32](c *Copier, to, from []T) {
	c.add(wordsOf(to[:len(from)]), wordsOf(from), nil)
}

// Find adds the operation to[i] = table[from[i]].
func (c *Copier) Find(to, from, table []int32) { c.add(wordsOf(to[:len(from)]), wordsOf(from), table) }

func (c *Copier) add(to, from []uint32, table []int32) {
	if len(from) > 0 {
		c.parts = append(c.parts, copied{to, from, table, c.words})
		c.words += len(from)
	}
}

// Copy copies all that was added.
func (c *Copier) Copy() { c.copyOn(Threads()) }

// CopyBeside is Copy on at most half of the threads, for data that nobody waits for yet.
func (c *Copier) CopyBeside() { c.copyOn(min((Threads()+1)/2, 1+c.words/besideGrain)) }

func (c *Copier) copyOn(threads int) {
	if c.task == nil {
		c.task = c.run
	}
	parallelOn(threads, c.words, copyGrain, ranger(c.task))
	clear(c.parts)
	c.parts, c.words = c.parts[:0], 0
}

func (c *Copier) run(lo, hi int) {
	for i := range c.parts {
		p := &c.parts[i]
		from, end := max(lo, p.at)-p.at, min(hi, p.at+len(p.from))-p.at
		switch {
		case from >= end:
		case p.table == nil:
			copy(p.to[from:end], p.from[from:end])
		default:
			to := p.to[from:end]
			for i, row := range p.from[from:end] {
				to[i] = uint32(p.table[row])
			}
		}
	}
}

// wordsOf is the memory of a slice.
func wordsOf[T int32 | float32](s []T) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
