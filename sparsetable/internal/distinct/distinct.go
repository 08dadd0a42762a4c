// Package distinct estimates how many distinct keys there are among many.
package distinct

import (
	"iter"
	"maps"
	"math/bits"

	"aibox/sparsetable/internal/slots"
)

// maxSample bounds the sample; the standard error of estimates is then 2 %.
const maxSample = 4096

// Keys estimates how many distinct keys were added (adaptive sampling, Wegman; Flajolet 1990). It
// keeps the keys whose hash begins with depth zero bits, and increases depth whenever there are too
// many. Only the field Hash must be set.
type Keys struct {
	Hash  slots.Hasher
	depth int
	keys  map[uint64]struct{}
}

// Add adds a key with its hash.
func (d *Keys) Add(key, hash uint64) {
	if bits.LeadingZeros64(hash) < d.depth {
		return
	}
	if d.keys == nil {
		d.keys = make(map[uint64]struct{}, maxSample)
	}
	d.keys[key] = struct{}{}
	for len(d.keys) >= maxSample {
		d.depth++
		for k := range d.keys {
			if bits.LeadingZeros64(d.Hash.Of(k)) < d.depth {
				delete(d.keys, k)
			}
		}
	}
}

// Number is the estimate. It is exact as long as all keys are kept.
func (d *Keys) Number() int64 { return int64(len(d.keys)) << d.depth }

// Kept is the number of keys kept.
func (d *Keys) Kept() int { return len(d.keys) }

// Keys yields the kept keys, in no particular order.
func (d *Keys) Keys() iter.Seq[uint64] { return maps.Keys(d.keys) }
