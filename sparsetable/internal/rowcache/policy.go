package rowcache

import (
	"fmt"
	"strings"
)

// rules are what makes a policy. All of them order idle rows by how often they
// were used, and find the least used in the same way (victims.go).
type rules struct {
	name string
	// history: a row that comes back from SSD goes on counting where it
	// stopped, by what Insert is told. Otherwise it starts anew.
	history bool
	// aging: a row's uses halve with every epoch that passes without one.
	aging bool
	// window: rows that announced passes need stay, the next needed longest.
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

// Policies are the names that Options.Policy takes.
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

// epochUses x the rows that fit is how many pins make an epoch. Long enough
// that a steady distribution is measured well (a third of an epoch costs 1 %
// of the hits on the trace of bench/policies), short enough that yesterday's
// favourites leave.
const epochUses = 32

// ranks counts the idle rows by what decides their turn, and those of them that
// are clean. It follows every change of a row's state, so that Victims knows how
// far it has to go before it looks at any row.
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
