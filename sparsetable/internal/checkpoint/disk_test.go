package checkpoint_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
)

var quiet = slog.New(slog.DiscardHandler)

// disk is the storage of a table: a device for each of its directories, and the file system with
// the catalog in the first of them. All of its operations can fail.
type disk struct {
	devices []*blocktest.Device
	mem     *vfs.MemFS

	mu  sync.Mutex
	ops int
	// fail is asked before every operation, with its number; nil: none fails.
	fail func(op int) error
}

func newDisk(t testing.TB, dirs int) *disk {
	t.Helper()
	d := &disk{mem: vfs.NewCrashableMem()}
	for i := range dirs {
		d.devices = append(d.devices, blocktest.New(blocktest.Options{Dir: dirName(i)}))
		if err := d.mem.MkdirAll(dirName(i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := d.mem.OpenDir("")
	if err == nil {
		err = errors.Join(root.Sync(), root.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	d.watch()
	return d
}

func dirName(i int) string { return fmt.Sprintf("d%d", i) }

// watch makes all devices call the test before their operations. For the operations of the file
// system, FS does that.
func (d *disk) watch() {
	for _, dev := range d.devices {
		dev.Inject(func(op blocktest.Op) blocktest.Fault {
			if op.Kind == blocktest.Free { // it changes nothing
				return blocktest.Fault{}
			}
			return blocktest.Fault{Err: d.ask()}
		})
	}
}

func (d *disk) ask() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops++
	if d.fail == nil {
		return nil
	}
	return d.fail(d.ops)
}

// count returns how many operations there were. The catalog may still be deleting files.
func (d *disk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// FS returns the file system of the catalog. Operations that only read do not fail, because which
// of them Pebble does depends on its caches.
func (d *disk) FS() vfs.FS {
	return errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		return d.ask()
	}))
}

func (d *disk) all() (devices []blockio.Device) {
	for _, dev := range d.devices {
		devices = append(devices, dev)
	}
	return devices
}

// setFail sets fail, and restarts the count of operations.
func (d *disk) setFail(fail func(op int) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fail = 0, fail
}

// afterCrash returns the disk as a reboot would find it if the machine crashed now.
func (d *disk) afterCrash(seed uint64) *disk {
	rng := rand.New(rand.NewPCG(seed, 1))
	after := &disk{mem: d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[rng.IntN(3)], RNG: rng})}
	for _, dev := range d.devices {
		after.devices = append(after.devices, dev.AfterCrash(rng.Uint64()))
	}
	after.watch()
	return after
}

// copied returns a copy of the disk as it is now.
func (d *disk) copied(t testing.TB) *disk {
	t.Helper()
	c := &disk{mem: d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})}
	for _, dev := range d.devices {
		to := blocktest.New(blocktest.Options{Dir: dev.Dir()})
		for _, name := range namesOn(t, dev, "") {
			to.SetBytes(name, dev.Bytes(name))
		}
		c.devices = append(c.devices, to)
	}
	c.watch()
	return c
}

// namesOn returns the names on a device that end with a suffix.
func namesOn(t testing.TB, dev *blocktest.Device, suffix string) []string {
	t.Helper()
	names, err := dev.List()
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, suffix) })
	slices.Sort(names)
	return names
}

// names returns the names on all devices that end with a suffix.
func (d *disk) names(t testing.TB, suffix string) (names []string) {
	t.Helper()
	for _, dev := range d.devices {
		names = append(names, namesOn(t, dev, suffix)...)
	}
	slices.Sort(names)
	return names
}
