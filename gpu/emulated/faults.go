package emulated

import (
	"slices"

	"aibox/gpu"
)

// faults are failures to come.
type faults struct {
	calls, operations int // until the failure; 0: none
	call, operation   gpu.Kind
	allCalls          int // counted so far
}

// FailCall makes the n-th call from now on fail; 1 is the next. Calls are all those of a
// platform and what comes from it that return an error, except for Free and Close. A kind that breaks
// devices breaks that of the call, DeviceLost also the physical one. 0 ends that.
func (p *Platform) FailCall(n int, kind gpu.Kind) { p.faults.calls, p.faults.call = n, kind }

// FailOperation makes the n-th operation that is enqueued from now on fail when it runs.
func (p *Platform) FailOperation(n int, kind gpu.Kind) {
	p.faults.operations, p.faults.operation = n, kind
}

// Calls counts the calls so far, those that FailCall means.
func (p *Platform) Calls() int { return p.faults.allCalls }

// Operations counts the operations that have been enqueued so far.
func (p *Platform) Operations() int { return p.operations }

// Pending counts those that have not run yet.
func (p *Platform) Pending() int { return len(p.pending) }

// injected returns the error with which the current call of d must fail.
func (p *Platform) injected(d *device) error {
	f := &p.faults
	f.allCalls++
	if f.calls--; f.calls != 0 {
		f.calls = max(f.calls, 0)
		return nil
	}
	if d != nil && f.call.Breaks() {
		_ = d.fail(f.call, "", "injected by a test")
		return d.tell()
	}
	e := &gpu.Error{Kind: f.call, Device: -1, Reason: "injected by a test"}
	if d != nil && f.call == gpu.OutOfMemory {
		e.Total = d.Info().MemoryBytes
		e.Free = e.Total - p.used[d.number]
	}
	return e
}

// next returns the fault of the operation that is being enqueued.
func (f *faults) next() gpu.Kind {
	if f.operations--; f.operations != 0 {
		f.operations = max(f.operations, 0)
		return 0
	}
	return f.operation
}

// fail marks d as broken, unless it is already, and returns its error.
func (d *device) fail(kind gpu.Kind, during, reason string) *gpu.Error {
	broken := []*device{d}
	if kind == gpu.DeviceLost {
		d.p.lost[d.number] = true
		for _, o := range d.p.open {
			if o.number == d.number {
				broken = append(broken, o)
			}
		}
	}
	for _, b := range broken {
		if b.broken == nil {
			b.broken = &gpu.Error{Kind: kind, Device: b.number, During: during, Reason: reason}
		}
	}
	return d.broken
}

// Occupy simulates another program that uses all but free bytes of a device.
func (p *Platform) Occupy(number int, free int64) error {
	other, err := p.Open(number)
	if err == nil {
		_, err = other.Alloc("of another program", int(other.Info().MemoryBytes-free))
	}
	return err
}

// tell returns the error of a broken device. A caller that has it knows that no operation of the
// device is running any more.
func (d *device) tell() error {
	for _, op := range slices.Clone(d.p.pending) {
		if !op.ran && slices.Contains(op.devices, d) {
			d.p.execute(op)
		}
	}
	for _, s := range d.streams {
		if len(s.last) > 0 {
			own := make(clock, s.agent+1)
			own[s.agent] = s.clock[s.agent]
			d.p.host.join(own)
		}
	}
	return d.broken
}
