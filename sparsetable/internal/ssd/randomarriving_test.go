package ssd_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/tabletest"
)

// lateDisk is an ssdDisk whose bucket files lack bytes that are still being fetched from elsewhere.
// Each time a table is opened on it, more bytes are taken away. While the table is in use they come
// back: bytes that are read, and then others, in random order.
type lateDisk struct {
	*ssdDisk
	counts *lateCounts

	mu   sync.Mutex
	rng  *rand.Rand
	late map[string]*lateFile
}

// lateCounts are sums over all disks of a test.
type lateCounts struct {
	mu             sync.Mutex
	taken, awaited int // units that were taken away, and times that a read had to wait for one
}

// lateFile is a file that lacks units of its device.
type lateFile struct {
	dev   *blocktest.Device
	data  []byte // what it has in all
	lacks map[int64]bool
}

func newLateDisk(devices, unit int, counts *lateCounts) *lateDisk {
	return &lateDisk{ssdDisk: newSSDDiskOf(devices, unit), counts: counts, rng: rand.New(rand.NewPCG(1, 2)), late: make(map[string]*lateFile)}
}

// Crash leaves the missing bytes missing before anything else changes.
func (d *lateDisk) Crash(rng *rand.Rand) tabletest.Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := &lateDisk{counts: d.counts, rng: rand.New(rand.NewPCG(rng.Uint64(), 3)), late: make(map[string]*lateFile)}
	after.ssdDisk = d.ssdDisk.Crash(rng).(*ssdDisk)
	for name, f := range d.late {
		i := slices.Index(d.devices, f.dev)
		after.late[name] = &lateFile{after.devices[i], f.data, maps.Clone(f.lacks)}
	}
	return after
}

// takeAway removes bytes of some files that no table has open.
func (d *lateDisk) takeAway() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dev := range d.devices {
		names, err := dev.List()
		if err != nil {
			return err
		}
		for _, name := range names {
			f := d.late[name]
			if !strings.HasSuffix(name, ".bucket") || f != nil && len(f.lacks) > 0 || d.rng.IntN(3) == 0 {
				continue
			}
			f = &lateFile{dev, dev.Bytes(name), make(map[int64]bool)}
			unit, some := int64(dev.Unit()), append([]byte{}, f.data...)
			share := d.rng.IntN(4) // of 3
			for at := int64(0); at+unit <= int64(len(some)); at += unit {
				if d.rng.IntN(3) < share {
					f.lacks[at/unit] = true
					clear(some[at : at+unit])
				}
			}
			dev.SetBytes(name, some)
			d.late[name] = f
			d.count(func(c *lateCounts) { c.taken += len(f.lacks) })
		}
	}
	return nil
}

func (d *lateDisk) count(change func(*lateCounts)) {
	d.counts.mu.Lock()
	defer d.counts.mu.Unlock()
	change(d.counts)
}

// Lacks implements sparsetable.Source.
func (d *lateDisk) Lacks(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.late[name] != nil && len(d.late[name].lacks) > 0
}

// Here implements sparsetable.Source.
func (d *lateDisk) Here(name string, from, to int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.missing(name, from, to)) == 0
}

// missing returns the units that a range of a file lacks.
func (d *lateDisk) missing(name string, from, to int64) (units []int64) {
	f := d.late[name]
	if f == nil {
		return nil
	}
	unit := int64(f.dev.Unit())
	for u := from / unit; u*unit < to; u++ {
		if f.lacks[u] {
			units = append(units, u)
		}
	}
	return units
}

// Await implements sparsetable.Source.
func (d *lateDisk) Await(name string, from, to int64) error {
	for {
		d.mu.Lock()
		units := d.missing(name, from, to)
		if len(units) == 0 {
			d.mu.Unlock()
			return nil
		}
		d.count(func(c *lateCounts) { c.awaited++ })
		err := d.bring(name, units[d.rng.IntN(len(units))])
		for range d.rng.IntN(3) {
			err = errors.Join(err, d.bringAny())
		}
		d.mu.Unlock()
		if err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// Again implements sparsetable.Source. It never has other bytes, since nothing is damaged.
func (d *lateDisk) Again(name string, buf []byte, offset int64) (bool, error) {
	return false, fmt.Errorf("%d bytes of %s from %d on were wrong", len(buf), name, offset)
}

// bringAny makes a unit of any file available.
func (d *lateDisk) bringAny() error {
	names := slices.Sorted(maps.Keys(d.late))
	if len(names) == 0 {
		return nil
	}
	name := names[d.rng.IntN(len(names))]
	units := slices.Sorted(maps.Keys(d.late[name].lacks))
	if len(units) == 0 {
		return nil
	}
	return d.bring(name, units[d.rng.IntN(len(units))])
}

// bring makes a unit of a file available, durably.
func (d *lateDisk) bring(name string, u int64) error {
	f := d.late[name]
	unit := int64(f.dev.Unit())
	file, err := f.dev.OpenFile(name)
	if err != nil { // the table has deleted it
		delete(d.late, name)
		return nil
	}
	_, err = file.WriteAt(f.data[u*unit:(u+1)*unit], u*unit)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		delete(f.lacks, u)
	}
	return err
}

// TestSSDRandomArriving runs the random sequences of TestSSDRandom while bucket files arrive. Rows
// are pulled and released, snapshots taken, slots split and merged, and files emptied while files
// lack bytes. After a crash, the bytes are still missing.
func TestSSDRandomArriving(t *testing.T) {
	for _, unit := range []int{512, 4096} {
		t.Run(fmt.Sprintf("units of %d bytes", unit), func(t *testing.T) {
			counts := new(lateCounts)
			k := ssdKind("", 3)
			open := k.Open
			k.NewDisk = func() tabletest.Disk { return newLateDisk(3, unit, counts) }
			k.Open = func(ctx context.Context, o sparsetable.Options) (sparsetable.Table, error) {
				d := o.FS.(*lateDisk)
				if err := d.takeAway(); err != nil {
					return nil, err
				}
				d.wrap = func(dev blockio.Device) blockio.Device { return blockio.Arriving(dev, d) }
				o.FS = d.ssdDisk
				if o.SSD.Dirs == nil {
					o.SSD.Dirs = []string{"/ssd0", "/ssd1", "/ssd2"}
				}
				o.SSD.Source = d
				return open(ctx, o)
			}
			k.Vary, k.RunBackground = varySSD, runBackgroundSSD
			k.Enough = func(t *testing.T, c tabletest.Counters) {
				if c.CompactedBytes == 0 || c.Crashes == 0 || counts.awaited*100 < int(c.Steps) {
					t.Errorf("%d units were taken away and %d reads had to wait in %d steps, of %d bytes compacted: too few to test anything", counts.taken, counts.awaited, c.Steps, c.CompactedBytes)
				}
			}
			tabletest.Random(t, k)
			t.Logf("%d units were taken away, %d reads had to wait", counts.taken, counts.awaited)
		})
	}
}
