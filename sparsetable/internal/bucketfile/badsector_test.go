package bucketfile

import (
	"errors"
	"syscall"
	"testing"

	"aibox/sparsetable/internal/blockio/blocktest"
)

// badSector makes a device fail every read that touches these bytes of a file.
func badSector(dev *blocktest.Device, name string, from, to int64) {
	dev.Inject(func(op blocktest.Op) blocktest.Fault {
		if op.Kind == blocktest.Read && op.Name == name && op.Offset < to && op.Offset+int64(op.Bytes) > from {
			return blocktest.Fault{Err: syscall.EIO}
		}
		return blocktest.Fault{}
	})
}

// TestBadSectorBetweenBuckets checks that if one read covers several buckets and the bytes between
// them, a bad sector is an error only of the bucket that it is in.
func TestBadSectorBetweenBuckets(t *testing.T) {
	for seed := range uint64(4) { // the device of the last has larger units than the table
		m := newModel(t, seed, 1, smallOptions(3))
		m.mustOpen()
		for slot := range uint32(12) {
			for m.index[slot].loc == 0 {
				must(t, m.append(slot, 60, false))
			}
		}
		must(t, m.set.Flush(t.Context()))
		const bad = 5
		loc, unit := m.index[bad].loc, int64(m.mem[0].Unit())
		// A whole unit of the device that lies within the bucket.
		from := (loc.Offset()*int64(m.set.Unit()) + unit - 1) / unit * unit
		if end := (loc.Offset() + int64(loc.Units())) * int64(m.set.Unit()); unit == int64(m.set.Unit()) && from+unit > end {
			t.Fatalf("the bucket at %v is too short", loc)
		}
		others := map[uint32]content{}
		for slot, c := range m.index {
			at, to := c.loc.Offset()*int64(m.set.Unit())/unit*unit, (c.loc.Offset()+int64(c.loc.Units()))*int64(m.set.Unit())
			if to <= from || at >= from+unit { // no read of its own touches the sector
				others[slot] = c
			}
		}
		if len(others) < 8 || others[bad].rows > 0 {
			t.Fatalf("seed %d: %d buckets lie elsewhere", seed, len(others))
		}
		badSector(m.mem[0], m.fileName(loc.File()), from, from+unit)
		must(t, m.checkIndex(others))
		if err := m.checkIndex(m.index); !errors.Is(err, syscall.EIO) || errors.Is(err, ErrCorrupt) {
			t.Errorf("seed %d: with the bucket in the bad sector: %v", seed, err)
		}
		m.mem[0].Inject(nil)
		m.close()
	}
}
