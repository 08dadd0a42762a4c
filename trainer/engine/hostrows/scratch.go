package hostrows

import "sync"

// scratchPool keeps as many slices, for the gradient of a row, as were in use at the same time.
type scratchPool struct {
	mu struct {
		sync.Mutex
		unused [][]float32
		made   int // values in all slices
	}
}

func (p *scratchPool) take(n int) []float32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.mu.unused) - 1; last >= 0 {
		s := p.mu.unused[last]
		p.mu.unused = p.mu.unused[:last]
		return s
	}
	p.mu.made += n
	return make([]float32, n)
}

func (p *scratchPool) put(s []float32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.unused = append(p.mu.unused, s)
}

func (p *scratchPool) bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return 4 * int64(p.mu.made)
}
