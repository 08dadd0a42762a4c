package rowcache

import (
	"fmt"
	"strings"
)

// rules describe a policy. All policies order idle rows by how often they were used,
// and find the least used rows in the same way (victims.go).
type rules struct {
	name string
	// history says that a row that comes back from SSD starts with the number of uses that is
	// passed to Insert. Otherwise it starts from zero.
	history bool
	// aging says that a row's uses are halved with every epoch without a use.
	aging bool
	// window says that rows that announced passes need stay, those needed soonest longest.
	window bool
}

// The policies. See doc.go for how they compare.
const (
	LRULFU    = "lru_lfu"
	History   = "history"
	Lookahead = "lookahead"
)

var policies = []rules{
	{name: LRULFU},
	{name: History, history: true, aging: true},
	{name: Lookahead, history: true, aging: true, window: true},
}

// Policies returns the names that Options.Policy may have.
func Policies() []string {
	names := make([]string, len(policies))
	for i, p := range policies {
		names[i] = p.name
	}
	return names
}

func policyNamed(name string) (rules, error) {
	for _, p := range policies {
		if p.name == name {
			return p, nil
		}
	}
	return rules{}, fmt.Errorf("rowcache: unknown policy %q: want one of %s", name, strings.Join(Policies(), ", "))
}

// An epoch lasts for epochUses pins per row that the cache can hold. That is long enough to measure
// a steady distribution well: epochs of a third of that length cost 1 % of the hits on the trace of
// bench/policies. It is short enough that rows leave that were popular only yesterday.
const epochUses = 32

// ranks counts the idle rows of each rank, and the clean ones among them. It is updated with every
// change of a row's state, so that Victims knows the rank up to which rows must leave before it
// examines any row.
type ranks struct {
	idle, clean rankCounts
}

type rankCounts struct {
	byUses  [maxUses + 1]int64               // those that no announced pass needs
	byGroup [groupMask>>groupShift + 1]int64 // those needed, by group
	rows    int64
}

func (r *ranks) add(s uint32)    { r.count(s, 1) }
func (r *ranks) remove(s uint32) { r.count(s, -1) }

func (r *ranks) count(s uint32, n int64) {
	r.idle.count(s, n)
	if s&uint32(Dirty) == 0 {
		r.clean.count(s, n)
	}
}

func (k *rankCounts) count(s uint32, n int64) {
	k.rows += n
	if g := group(s); g != 0 {
		k.byGroup[g] += n
	} else {
		k.byUses[uses(s)] += n
	}
}
