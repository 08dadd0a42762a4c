package blocktest

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash stops the device, so that every later operation on it and on its files fails, and returns
// the device as after a reboot. It randomly keeps a part of what was not synced: nothing,
// everything, or each unit with even odds.
func (d *Device) Crash(seed uint64) *Device {
	d.mu.Lock()
	d.mu.crashed = true
	d.mu.Unlock()
	return d.AfterCrash(seed)
}

// AfterCrash returns the device as after a crash now and a reboot. The device itself continues.
func (d *Device) AfterCrash(seed uint64) *Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	durable := maps.Clone(d.mu.durable)
	rng := rand.New(rand.NewPCG(seed, 0x6372617368))
	after := New(Options{Dir: d.dir, UnitBytes: d.unit, CapacityBytes: d.mu.capacity, Seed: seed})

	keep := [...]float64{0, 0.5, 1}[rng.IntN(3)]
	applied := int(keep * float64(len(d.mu.journal)+1))
	if keep == 0.5 {
		applied = rng.IntN(len(d.mu.journal) + 1)
	}
	for _, change := range d.mu.journal[:min(applied, len(d.mu.journal))] {
		change(durable)
	}

	// In the order of names, so that only the seed decides.
	names := make([]string, 0, len(durable))
	for name := range durable {
		names = append(names, name)
	}
	slices.Sort(names)
	copies := map[*inode]*inode{}
	for _, name := range names {
		n := durable[name]
		if copies[n] == nil {
			data := n.afterCrash(int64(d.unit), keep, rng)
			copies[n] = &inode{data: data, durable: slices.Clone(data), dirty: map[int64]bool{}}
		}
		after.mu.names[name], after.mu.durable[name] = copies[n], copies[n]
	}
	return after
}

// afterCrash returns the synced contents with some of the units that were written since. A file
// that grew may keep the new length without the bytes.
func (n *inode) afterCrash(unit int64, keep float64, rng *rand.Rand) []byte {
	data := slices.Clone(n.durable)
	units := make([]int64, 0, len(n.dirty))
	for at := range n.dirty {
		units = append(units, at)
	}
	slices.Sort(units)
	for _, at := range units {
		if rng.Float64() >= keep {
			continue
		}
		end := min(at+unit, int64(len(n.data)))
		if end > int64(len(data)) {
			data = append(data, make([]byte, end-int64(len(data)))...)
		}
		copy(data[at:end], n.data[at:end])
	}
	return data
}
