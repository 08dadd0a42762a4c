package cuda

import "testing"

// PinnedBytes is the pinned memory of the slots.
func (e *Engine) PinnedBytes() int64 { return e.slots[0].bytes() + e.slots[1].bytes() }

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

// Announced tells whether there is an announced pass whose rows are used.
func (e *Engine) Announced() bool { return e.held.Announced() }
