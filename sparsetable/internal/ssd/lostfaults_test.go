package ssd_test

import (
	"errors"
	"maps"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/internal/testseed"
	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/blockio/blocktest"
)

var errInjected = errors.New("injected")

// lossyDisks are the directories of a table, one of which is lost.
type lossyDisks struct {
	fs      *vfs.MemFS
	devices []*blocktest.Device
}

// newLossyDisks makes the directories that the options of l name.
func newLossyDisks(l *losing, dirs ...string) *lossyDisks {
	l.opts.SSD.Dirs = dirs
	d := &lossyDisks{fs: vfs.NewCrashableMem()}
	for i, dir := range dirs {
		l.must(d.fs.MkdirAll(dir, 0o755))
		d.devices = append(d.devices, blocktest.New(blocktest.Options{Dir: dir, Seed: uint64(i)}))
	}
	root, err := d.fs.OpenDir("/")
	l.must(err)
	l.must(errors.Join(root.Sync(), root.Close()))
	return d
}

// crashed returns the disks as a crash leaves them.
func (d *lossyDisks) crashed(seed uint64) *lossyDisks {
	c := &lossyDisks{fs: d.fs.CrashClone(vfs.CrashCloneCfg{})}
	for i, dev := range d.devices {
		c.devices = append(c.devices, dev.AfterCrash(seed+uint64(i)))
	}
	return c
}

func (d *lossyDisks) open(t *testing.T, o sparsetable.Options) (sparsetable.Table, error) {
	var devices []blockio.Device
	for _, dev := range d.devices {
		devices = append(devices, dev)
	}
	return openOn(t.Context(), o, devices, d.fs)
}

// TestSSDLoseFaults makes operations on the devices fail, one of them or all from then on, while a
// table is opened after a loss, refilled and saved. A crash after that must leave the table as it
// was after the loss, or as it was saved.
func TestSSDLoseFaults(t *testing.T) {
	rng := testseed.Rand(t)
	l := newLosing(t, rng, 3)
	base := newLossyDisks(l, "/a", "/b", "/c")
	tab, err := base.open(t, l.opts)
	l.must(err)
	l.train(tab, 0, 4000)
	l.must(tab.(sparsetable.Flusher).Flush(t.Context()))
	l.save(tab)
	l.older = maps.Clone(l.rows)
	l.train(tab, 1000, 2000)
	l.save(tab)
	l.must(tab.Close())
	l.opts.SSD.AllowLost = true
	const lost = 1
	begin := func(seed uint64) *lossyDisks {
		d := base.crashed(seed)
		l.must(d.fs.RemoveAll(l.opts.SSD.Dirs[lost]))
		d.devices[lost] = blocktest.New(blocktest.Options{Dir: l.opts.SSD.Dirs[lost], Seed: seed})
		return d
	}
	// restore opens, fills in and saves the table.
	restore := func(d *lossyDisks) (saved bool, err error) {
		tab, err := d.open(t, l.opts)
		if err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, tab.Close()) }()
		_, err = tab.(sparsetable.LossHandler).Refill(t.Context(), mapSource(l.older))
		if err != nil {
			return false, err
		}
		p, err := tab.Snapshot(t.Context(), nil)
		if err == nil {
			_, err = p.Wait()
		}
		return err == nil, err
	}
	content := func(d *lossyDisks) map[uint64]float32 {
		tab, err := d.open(t, l.opts)
		l.must(err)
		have := l.content(tab)
		l.must(tab.Close())
		return have
	}
	whole := begin(1)
	opened := content(whole)
	if len(opened) == 0 || len(opened) == len(l.rows) {
		t.Fatalf("%d of %d rows are left", len(opened), len(l.rows))
	}
	whole = begin(1)
	if saved, err := restore(whole); !saved {
		t.Fatal(err)
	}
	filled := content(whole.crashed(1))
	if len(filled) != len(l.rows) {
		t.Fatalf("%d of %d rows after Refill", len(filled), len(l.rows))
	}
	runs, before := 0, 0
	for n := 0; ; n++ {
		d := begin(uint64(n))
		var at atomic.Int64
		for _, dev := range d.devices {
			dev.Inject(func(blocktest.Op) blocktest.Fault {
				if k := at.Add(1) - 1; k < int64(n) || n%2 == 0 && k > int64(n) {
					return blocktest.Fault{}
				}
				return blocktest.Fault{Err: errInjected}
			})
		}
		saved, err := restore(d)
		if err != nil && !errors.Is(err, errInjected) {
			t.Errorf("operation %d fails: %v", n, err)
		}
		for _, dev := range d.devices {
			dev.Inject(nil)
		}
		have := content(d.crashed(uint64(n)))
		runs++
		switch {
		case maps.Equal(have, filled):
		case maps.Equal(have, opened) && !saved:
			before++
		default:
			t.Errorf("operation %d fails, saved %v: %d rows, want %d or %d", n, saved, len(have), len(opened), len(filled))
		}
		if at.Load() <= int64(n) || t.Failed() {
			break
		}
	}
	// A disk that fails while the table is opened is lost, too: the rows that only it had go back,
	// and no others. One that fails later ends the run.
	more := 0
	for n := 0; n < 400 && !t.Failed(); n++ {
		d := begin(uint64(n))
		var at atomic.Int64
		d.devices[(n+1)%3].Inject(func(op blocktest.Op) blocktest.Fault {
			if op.Kind == blocktest.List || at.Add(1) <= int64(n/3) {
				return blocktest.Fault{}
			}
			return blocktest.Fault{Err: syscall.EIO}
		})
		saved, err := restore(d)
		if !saved {
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("device %d fails from operation %d on: %v", n%3, n/3, err)
			}
			continue
		}
		if at.Load() <= int64(n/3) {
			break
		}
		more++
		for _, dev := range d.devices {
			dev.Inject(nil)
		}
		for key, value := range content(d) {
			if value != l.rows[key] && value != l.older[key] {
				t.Fatalf("device %d fails from operation %d on: key %x is %v", n%3, n/3, key, value)
			}
		}
	}
	t.Logf("%d runs, %d of which saved nothing; in %d a second disk was lost", runs, before, more)
	if more == 0 {
		t.Error("no second disk was lost")
	}
	if runs < 5 || before == 0 {
		t.Errorf("%d runs, %d of which saved nothing", runs, before)
	}
}
