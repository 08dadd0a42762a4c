package flow

import "sync/atomic"

// Gauge is a number of bytes that goes up and down, and the most it was.
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

// Set makes it n.
func (g *Gauge) Set(n int64) { g.add(n - g.now.Load()) }

// Most is the most that it was.
func (g *Gauge) Most() int64 { return g.most.Load() }
