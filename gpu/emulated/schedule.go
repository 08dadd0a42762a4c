package emulated

// ready tells whether all that must run before op has run.
func (op *operation) ready() bool {
	for _, o := range op.after {
		if !o.ran {
			return false
		}
	}
	return true
}

// step runs a random one of the operations that are ready, if there is one.
func (p *Platform) step(among []*operation) {
	var ready []*operation
	for _, op := range among {
		if !op.ran && op.ready() {
			ready = append(ready, op)
		}
	}
	if len(ready) > 0 {
		p.execute(ready[p.rng.IntN(len(ready))])
	}
}

// hurry runs some operations before anything waits for them.
func (p *Platform) hurry() {
	for len(p.pending) > 0 && p.rng.Float64() < p.eager {
		p.step(p.pending)
	}
}

// stray is the probability that a waiting call runs an operation that it does not need.
const stray = 0.1

// wait runs operations until those of last have run, for a call of d, after which the host has the
// clock known. Operations may be nil.
func (p *Platform) wait(d *device, known clock, last ...*operation) error {
	needed := p.needed(last)
	for left := len(needed); left > 0; {
		if p.rng.Float64() < stray {
			p.step(p.pending)
		} else {
			p.step(needed)
		}
		left = 0
		for _, op := range needed {
			if !op.ran {
				needed[left] = op
				left++
			}
		}
		needed = needed[:left]
	}
	p.host.join(known)
	if p.hazard != nil {
		return p.hazard
	}
	if d.broken != nil {
		return d.tell()
	}
	return nil
}

// needed returns the operations that must run for those of last to have run, in the order in which
// they were enqueued.
func (p *Platform) needed(last []*operation) []*operation {
	marked := map[*operation]bool{}
	stack := append([]*operation(nil), last...)
	for len(stack) > 0 {
		op := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if op == nil || op.ran || marked[op] {
			continue
		}
		marked[op] = true
		stack = append(stack, op.after...)
	}
	var needed []*operation
	for _, op := range p.pending {
		if marked[op] {
			needed = append(needed, op)
		}
	}
	return needed
}
