// Package nearest finds the name that a misspelt one was probably meant to be,
// for messages such as "did you mean kind?".
package nearest

import "strings"

// Name returns the candidate that name was probably meant to be, or "".
// Case, hyphens and underscores do not count: batchSize is batch_size.
func Name(name string, candidates []string) string {
	best, bestDistance := "", -1
	plain := Plain(name)
	for _, c := range candidates {
		pc := Plain(c)
		d := editDistance(plain, pc)
		// At most one letter in three may differ. Otherwise short names would
		// be near to everything.
		if d > max(1, min(len(plain), len(pc))/3) || min(len(plain), len(pc)) <= d {
			continue
		}
		if bestDistance < 0 || d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// Plain returns s in lower case and without hyphens, underscores and spaces. Names that
// are easily confused have the same plain form.
func Plain(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// editDistance counts insertions, deletions, replacements and swaps of two
// neighbours (optimal string alignment). It cuts off names after 100 bytes, as no key
// is that long.
func editDistance(a, b string) int {
	a, b = a[:min(len(a), 100)], b[:min(len(b), 100)]
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
