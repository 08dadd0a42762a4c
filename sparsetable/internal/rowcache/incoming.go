package rowcache

import "slices"

// Incoming is a batch of rows to be inserted into the cache.
type Incoming struct {
	Keys, Hashes []uint64
	Uses         []uint32 // how often each row was used before; empty: never
	At           []uint32 // the caller's number of each row
	Rows         [][]float32
	refs         []uint32
}

// Clear removes all rows.
func (b *Incoming) Clear() {
	b.Keys, b.Hashes, b.Uses, b.At, b.Rows = b.Keys[:0], b.Hashes[:0], b.Uses[:0], b.At[:0], b.Rows[:0]
}

// Add adds a row.
func (b *Incoming) Add(key, hash uint64, uses, at uint32, row []float32) {
	b.Keys, b.Hashes, b.Rows = append(b.Keys, key), append(b.Hashes, hash), append(b.Rows, row)
	b.Uses, b.At = append(b.Uses, uses), append(b.At, at)
}

// Move replaces row i by row from.
func (b *Incoming) Move(i, from int) {
	b.Keys[i], b.Hashes[i], b.Uses[i], b.At[i], b.Rows[i] = b.Keys[from], b.Hashes[from], b.Uses[from], b.At[from], b.Rows[from]
}

// Cut removes all rows but the first n.
func (b *Incoming) Cut(n int) {
	b.Keys, b.Hashes, b.Uses, b.At, b.Rows = b.Keys[:n], b.Hashes[:n], b.Uses[:n], b.At[:n], b.Rows[:n]
}

// Refs returns a reference of 0 for each row, in memory that the next call reuses.
func (b *Incoming) Refs() []uint32 {
	b.refs = slices.Grow(b.refs[:0], len(b.Keys))[:len(b.Keys)]
	clear(b.refs)
	return b.refs
}
