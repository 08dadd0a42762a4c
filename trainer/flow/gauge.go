package flow

import "sync/atomic"

// Gauge is a number of bytes and its maximum so far.
type Gauge struct{ now, most atomic.Int64 }

func (g *Gauge) add(n int64) {
	now := g.now.Add(n)
	for {
		most := g.most.Load()
		if now <= most || g.most.CompareAndSwap(most, now) {
			return
		}
	}
}

// Set sets the gauge to n.
func (g *Gauge) Set(n int64) { g.add(n - g.now.Load()) }

// Most returns the maximum so far.
func (g *Gauge) Most() int64 { return g.most.Load() }
