package hitratio

import "math"

// belady counts the hits of MIN. All rows whose next use is in the same batch are equivalent, so it
// only counts the rows by batch of next use. The rows that are needed last leave first, and a row
// that is never needed again is not kept.
func belady(t *trace, rows int) (hits int64) {
	kept := make([]int, t.batches) // rows kept, by the batch of their next use
	total, latest := 0, 0
	for b := range t.batches {
		if b >= t.from {
			hits += int64(kept[b])
		}
		total -= kept[b]
		kept[b] = 0
		lo, hi := t.span(b)
		for _, n := range t.next[lo:hi] {
			if n != never {
				kept[n]++
				total++
				latest = max(latest, int(n))
			}
		}
		for total > rows {
			for kept[latest] == 0 {
				latest--
			}
			gone := min(kept[latest], total-rows)
			kept[latest] -= gone
			total -= gone
		}
	}
	return hits
}

// popularity counts the hits of a cache that always holds the most popular
// keys.
func popularity(t *trace, rows int) (hits int64) {
	lo, _ := t.span(t.from)
	for _, k := range t.ids[lo:] {
		if int(k) < rows {
			hits++
		}
	}
	return hits
}

// windowBound counts the hits of a cache that keeps the rows that the next `window` batches need,
// those needed soonest first, and then the most popular rows. Rows of the current batch are always
// kept, because a table has to keep them.
func windowBound(t *trace, rows, window int) (hits int64) {
	const popularities = 1000 // classes of popularity, logarithmic
	scale := popularities / math.Log(float64(t.keys)+1)
	cached := make([]bool, t.keys)
	present := make([]uint16, t.keys) // 1 + last batch that used the key
	next := make([]uint16, t.keys)
	class := make([]uint16, t.keys)
	for k := range class {
		class[k] = uint16(popularities - scale*math.Log(float64(k)+1))
	}
	var list []uint32
	counts := make([]int, popularities+window+2)
	for b := range t.batches {
		lo, hi := t.span(b)
		for i := lo; i < hi; i++ {
			k := t.ids[i]
			present[k], next[k] = uint16(b+1), t.next[i]
			if !cached[k] {
				cached[k] = true
				list = append(list, k)
			} else if b >= t.from {
				hits++
			}
		}
		excess := len(list) - rows
		if excess <= 0 {
			continue
		}
		worth := func(k uint32) int {
			if ahead := int(next[k]) - b; ahead <= window {
				return popularities + 1 + window - ahead
			}
			return int(class[k])
		}
		clear(counts)
		for _, k := range list {
			if present[k] != uint16(b+1) {
				counts[worth(k)]++
			}
		}
		edge, below := 0, 0
		for edge < len(counts)-1 && below+counts[edge] < excess {
			below += counts[edge]
			edge++
		}
		atEdge := excess - below
		stay := list[:0]
		for _, k := range list {
			if present[k] != uint16(b+1) {
				w := worth(k)
				if w < edge || w == edge && atEdge > 0 {
					if w == edge {
						atEdge--
					}
					cached[k] = false
					continue
				}
			}
			stay = append(stay, k)
		}
		list = stay
	}
	return hits
}
