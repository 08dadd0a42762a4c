package emulated

import "slices"

// clock is a vector clock. Its components are the agents: the host, which is agent 0, and all
// streams. The actions of an agent are numbered from 1 on. A clock says, for each agent, up to
// which number its actions are known to have happened.
type clock []uint64

// join merges o into c.
func (c *clock) join(o clock) {
	if len(*c) < len(o) {
		*c = append(*c, make(clock, len(o)-len(*c))...)
	}
	for i, n := range o {
		(*c)[i] = max((*c)[i], n)
	}
}

// tick counts one more action of an agent.
func (c *clock) tick(agent int) {
	c.join(make(clock, agent+1))
	(*c)[agent]++
}

// knows reports whether a happened before the action with this clock.
func (c clock) knows(a *access) bool { return a.agent < len(c) && a.number <= c[a.agent] }

func (c clock) clone() clock { return slices.Clone(c) }

// access is an access of an operation, or of the host, to some bytes.
type access struct {
	agent  int
	number uint64
	what   string
}
