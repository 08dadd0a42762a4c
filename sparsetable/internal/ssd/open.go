package ssd

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/internal/process"
	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/bulk"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/catalogcopy"
	"aibox/sparsetable/internal/checkpoint"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/elevator"
	"aibox/sparsetable/internal/guard"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/plan"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/tabledirs"
)

// media is the devices and the file system that a table is stored on. The zero value stands for
// those of the operating system; tests use others.
type media struct {
	devices []blockio.Device
	fs      vfs.FS
	hash    string // the hash function of a new table; "" stands for slots.SeededHashName
}

// Open opens a table. o is valid, and has a Logger.
func Open(ctx context.Context, o Options) (*Table, error) { return openOn(ctx, o, media{}) }

// openOn opens a table that is stored on these devices.
func openOn(ctx context.Context, o Options, on media) (*Table, error) {
	o.setDefaults()
	var lost []tabledirs.Lost
	for {
		t, err := openOnce(ctx, o, on, lost)
		dir := tabledirs.FailedDir(err, t.dirs.Names)
		if err == nil || !o.AllowLost || dir == "" || len(t.dirs.Names) == 1 {
			if err != nil {
				return nil, err
			}
			return t, nil
		}
		// A disk failed while the table was being opened. That is like a crash: the table is opened
		// again without the disk's directory.
		o.Logger.Warn("sparsetable: files in a directory of the table cannot be read or written; the table is opened without that directory", "dir", dir, "error", err)
		t.dirs.LeaveOut(dir, err)
		o.Dirs, lost = t.dirs.Names, t.dirs.Lost
		if on.devices != nil {
			on.devices = t.dirs.Devices
		}
	}
}

// openOnce opens a table whose directories in lost are already known to be lost. It returns the
// table even with an error; the table is then closed.
func openOnce(ctx context.Context, o Options, on media, lost []tabledirs.Lost) (*Table, error) {
	t := &Table{
		opts:       o,
		dirs:       o.Directories(),
		calls:      calls{changing: guard.NewLock(), saving: guard.NewLock()},
		origin:     origin{restored: make(chan struct{})},
		background: background{wakeups: make(chan struct{}, 1)},
		budget:     budget{scarcity: scarcity{room: process.Room, every: checkInterval}},
		rewrite:    rewriting{compacting: guard.NewLock()},
	}
	t.dirs.Devices, t.dirs.Lost = on.devices, lost
	if err := t.open(ctx, on); err != nil {
		return t, errors.Join(apierr.Of(err), t.free())
	}
	background, stop := context.WithCancel(context.Background())
	t.stop = stop
	t.stopped.Go(func() { t.restoreHot(background) })
	if !t.opts.ReadOnly {
		t.stopped.Go(func() { t.work(background) })
		t.wake() // the number of slots may not suit this budget
	}
	if t.opts.CachePolicy == policyLookahead {
		t.stopped.Go(func() { t.prefetchLoop(background) })
	}
	return t, nil
}

// leastUnit is the smallest unit of a table. pageCacheUnit is the unit of a new table without
// direct I/O, because the page cache reads and writes whole pages.
const leastUnit, pageCacheUnit = 512, 4096

// unitFor is the unit of a new table with rows of layout l, on devices that allow units of unit
// bytes. It is larger for very wide rows, if the largest bucket would otherwise have more than
// bucketfile.MaxUnits units.
func unitFor(l layout.Layout, unit int) int {
	for unit < pageCacheUnit && bucketfile.RowsIn(bucketfile.MaxUnits*unit, l.Words()) < plan.ShapeOf(l, unit).Capacity() {
		unit *= 2
	}
	return unit
}

// open opens the table's parts on its devices, and restores the rows that were in memory.
func (t *Table) open(ctx context.Context, on media) error {
	if err := t.openDirs(ctx, on); err != nil {
		return err
	}
	snapshot, err := t.catalog.Snapshot(t.opts.SnapshotID)
	switch {
	case err == nil:
	case t.opts.SnapshotID == 0 && !t.opts.MustExist && errors.Is(err, catalog.ErrNoSnapshot):
	default:
		return err
	}
	snapshot = checkpoint.Upgraded(snapshot)
	t.opened = snapshot
	if err := t.openIndex(ctx, snapshot, on); err != nil {
		return err
	}
	if t.opts.AllowLost && snapshot.ID != 0 {
		if snapshot, err = t.findLost(snapshot); err != nil {
			return err
		}
		t.opened = snapshot
	}
	if err := t.openFiles(ctx, snapshot); err != nil {
		return err
	}
	if err := t.takeOutLost(ctx); err != nil {
		return err
	}
	if !t.opts.ReadOnly {
		t.copies = catalogcopy.Open(t.catalog, on.fs, t.dirs.Names[1:], t.opts.Logger)
		t.checkpoints.Copies = t.copies
	}
	if err := t.removeUnreferenced(); err != nil {
		return err
	}
	if snapshot.ID == 0 && !t.opts.ReadOnly {
		// A new table that cannot be saved is of no use. In a table that has rows, compaction may
		// make room.
		if err := t.files.CheckRoom(); err != nil {
			return err
		}
	}
	t.warnOfFilters()
	if err := t.restoreDirty(ctx, snapshot); err != nil {
		return err
	}
	t.reportLost()
	t.elevator = elevator.New(elevator.Options{
		Table: elevatorTable{t}, Files: t.files, Index: t.index, IndexMu: &t.indexMu, Cache: t.cache, Outside: t.outside, Carried: &t.carried,
		Hash: t.hash, Layout: t.layout, Incoming: &t.pull.Incoming, Bytes: t.plan.ElevatorBytes, Stops: t.plan.ElevatorStops, ReadOnly: t.opts.ReadOnly,
	})
	return nil
}

// openDirs opens the directories, and the catalog.
func (t *Table) openDirs(ctx context.Context, on media) error {
	if err := t.dirs.Order(on.fs); err != nil {
		return err
	}
	if err := t.dirs.OpenDevices(ctx); err != nil {
		return err
	}
	t.opts.Dirs = t.dirs.Names // without those that are lost
	unit := leastUnit
	for _, d := range t.dirs.Devices {
		unit = max(unit, d.Unit())
		if !d.Direct() {
			unit = max(unit, pageCacheUnit)
		}
	}
	return t.openCatalog(on, unitFor(t.opts.Layout, unit))
}

// openIndex divides the memory budget for a snapshot's rows, and loads the snapshot's index.
func (t *Table) openIndex(ctx context.Context, s catalog.Snapshot, on media) error {
	if err := t.allocate(s.Rows, int64(s.Slots)); err != nil {
		return err
	}
	if s.ID != 0 {
		if err := t.loadIndex(ctx, s); err != nil {
			if err = t.loadCopiedIndex(ctx, s, on, err); err != nil {
				return err
			}
		}
	}
	if err := t.adaptBudget(ctx); err != nil {
		return err
	}
	err := t.reserveNow(ctx, 0)
	if errors.Is(err, errNoVictims) {
		return t.overBudget(fmt.Sprintf("the index of %d slots", s.Slots), t.aLittleMore())
	}
	t.bulk = bulk.PlanFor(t.plan.CacheBytes, t.fitRows.Load())
	return err
}

// catalogOptions returns the options for opening an existing catalog.
func (t *Table) catalogOptions(on media) catalog.Options {
	return catalog.Options{
		Dir: t.dirs.CatalogPath(), FS: on.fs, Logger: t.opts.Logger, ReadOnly: t.opts.ReadOnly, MustExist: true,
		Format: catalog.Format{PageSlots: slots.DefaultPageSlots}, // any layout and hash are accepted here; they are compared later
	}
}

// openCatalog opens the catalog, or makes one if there is none. unit is the unit of a new table in
// bytes.
func (t *Table) openCatalog(on media, unit int) error {
	o := t.catalogOptions(on)
	var err error
	t.catalog, err = t.dirs.OpenCatalog(o)
	if errors.Is(err, catalog.ErrNotExist) {
		if err := t.dirs.CheckNoTable(); err != nil {
			return err
		}
		if t.opts.MustExist {
			return fmt.Errorf("%w: none in %s", contract.ErrNoSnapshot, o.Dir)
		}
		if err := t.opts.Layout.Validate(); err != nil {
			return err
		}
		if need := t.opts.planned(t.opts.Layout, unit).Smallest(plan.Load{}); t.opts.MemoryBytes < need {
			return t.overBudget("an empty table", need)
		}
		var id [8]byte
		if _, err := crand.Read(id[:]); err != nil {
			return fmt.Errorf("sparsetable: choose a number for the table: %w", err)
		}
		o.MustExist, o.Format.UnitBytes, o.Format.Hash = false, unit, cmp.Or(on.hash, slots.SeededHashName)
		o.Format.ValueDim, o.Format.StateDim = t.opts.Layout.ValueDim, t.opts.Layout.StateDim
		o.Format.RowFormat = t.opts.Layout.Format.String()
		o.Format.TableID = fmt.Sprintf("%016x", binary.LittleEndian.Uint64(id[:]))
		t.catalog, err = catalog.Open(o)
	}
	if err != nil {
		return err
	}
	if err := t.identify(t.catalog.Format(), o.Dir, t.dirs.Names[0]); err != nil {
		return err
	}
	if want := t.opts.Layout; want != (layout.Layout{}) && want != t.layout {
		return &layout.Error{Dir: t.dirs.Names[0], Have: t.layout, Want: want}
	}
	t.rewrite.Hash = t.hash
	return nil
}

func (t *Table) overBudget(what string, need int64) *contract.BudgetError {
	return &contract.BudgetError{What: what, NeedBytes: need, BudgetBytes: t.opts.MemoryBytes, LackingBytes: t.lacking.Load()}
}
