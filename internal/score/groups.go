package score

import (
	"cmp"
	"math"
	"slices"

	"aibox/internal/splitmix"
)

// Groups computes the AUC within each group (a user, a query) and its mean
// over the groups, weighted by the groups' total weights. A group with one
// class only has no AUC and is left out.
//
// It keeps 16 bytes per example. When more than limit examples would be kept, it keeps only the
// groups whose hash is in one half of the hash range, then in a quarter, and so on. Groups are kept
// or dropped as a whole, and the random sample depends only on the data, not on the order of
// examples.
type Groups struct {
	limit    int64
	sampling uint // groups whose hash has so many leading zeros are kept
	kept     []grouped
}

// grouped is one example: its weight, negated for a negative.
type grouped struct {
	group  uint64
	key    uint32
	weight float32
}

// NewGroups returns a collector of at most limit examples; 0: no limit.
func NewGroups(limit int64) *Groups { return &Groups{limit: limit} }

// Add adds one example. The logit must not be NaN, the weight finite and not
// negative.
func (g *Groups) Add(group uint64, logit float32, positive bool, weight float32) {
	if weight == 0 || !g.sampled(group) {
		return
	}
	if !positive {
		weight = -weight
	}
	g.kept = append(room(g.kept), grouped{group, key(logit), weight})
	for g.limit > 0 && int64(len(g.kept)) > g.limit && g.sampling < 64 {
		g.sampling++
		g.kept = slices.DeleteFunc(g.kept, func(e grouped) bool { return !g.sampled(e.group) })
	}
}

// sampled reports whether a group is in the sample. The hash is the finalizer of
// SplitMix64, so that the sample is fair even for consecutive group numbers.
func (g *Groups) sampled(group uint64) bool {
	if g.sampling == 0 {
		return true
	}
	return splitmix.Next(group)>>(64-g.sampling) == 0
}

// GroupResult is what Groups found.
type GroupResult struct {
	AUC   float64 // NaN when no group has both classes
	Used  int     // groups with both classes
	Seen  int     // groups kept
	Share float64 // of all groups that were looked at: 1, 1/2, 1/4, …
}

// AUC computes the mean. Examples may be added after it.
func (g *Groups) AUC() GroupResult {
	// Examples are sorted by group, then score, then label and weight. This is a total
	// order, so that sums do not depend on the order in which examples were added.
	slices.SortFunc(g.kept, func(a, b grouped) int {
		if a.group != b.group {
			return cmp.Compare(a.group, b.group)
		}
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.weight, b.weight)
	})
	res := GroupResult{AUC: math.NaN(), Share: math.Ldexp(1, -int(g.sampling))}
	var total, weights Sum
	for rest := g.kept; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].group == rest[0].group {
			n++
		}
		res.Seen++
		if auc, weight := groupAUC(rest[:n]); auc == auc {
			res.Used++
			total.Add(float64(auc * weight))
			weights.Add(weight)
		}
		rest = rest[n:]
	}
	if res.Used > 0 {
		res.AUC = total.Value() / weights.Value()
	}
	return res
}

// groupAUC returns the AUC of examples sorted by score, and their weight.
func groupAUC(list []grouped) (auc, weight float64) {
	var w weighted
	for i := 0; i < len(list); {
		var pos, neg float64
		for k := list[i].key; i < len(list) && list[i].key == k; i++ {
			if x := float64(list[i].weight); x > 0 {
				pos += x
			} else {
				neg -= x
			}
		}
		w.add(pos, neg)
	}
	return w.auc(), w.pos.Value() + w.neg.Value()
}

// Bytes is the memory held.
func (g *Groups) Bytes() int64 { return 16 * int64(cap(g.kept)) }

// Reset forgets all examples, and the sampling with them.
func (g *Groups) Reset() { g.kept, g.sampling = g.kept[:0], 0 }
