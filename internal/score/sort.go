package score

import "slices"

// smallSort is the length below which a comparison sort is faster than radix sort. By
// measurement the time hardly depends on it between 64 and 512.
const smallSort = 256

// radixSort sorts in place by American flag sort: distribute by the top byte,
// then each bucket by the next. It needs no second buffer, which matters where
// a buffer is 4 bytes times all examples of an evaluation set.
func radixSort[T uint32 | uint64](a []T, shift uint) {
	if len(a) < smallSort {
		slices.Sort(a)
		return
	}
	var end, next [256]int
	for _, x := range a {
		end[byte(x>>shift)]++
	}
	at := 0
	for b := range end {
		next[b] = at
		at += end[b]
		end[b] = at
	}
	for b := range end {
		for next[b] < end[b] {
			x := a[next[b]]
			for home := byte(x >> shift); int(home) != b; home = byte(x >> shift) {
				x, a[next[home]] = a[next[home]], x
				next[home]++
			}
			a[next[b]] = x
			next[b]++
		}
	}
	if shift == 0 {
		return
	}
	at = 0
	for b := range end {
		if end[b]-at > 1 {
			radixSort(a[at:end[b]], shift-8)
		}
		at = end[b]
	}
}
