package ssd

import "math/bits"

// A key that occurs several times in a Pull has one row, which all its positions share. If the row
// is in memory, each position simply finds it. Otherwise the first position gets the row, and the
// others, its duplicates, then find it in the cache.

// takeDuplicates moves positions from missing to duplicates if an earlier position of missing has the same
// key. It uses absent, which has room for all keys, as a hash table of positions. If more than half
// of the keys are missing, it works in two turns, with half of the hashes each, so that the table
// does not get too full.
func (p *pullState) takeDuplicates() {
	p.duplicates = p.duplicates[:0]
	table := p.absent[:cap(p.absent)]
	turns := uint64(1)
	if len(p.missing) > len(table)/2 {
		turns = 2
	}
	for turn := range turns {
		clear(table)
		kept := p.missing[:0]
		for _, at := range p.missing {
			h := p.hashes[at]
			if h&(turns-1) == turn && p.isDuplicate(table, uint32(at), h) {
				p.duplicates = append(p.duplicates, uint32(at))
			} else {
				kept = append(kept, at)
			}
		}
		p.missing = kept
	}
}

// isDuplicate reports whether the table has a position with that hash, that is, with the same key. If
// not, it adds the position.
func (p *pullState) isDuplicate(table []uint32, at uint32, hash uint64) bool {
	i, _ := bits.Mul64(hash, uint64(len(table)))
	for table[i] != 0 {
		if p.hashes[table[i]-1] == hash {
			return true
		}
		if i++; i == uint64(len(table)) {
			i = 0
		}
	}
	table[i] = at + 1
	return false
}

// findDuplicates gives each duplicate the row of the first position with its key.
func (t *Table) findDuplicates(keys []uint64, refs []uint32) {
	p := &t.pull
	if len(p.duplicates) == 0 {
		return
	}
	for _, at := range p.duplicates {
		if refs[at] == 0 {
			t.cache.Find(-1, keys[at:at+1], p.hashes[at:at+1], refs[at:at+1])
		}
	}
	p.duplicates = p.duplicates[:0]
	if p.reading {
		t.unpinPlaceholders(refs)
	}
}
