package tablediff

import "math/bits"

const (
	inFrom = 1 << iota
	inTo
)

// entry is what a partition keeps of a row beside its values.
type entry struct {
	key      uint64
	distance float64
	show     float32 // in the first table
	field    uint16  // 1 + number of the field; 0: unknown
	in       uint8   // inFrom, inTo
	moved    bool
}

const (
	entryBytes   = 24
	slotsPerRow  = 1.5 // of the hash table
	slotBytes    = 4
	maxEntries   = 1 << 31
	estimateSlop = 1.1 // how much larger than the mean a partition may be
)

// partition holds the rows of one partition: first those of the first table with their values, then
// those that are only in the second table, without values.
type partition struct {
	number, of uint64
	dim        int
	slots      []uint32 // 1 + index into entries; 0: free
	entries    []entry
	values     []float32 // dim for each entry of the first table
}

// newPartition allocates one of several partitions (of), which have the given number of rows in
// all. withValues of these are in the first table.
func newPartition(of uint64, rows, withValues int64, dim int) *partition {
	n := int(float64(rows)/float64(of)*estimateSlop) + 64
	return &partition{
		of: of, dim: dim,
		slots: make([]uint32, int(float64(n)*slotsPerRow)), entries: make([]entry, 0, n),
		values: make([]float32, 0, (int(float64(withValues)/float64(of)*estimateSlop)+64)*dim),
	}
}

// partitions returns how many partitions are needed for each to fit in memoryBytes.
func partitions(rows, withValues int64, dim int, memoryBytes int64) uint64 {
	need := float64(rows)*(entryBytes+slotsPerRow*slotBytes) + float64(withValues)*4*float64(dim)
	of := uint64(need*estimateSlop/float64(max(1, memoryBytes))) + 1
	return max(of, uint64(rows)/(maxEntries/2)+1)
}

// reset empties the partition and gives it a number.
func (p *partition) reset(number uint64) {
	p.number = number
	clear(p.slots)
	p.entries, p.values = p.entries[:0], p.values[:0]
}

// hash spreads keys, which may be consecutive numbers in a table that was imported.
func hash(key uint64) uint64 {
	key ^= key >> 32
	key *= 0x9e3779b97f4a7c15
	key ^= key >> 29
	return key * 0xbf58476d1ce4e5b9
}

// partitionOf returns the number of the partition that key belongs to.
func (p *partition) partitionOf(key uint64) uint64 {
	high, _ := bits.Mul64(hash(key^0x94d049bb133111eb), p.of)
	return high
}

// find returns the index of the entry of key, or -1.
func (p *partition) find(key uint64) int {
	if e := p.slots[p.slotOf(key)]; e != 0 {
		return int(e - 1)
	}
	return -1
}

// slotOf returns the slot that holds key, or the free one in which it belongs.
func (p *partition) slotOf(key uint64) int {
	high, _ := bits.Mul64(hash(key), uint64(len(p.slots)))
	for at := int(high); ; {
		if e := p.slots[at]; e == 0 || p.entries[e-1].key == key {
			return at
		}
		if at++; at == len(p.slots) {
			at = 0
		}
	}
}

// add adds a key that the partition does not have.
func (p *partition) add(key uint64, in uint8) *entry {
	if float64(len(p.entries)+1)*slotsPerRow > float64(len(p.slots)) {
		p.grow()
	}
	p.entries = append(p.entries, entry{key: key, in: in})
	p.slots[p.slotOf(key)] = uint32(len(p.entries))
	return &p.entries[len(p.entries)-1]
}

// grow doubles the hash table, for a partition with more rows than newPartition expected.
func (p *partition) grow() {
	p.slots = make([]uint32, 2*len(p.slots))
	for i := range p.entries {
		p.slots[p.slotOf(p.entries[i].key)] = uint32(i + 1)
	}
}
