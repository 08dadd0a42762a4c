package emulated

import "slices"

// Agents are the host, which is agent 0, and all streams. What an agent does is numbered, from 1
// on. A clock says for each agent up to which number its doings are known to have happened.
type clock []uint64

// join makes c know what o knows.
func (c *clock) join(o clock) {
	if len(*c) < len(o) {
		*c = append(*c, make(clock, len(o)-len(*c))...)
	}
	for i, n := range o {
		(*c)[i] = max((*c)[i], n)
	}
}

// tick counts one more doing of an agent.
func (c *clock) tick(agent int) {
	c.join(make(clock, agent+1))
	(*c)[agent]++
}

// knows tells whether a has happened before what has this clock.
func (c clock) knows(a *access) bool { return a.agent < len(c) && a.number <= c[a.agent] }

func (c clock) clone() clock { return slices.Clone(c) }

// access is that an operation, or the host, used some bytes.
type access struct {
	agent  int
	number uint64
	what   string
}
