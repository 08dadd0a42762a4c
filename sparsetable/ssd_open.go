package sparsetable

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/rowcache"
	"aibox/sparsetable/internal/slots"
)

// ssdStorage is what a table lies on; the zero value stands for the system's
// devices and file system. Tests put others in their place.
type ssdStorage struct {
	devices []blockio.Device
	fs      vfs.FS
}

const (
	rowFormatFloat32 = "float32"
	keyHash          = "murmur3-fmix64"
)

// openSSD opens a table. o has its defaults and is valid.
func openSSD(ctx context.Context, o Options, on ssdStorage) (Table, error) {
	t := &ssd{
		init: o.Init, opts: o, readOnly: o.ReadOnly, log: o.Logger, devices: on.devices,
		changing: make(chan struct{}, 1), saving: make(chan struct{}, 1), kick: make(chan struct{}, 1),
	}
	t.mu.idle.L = &t.mu.Mutex
	if err := t.open(ctx, on); err != nil {
		return nil, errors.Join(tableError(err), t.free())
	}
	if !t.readOnly {
		background, stop := context.WithCancel(context.Background())
		t.stop = stop
		t.stopped.Go(func() { t.work(background) })
	}
	return t, nil
}

func (t *ssd) open(ctx context.Context, on ssdStorage) error {
	if err := t.openDevices(ctx); err != nil {
		return err
	}
	unit := 0
	for _, d := range t.devices {
		unit = max(unit, d.Unit())
	}
	if err := t.openCatalog(on.fs, unit); err != nil {
		return err
	}
	snapshot, err := t.catalog.Snapshot(t.opts.SnapshotID)
	switch {
	case err == nil:
	case t.opts.SnapshotID == 0 && !t.opts.MustExist && errors.Is(err, catalog.ErrNoSnapshot):
	default:
		return err
	}
	if err := t.allocate(snapshot.Rows); err != nil {
		return err
	}
	if snapshot.ID != 0 {
		if err := t.loadIndex(ctx, snapshot); err != nil {
			return err
		}
	}
	if err := t.openFiles(ctx, snapshot); err != nil {
		return err
	}
	if err := t.removeStrays(); err != nil {
		return err
	}
	return t.restore(ctx, snapshot)
}

func (t *ssd) openDevices(ctx context.Context) error {
	if t.devices != nil {
		return nil
	}
	t.own = true
	for _, dir := range t.opts.SSD.Dirs {
		d, err := blockio.Open(ctx, dir, blockio.Options{
			QueueDepth: t.opts.SSD.QueueDepth, Direct: directModes[t.opts.SSD.Direct], Logger: t.log,
		})
		if err != nil {
			return err
		}
		t.devices = append(t.devices, d)
	}
	return nil
}

// openCatalog opens the catalog, or makes one where there is none.
func (t *ssd) openCatalog(fs vfs.FS, unit int) error {
	o := catalog.Options{
		Dir: filepath.Join(t.opts.SSD.Dirs[0], catalogDir), FS: fs, Logger: t.log, ReadOnly: t.readOnly, MustExist: true,
		Format: catalog.Format{ValueDim: t.opts.Layout.ValueDim, StateDim: t.opts.Layout.StateDim, RowFormat: rowFormatFloat32, Hash: keyHash, PageSlots: slots.DefaultPageSlots},
	}
	var err error
	t.catalog, err = catalog.Open(o)
	if errors.Is(err, catalog.ErrNotExist) {
		if t.opts.MustExist {
			return fmt.Errorf("%w: none in %s", ErrNoSnapshot, o.Dir)
		}
		if err := t.opts.Layout.Validate(); err != nil {
			return err
		}
		if need := smallestSSD(t.opts.Layout, t.opts.SSD, 0, 0, 0); t.opts.MemoryBytes < need {
			return t.overBudget("an empty table", need)
		}
		var id [8]byte
		if _, err := crand.Read(id[:]); err != nil {
			return fmt.Errorf("sparsetable: name a table: %w", err)
		}
		o.MustExist, o.Format.UnitBytes = false, max(unit, 512)
		o.Format.TableID = fmt.Sprintf("%016x", binary.LittleEndian.Uint64(id[:]))
		t.catalog, err = catalog.Open(o)
	}
	if err != nil {
		return err
	}
	f := t.catalog.Format()
	t.layout = Layout{ValueDim: f.ValueDim, StateDim: f.StateDim}
	if err := t.layout.Validate(); err != nil {
		return err
	}
	if t.tableID, err = strconv.ParseUint(f.TableID, 16, 64); err != nil {
		return fmt.Errorf("sparsetable: table id: %w", err)
	}
	return nil
}

// allocate makes what holds rows and slots.
func (t *ssd) allocate(rows int64) (err error) {
	if need := smallestSSD(t.layout, t.opts.SSD, rows, 0, 0); !fitsSSD(t.opts.MemoryBytes, t.layout, t.opts.SSD, rows, 0, 0) {
		return t.overBudget(fmt.Sprintf("a table of %d rows", rows), need)
	}
	t.plan = planSSD(t.opts.MemoryBytes, t.layout, t.opts.SSD, rows)
	t.pool = blockio.NewPool(t.catalog.Format().UnitBytes, t.plan.poolBytes)
	if t.index, err = slots.New(t.plan.indexOptions()); err != nil {
		return err
	}
	t.plan.fitRows = t.plan.cacheOptions(t.layout, t.opts.SSD).FitRows()
	t.cache, err = rowcache.New(t.plan.cacheOptions(t.layout, t.opts.SSD))
	return err
}

func (t *ssd) loadIndex(ctx context.Context, s catalog.Snapshot) error {
	if err := t.index.Restore(s.Slots); err != nil {
		return err
	}
	_, err := t.catalog.Load(s.ID, func(page uint32, data []byte) error {
		if page%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return t.index.DecodePage(page, data)
	})
	var bad *slots.PageError
	if errors.As(err, &bad) {
		return &CorruptionError{File: filepath.Join(t.opts.SSD.Dirs[0], catalogDir), Reason: bad.Error()}
	}
	return err
}

// Names of Snapshot.Counters.
const (
	counterNextFile = "next_file"
	counterSeq      = "bucket_seq"
	counterStored   = "stored_rows"
)

func (t *ssd) stateOf(s catalog.Snapshot) bucketfile.State {
	if s.ID == 0 {
		return bucketfile.State{}
	}
	st := bucketfile.State{
		Snapshot: s.ID, UnitBytes: t.catalog.Format().UnitBytes,
		NextFile: uint32(s.Counters[counterNextFile]), Seq: uint64(s.Counters[counterSeq]),
	}
	for _, f := range s.Files {
		st.Files = append(st.Files, bucketfile.FileState{File: uint32(f.ID), Bytes: f.Bytes, LiveBytes: f.LiveBytes})
	}
	return st
}

func (t *ssd) openFiles(ctx context.Context, current catalog.Snapshot) (err error) {
	var kept []bucketfile.State
	for _, s := range t.catalog.Snapshots() {
		if s.ID != current.ID {
			kept = append(kept, t.stateOf(s))
		}
	}
	o := bucketfile.Options{
		Table: t.tableID, RowWords: t.layout.Words(), Devices: t.devices,
		BufferBytes: t.plan.bufferBytes, Buffers: appendBuffers, Pool: t.pool,
		UnitBytes: t.catalog.Format().UnitBytes, Logger: t.log, ReadOnly: t.readOnly,
	}
	for range t.devices {
		o.BudgetBytes = append(o.BudgetBytes, t.opts.SSD.DirBudgetBytes)
	}
	if b := t.opts.SSD.DirBudgetBytes; b > 0 {
		o.FileBytes = max(min(128<<20, b/16/4096*4096), int64(o.BufferBytes))
	}
	o.MinFileBytes = t.plan.minFileBytes()
	if t.plan.readBytes < 8<<20 {
		o.MergeBytes = -1 // merged reads take more memory than they are long
	}
	t.files, err = bucketfile.Open(ctx, t.stateOf(current), kept, o)
	if err != nil {
		return err
	}
	t.rewrite.stored = current.Counters[counterStored]
	t.rewrite.queue = t.files.NewQueue()
	t.pull.queue = t.files.NewQueue()
	return nil
}

func (t *ssd) overBudget(what string, need int64) error {
	return fmt.Errorf("%w: %s needs a budget of %d bytes, it is %d", ErrBudget, what, need, t.opts.MemoryBytes)
}
