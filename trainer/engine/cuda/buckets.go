package cuda

import (
	"slices"

	"aibox/gpu"
	"aibox/trainer/engine/devicememory"
	"aibox/trainer/ops"
	"aibox/trainer/program"
)

// Gradients are all-reduced in buckets, each as soon as the devices have computed it. All buckets
// but the last are all-reduced in a stream of their own, while the devices compute the gradients of
// the next. The last one, with the probe, is all-reduced in the compute stream, which has nothing
// else to do before the update:
//
//	compute  gradients | ready  gradients | ready  gradients  wait  sum  update
//	sums               sum                sum | summed
//
// Each number is the same sum as in a single all-reduce. So that a bucket is one array, gradients
// lie in memory in the order in which they are completed. Within a bucket they are sorted by the
// configuration of their optimizer, so that few launches update the parameters (update.go).

// bucketBytes is the least size of a bucket, except the last. At about this size an all-reduce over
// NVLink spends as long on transfer as on start-up; this is an estimate, not a measurement.
var bucketBytes = 4 << 20

// bucket is some gradients, which lie one behind the other in the state memory.
type bucket struct {
	params    []int
	at, bytes int
	after     int // the piece of the program that completes them; unused in the last bucket
}

// completed returns for each parameter the last piece that computes or uses its gradient.
func (x *execution) completed() []int {
	last := make([]int, len(x.net.Params))
	for i, at := range x.pieces {
		s := &x.prog.Steps[at.step]
		if s.Kind == ops.KindBatchNormInput && at.part == 1 {
			continue // with several devices it uses all-reduced copies: see normInput
		}
		for _, v := range slices.Concat(s.In, s.Out) {
			if b := &x.prog.Buffers[v.Buffer]; b.Source == program.Gradient {
				last[b.Index] = i
			}
		}
	}
	return last
}

// arrange orders parameters by the piece that completes their gradient and divides them into
// buckets. An engine that only infers keeps the order of the network.
func (p *parameters) arrange(completed []int) {
	p.order = make([]int, len(p.net.Params))
	for i := range p.order {
		p.order[i] = i
	}
	if p.dense == nil {
		return
	}
	slices.SortStableFunc(p.order, func(i, j int) int { return completed[i] - completed[j] })
	first, bytes := 0, 0
	for k, i := range p.order {
		if bytes >= bucketBytes && completed[i] > completed[p.order[k-1]] {
			p.buckets = append(p.buckets, bucket{params: p.order[first:k], after: completed[p.order[k-1]]})
			first, bytes = k, 0
		}
		bytes += devicememory.Aligned(4 * p.net.Params[i].Size())
	}
	p.last.params = p.order[first:]
	for _, b := range append(slices.Clone(p.buckets), p.last) {
		slices.SortStableFunc(b.params, func(i, j int) int { return p.dense.Config(i) - p.dense.Config(j) })
	}
}

// placeGradients lays out the gradients.
func (p *parameters) placeGradients(place func(values int) int) {
	p.gradients, p.grad = p.bytes, make([]int, len(p.order))
	fill := func(b *bucket) {
		b.at = p.bytes
		for _, i := range b.params {
			p.grad[i] = place(p.size(i))
		}
		b.bytes = p.bytes - b.at
	}
	for k := range p.buckets {
		fill(&p.buckets[k])
	}
	fill(&p.last)
	p.probe = place(1)
	p.last.bytes = p.bytes - p.last.at
	p.gradientBytes = p.bytes - p.gradients
}

// region is where a device has the gradients of a bucket.
func (b bucket) region(r *replica) gpu.Region { return gpu.Part(r.state, b.at, b.bytes) }

// addUpBucket all-reduces a bucket while the devices compute other gradients.
func (e *Engine) addUpBucket(j *job, b bucket) error {
	if err := j.onEach(func(r *replica, _ part) error {
		if err := r.compute.Record(r.ready); err != nil {
			return err
		}
		return r.sums.Wait(r.ready)
	}); err != nil {
		return err
	}
	return j.addUp((*replica).summing, b.region)
}

// addUpGradients makes the compute streams wait for the sums of the other buckets, and all-reduces
// the last bucket, with the probe.
func (e *Engine) addUpGradients(j *job) error {
	if e.group == nil {
		return nil
	}
	if len(e.params.buckets) > 0 {
		if err := j.onEach(func(r *replica, _ part) error {
			if err := r.sums.Record(r.summed); err != nil {
				return err
			}
			return r.compute.Wait(r.summed)
		}); err != nil {
			return err
		}
	}
	return j.addUp((*replica).computing, e.params.last.region)
}
