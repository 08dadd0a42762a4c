package ssd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
	"aibox/sparsetable/tabletest"
)

// ssdDisk is the storage of a table on SSD in tests: devices in memory and the catalog's file
// system.
type ssdDisk struct {
	sparsetable.FS // nil: a table on SSD does not use it
	devices        []*blocktest.Device
	wrap           func(blockio.Device) blockio.Device // what the table gets of a device; nil: the device
	fs             *crashFS

	mu     sync.Mutex
	ops    int
	failAt int
	sticky bool
}

// crashFS ensures that Link and CrashClone of a MemFS do not run at the same time. Link acquires
// the read lock twice, so it would deadlock with a CrashClone that waits for the lock in between.
type crashFS struct {
	*vfs.MemFS
	linking sync.RWMutex
}

// Link implements vfs.FS.
func (f *crashFS) Link(oldname, newname string) error {
	f.linking.RLock()
	defer f.linking.RUnlock()
	return f.MemFS.Link(oldname, newname)
}

func (f *crashFS) crash(cfg vfs.CrashCloneCfg) *crashFS {
	f.linking.Lock()
	defer f.linking.Unlock()
	return &crashFS{MemFS: f.CrashClone(cfg)}
}

func newSSDDisk(devices int) *ssdDisk { return newSSDDiskOf(devices, 512) }

// newSSDDiskOf makes devices whose offsets and lengths are multiples of unit.
func newSSDDiskOf(devices, unit int) *ssdDisk {
	d := &ssdDisk{fs: &crashFS{MemFS: vfs.NewCrashableMem()}}
	for i := range devices {
		d.devices = append(d.devices, blocktest.New(blocktest.Options{Dir: fmt.Sprintf("/ssd%d", i), Seed: uint64(i), UnitBytes: unit}))
	}
	return d
}

func (d *ssdDisk) FailAt(n int, sticky bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.failAt, d.sticky = 0, n, sticky
}

func (d *ssdDisk) Failed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failAt > 0 && d.ops >= d.failAt
}

// step counts an operation and returns its error.
func (d *ssdDisk) step() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops++
	if d.failAt > 0 && (d.ops == d.failAt || d.sticky && d.ops > d.failAt) {
		return tabletest.ErrInjected
	}
	return nil
}

func (d *ssdDisk) OpenFiles() (n int) {
	for _, dev := range d.devices {
		n += dev.OpenFiles()
	}
	return n
}

func (d *ssdDisk) Files() (all []string) {
	for i, dev := range d.devices {
		names, err := dev.List()
		if err != nil {
			panic(err)
		}
		for _, n := range names {
			all = append(all, fmt.Sprintf("%d/%s", i, n))
		}
	}
	slices.Sort(all)
	return all
}

// Crash clones the catalog first: what the catalog names is on the devices by then.
func (d *ssdDisk) Crash(rng *rand.Rand) tabletest.Disk {
	after := &ssdDisk{fs: d.fs.crash(vfs.CrashCloneCfg{
		UnsyncedDataPercent: rng.IntN(3) * 50, RNG: rand.New(rand.NewPCG(rng.Uint64(), 1)),
	})}
	for _, dev := range d.devices {
		after.devices = append(after.devices, dev.AfterCrash(rng.Uint64()))
	}
	return after
}

// ssdKind opens tables with small caches on ssdDisks.
func ssdKind(policy string, devices int) tabletest.Kind {
	o := sparsetable.SSDOptions{CachePolicy: policy}
	for i := range devices {
		o.Dirs = append(o.Dirs, fmt.Sprintf("/ssd%d", i))
	}
	return ssdKindWith(o)
}

// ofUnit is that kind of table on as many devices with another unit.
func ofUnit(k tabletest.Kind, devices, unit int) tabletest.Kind {
	k.NewDisk = func() tabletest.Disk { return newSSDDiskOf(devices, unit) }
	return k
}

func ssdKindWith(o sparsetable.SSDOptions) tabletest.Kind {
	devices := len(o.Dirs)
	return tabletest.Kind{
		Open: func(ctx context.Context, opts sparsetable.Options) (sparsetable.Table, error) {
			d := opts.FS.(*ssdDisk)
			opts.FS = nil
			if opts.SSD.Dirs == nil {
				opts.SSD = o
			}
			if opts.MemoryBytes == 0 {
				opts.MemoryBytes = 24 << 20
			}
			devs := make([]blockio.Device, len(opts.SSD.Dirs))
			for i, dev := range d.devices[:len(devs)] {
				dev.Inject(func(blocktest.Op) blocktest.Fault { return blocktest.Fault{Err: d.step()} })
				if devs[i] = dev; d.wrap != nil {
					devs[i] = d.wrap(dev)
				}
			}
			fs := errorfs.Wrap(d.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind == errorfs.OpFileClose {
					return nil
				}
				return d.step()
			}))
			return openOn(ctx, opts, devs, fs)
		},
		NewDisk:  func() tabletest.Disk { return newSSDDisk(devices) },
		MoreKeys: 700, NeedsReopen: true, Evicts: true, OwnFiles: true,
	}
}

func TestSSD(t *testing.T) {
	for _, policy := range sparsetable.CachePolicies() {
		t.Run(policy, func(t *testing.T) { tabletest.Contract(t, ssdKind(policy, 1)) })
	}
	t.Run("three directories, units of 4096 bytes", func(t *testing.T) { tabletest.Contract(t, ofUnit(ssdKind("", 3), 3, 4096)) })
}
