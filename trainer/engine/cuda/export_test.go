package cuda

import (
	"testing"

	"aibox/gpu"
	"aibox/reader"
)

// PinnedBytes is the pinned memory of the slots.
func (e *Engine) PinnedBytes() int64 { return e.pinned.bytes() }

// Prepared is the mini-batch that was prepared last, unless it was sent.
func (e *Engine) Prepared() *reader.Batch { return e.prepared.batch }

// NetworkBytes is DeviceBytes without rows.
func (e *Engine) NetworkBytes() int64 {
	most := int64(0)
	for _, r := range e.replicas {
		most = max(most, r.bytes())
	}
	return most
}

// SetBucketBytes makes buckets of gradients at least so large, until the test ends.
func SetBucketBytes(t testing.TB, n int) {
	was := bucketBytes
	bucketBytes = n
	t.Cleanup(func() { bucketBytes = was })
}

// BetweenParameters returns what the first device has between the parameters, their gradients, the
// parts of their state and so on.
func (e *Engine) BetweenParameters() (between []float32, err error) {
	p, r := e.params, e.replicas[0]
	pinned, err := r.dev.AllocPinned("state", p.bytes)
	if err != nil {
		return nil, err
	}
	if err := r.compute.Copy(gpu.All(pinned), gpu.All(r.state)); err != nil {
		return nil, err
	}
	if err := r.compute.Synchronize(); err != nil {
		return nil, err
	}
	all, err := numbers(pinned, 0, p.bytes/4)
	if err != nil {
		return nil, err
	}
	has := make([]bool, len(all))
	mark := func(at int, data []float32) error {
		for i := range data {
			has[at/4+i] = true
		}
		return nil
	}
	_ = p.all(mark)
	for i, param := range p.net.Params {
		_ = mark(p.grad[i], param.Data)
	}
	_ = mark(p.probe, make([]float32, 1))
	for i, x := range all {
		if !has[i] {
			between = append(between, x)
		}
	}
	return between, pinned.Free()
}

// Announced tells whether there is an announced pass whose rows are used.
func (e *Engine) Announced() bool { return e.held.Announced() }
