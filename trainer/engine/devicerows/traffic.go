package devicerows

import (
	"sync/atomic"
	"time"
)

// Traffic counts the rows of passes that came to a device, stayed there, or left it.
type Traffic struct {
	Uploaded   int64 // copied from the host
	Late       int64 // uploaded rows whose copy had not begun when their pass did, so that the device waited
	Kept       int64 // already there, from the pass before
	Downloaded int64 // copied to the host
}

// traffic is the counts of Traffic that the lanes do not have.
type traffic struct{ late, kept atomic.Int64 }

// Traffic returns the counts of the device at index d in the argument of New. It may be called from
// any goroutine.
func (r *Rows) Traffic(d int) Traffic {
	p := r.parts[d]
	return Traffic{Uploaded: p.bringing.copied.Load(), Late: p.traffic.late.Load(), Kept: p.traffic.kept.Load(), Downloaded: p.fetching.copied.Load()}
}

// Waited is the total time in Begin, which is next to nothing if rows arrived before their pass
// began. It may be called from any goroutine.
func (r *Rows) Waited() time.Duration { return time.Duration(r.waited.Load()) }

// countLate counts the rows for which the devices have to wait when the next pass begins.
func (r *Rows) countLate() {
	for _, p := range r.parts {
		p.traffic.late.Add(int64(len(p.bringing.list.rows) - p.bringing.begun))
	}
}

// countKept counts the rows of a pass that stay from the pass before.
func (r *Rows) countKept(of *pass) {
	for d, p := range r.parts {
		p.traffic.kept.Add(int64(of.kept[d]))
	}
}
