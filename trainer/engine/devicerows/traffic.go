package devicerows

import (
	"sync/atomic"
	"time"
)

// Traffic is how many rows of passes came to a device, or left it.
type Traffic struct {
	Uploaded   int64 // from the host
	Late       int64 // of these, those whose copy had not begun when their pass did, for which the device has waited
	Kept       int64 // were there already, from the pass before
	Downloaded int64 // to the host
}

// traffic counts that of a device but for what its lanes count.
type traffic struct{ late, kept atomic.Int64 }

// Traffic returns that of device number d of those that New got. It may be called from any goroutine.
func (r *Rows) Traffic(d int) Traffic {
	p := r.parts[d]
	return Traffic{Uploaded: p.bringing.copied.Load(), Late: p.traffic.late.Load(), Kept: p.traffic.kept.Load(), Downloaded: p.fetching.copied.Load()}
}

// Waited is how long Begin has taken in all, which is next to nothing where rows were there before. It may be
// called from any goroutine.
func (r *Rows) Waited() time.Duration { return time.Duration(r.waited.Load()) }

// countLate notes what the devices have to wait for when the next pass begins.
func (r *Rows) countLate() {
	for _, p := range r.parts {
		p.traffic.late.Add(int64(len(p.bringing.list.rows) - p.bringing.begun))
	}
}

// countKept notes how many rows of the next pass stay.
func (r *Rows) countKept(of *pass) {
	for d, p := range r.parts {
		p.traffic.kept.Add(int64(of.kept[d]))
	}
}
