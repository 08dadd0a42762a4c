package score

import "math"

// Exact computes the AUC of all the examples given, ties and weights included.
//
// It keeps a sorted-order key per example, in one list for each class:
//
//	all weights 1:  uint32  key                 4 bytes per example
//	otherwise:      uint64  key << 32 | weight  8 bytes per example
//
// The lists grow by a quarter, so they take up to 1.25 times that, and 2.25 times while
// they grow. Examples of weight 0 take nothing. The result does not depend on the order of
// examples, because sums are computed in the order of the sorted keys. The zero value is
// ready.
type Exact struct {
	plain   [2][]uint32 // negatives, positives
	heavy   [2][]uint64
	isHeavy bool
}

// Add adds one example. The logit must not be NaN, the weight finite and not
// negative.
func (e *Exact) Add(logit float32, positive bool, weight float32) {
	if weight == 0 {
		return
	}
	class := 0
	if positive {
		class = 1
	}
	if weight != 1 && !e.isHeavy {
		e.becomeHeavy()
	}
	if e.isHeavy {
		e.heavy[class] = append(room(e.heavy[class]), heavyKey(key(logit), weight))
		return
	}
	e.plain[class] = append(room(e.plain[class]), key(logit))
}

func heavyKey(k uint32, weight float32) uint64 {
	return uint64(k)<<32 | uint64(math.Float32bits(weight))
}

// room returns list with space for one more, growing it by a quarter.
func room[T any](list []T) []T {
	if len(list) < cap(list) {
		return list
	}
	grown := make([]T, len(list), cap(list)+cap(list)/4+1024)
	copy(grown, list)
	return grown
}

func (e *Exact) becomeHeavy() {
	e.isHeavy = true
	for class, list := range e.plain {
		heavy := make([]uint64, 0, len(list)+len(list)/4+1024)
		for _, k := range list {
			heavy = append(heavy, heavyKey(k, 1))
		}
		e.heavy[class], e.plain[class] = heavy, nil
	}
}

// Bytes is the memory held.
func (e *Exact) Bytes() int64 {
	return 4*int64(cap(e.plain[0])+cap(e.plain[1])) + 8*int64(cap(e.heavy[0])+cap(e.heavy[1]))
}

// Reset forgets all examples and keeps the memory.
func (e *Exact) Reset() {
	for class := range 2 {
		e.plain[class], e.heavy[class] = e.plain[class][:0], e.heavy[class][:0]
	}
	if e.isHeavy {
		e.isHeavy, e.heavy = false, [2][]uint64{}
	}
}

// AUC is the exact area, or NaN unless there are examples of both classes. Further examples
// may be added after it.
func (e *Exact) AUC() float64 {
	if e.isHeavy {
		return e.heavyAUC()
	}
	neg, pos := e.plain[0], e.plain[1]
	radixSort(neg, 24)
	radixSort(pos, 24)
	var c Counts
	for len(neg) > 0 || len(pos) > 0 {
		k := lowest(neg, pos, 0)
		c.Add(uint64(runLength(&pos, k)), uint64(runLength(&neg, k)))
	}
	return c.AUC()
}

// lowest is the smaller first key of two sorted lists, not both empty.
func lowest[T uint32 | uint64](a, b []T, shift uint) T {
	switch {
	case len(a) == 0:
		return b[0] >> shift
	case len(b) == 0:
		return a[0] >> shift
	}
	return min(a[0], b[0]) >> shift
}

// runLength cuts the keys equal to k off the front of list.
func runLength(list *[]uint32, k uint32) int {
	n := 0
	for n < len(*list) && (*list)[n] == k {
		n++
	}
	*list = (*list)[n:]
	return n
}

func (e *Exact) heavyAUC() float64 {
	neg, pos := e.heavy[0], e.heavy[1]
	radixSort(neg, 56)
	radixSort(pos, 56)
	var w weighted
	for len(neg) > 0 || len(pos) > 0 {
		k := lowest(neg, pos, 32)
		w.add(runWeight(&pos, k), runWeight(&neg, k))
	}
	return w.auc()
}

// runWeight cuts the keys equal to k off the front of list and adds up their
// weights.
func runWeight(list *[]uint64, k uint64) float64 {
	var s Sum
	n := 0
	for n < len(*list) && (*list)[n]>>32 == k {
		s.Add(float64(math.Float32frombits(uint32((*list)[n]))))
		n++
	}
	*list = (*list)[n:]
	return s.Value()
}
