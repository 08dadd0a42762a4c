package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"aibox/sparsetable/internal/memory"
)

// Options say what table to open.
type Options struct {
	Kind string // KindMemory, also when empty, or KindSSD
	// Dir is the directory of the snapshots. Open makes it. "" means that the table
	// starts empty and cannot be saved.
	Dir        string
	SnapshotID uint64 // the snapshot to open; 0: the newest, or an empty table where there is none
	MustExist  bool   // where there is no snapshot, Open returns ErrNoSnapshot instead of an empty table
	// ReadOnly opens an existing table and leaves its files alone: only
	// lookups, scans and statistics work. It implies MustExist.
	ReadOnly bool
	// Layout is the layout of the rows. The zero value means that of the opened snapshot; any other
	// value must equal the snapshot's.
	Layout Layout
	// Init fills the values and the state of a new row, which is all zeros. It must
	// leave the statistics as they are, and its result must depend on nothing but
	// key. With nil, new rows stay zero.
	Init func(key uint64, row []float32)
	// MemoryBytes is a hard limit on what the table holds in memory. 0 means 256 MiB for KindSSD.
	// For KindMemory 0 means no limit except the free memory of the machine and its control group
	// (ErrMemory).
	MemoryBytes int64
	FS          FS           // nil: OSFS; KindSSD does not use it
	Logger      *slog.Logger // nil: none

	SSD SSDOptions // for KindSSD alone
}

// SSDOptions are the options of KindSSD alone. The zero value is the default.
type SSDOptions struct {
	// Dirs are the table's directories, one per SSD. The first also holds the catalog; each of the
	// others has a copy of it. The table cannot be opened without one of them. Empty means
	// Options.Dir alone. With Dirs, Options.Dir is not used. No directory may be given twice, not
	// even by another name or a link.
	Dirs []string
	// AllowLost lets Open accept that some of Dirs are missing, unreadable, or empty, like a new
	// disk mounted in place of a lost one. A directory whose disk fails while the table is opened,
	// or whose catalog is older than that of the others, counts as missing. The table then has all
	// rows of the other directories, as they were in the snapshot. LossHandler says what was lost.
	// Open reads all remaining buckets to count their rows. AllowLost implies Options.MustExist and
	// excludes Options.ReadOnly.
	AllowLost bool
	// CachePolicy is one of CachePolicies; "" is the first of them.
	CachePolicy string
	// LookaheadPasses is how many announced passes the policy "lookahead"
	// considers; 0 chooses the number from the budget.
	LookaheadPasses int
	// MaxSpaceAmplification bounds the bytes on disk per byte of live buckets (Stats.DiskLiveBytes,
	// which counts whole units of the device); 0 means 2.0. In any case, each directory may have
	// 3.5 MiB of dead bytes; with MemoryBytes beyond 16 MiB that grows, to 32 MiB from 256 MiB on.
	// So small tables may exceed the bound. The space that only snapshots need and the spool of an
	// import do not count. A call that writes buckets also compacts files, so that the bound holds
	// at any time.
	MaxSpaceAmplification float64
	// DirBudgetBytes bounds the space that bucket files, the rows that snapshots keep outside of
	// them, and the spool of an import take in each directory; 0 means no limit. The catalog is
	// small and does not count.
	DirBudgetBytes int64
	// HotBytes bounds how many bytes of clean rows (rows whose buckets are up to date) a snapshot
	// writes in addition to the dirty ones. It writes the most used ones, so that they are soon in
	// memory again after a restart. Every snapshot writes them anew, in the background, and every
	// snapshot that is kept takes this space on disk. A snapshot writes no clean rows during
	// training, that is, while there are working sets or announced passes, nor on a disk with less
	// than 256 MiB free. Dirty rows are saved and restored in any case. 0 means a quarter of
	// MemoryBytes, but at most 1 GiB; a negative value means that no clean rows are written or
	// restored.
	HotBytes int64
	// QueueDepth is the number of reads that a device has in flight; 0 chooses the number.
	QueueDepth int
	// Direct says whether I/O bypasses the page cache (direct I/O): "on"; "off"; or
	// "auto" (also ""), which uses direct I/O where the file system supports it.
	Direct string
	// Brief says that the table is open only for a short time, with less memory than usual, so that
	// the log does not ask for more.
	Brief bool
	// Source supplies the bytes that bucket files lack; nil: they lack none, see ErrArriving.
	Source Source
}

func (o *Options) ensureDefaults() {
	if o.Kind == "" {
		o.Kind = KindMemory
	}
	if o.FS == nil {
		o.FS = OSFS{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ReadOnly || o.SSD.AllowLost {
		o.MustExist = true
	}
}

// Validate returns everything that is wrong with o.
func (o *Options) Validate() error {
	var errs []error
	switch o.Kind {
	case "", KindMemory:
	case KindSSD:
		errs = append(errs, o.onSSD().Validate())
	default:
		errs = append(errs, fmt.Errorf("sparsetable: unknown kind %q: want %q or %q", o.Kind, KindMemory, KindSSD))
	}
	if o.Layout != (Layout{}) {
		errs = append(errs, o.Layout.Validate())
	}
	if o.MemoryBytes < 0 {
		errs = append(errs, fmt.Errorf("sparsetable: memory budget of %d bytes: want 0 (the default) or more", o.MemoryBytes))
	}
	if o.Dir == "" && o.Kind != KindSSD && (o.MustExist || o.ReadOnly || o.SnapshotID != 0) {
		errs = append(errs, errors.New("sparsetable: opening an existing table needs its directory"))
	}
	return errors.Join(errs...)
}

// CheckBudget returns a BudgetError if MemoryBytes is too little even for an empty table of KindSSD
// with rows of this Layout. The error names a budget that suffices on every device. Open checks the
// same, but only when the directories are available.
func (o Options) CheckBudget() error {
	if o.Kind != KindSSD {
		return nil
	}
	return o.onSSD().CheckBudget()
}

// ForecastBytes is the most memory that a new table of o takes when it has the given number of
// rows; rows < 0 means that the number is unknown. The result is 0 if nothing bounds the memory.
// Options.Dir is not read.
func ForecastBytes(o Options, rows int64) int64 {
	if o.Kind == KindSSD {
		return o.onSSD().ForecastBytes(rows)
	}
	if rows < 0 {
		return o.MemoryBytes
	}
	n := memory.ForecastBytes(o.Layout, rows)
	if o.MemoryBytes > 0 {
		return min(n, o.MemoryBytes)
	}
	return n
}

// Open opens the table that o describes. ctx cancels only the opening; it has no effect once Open
// has returned.
//
// Errors: ErrNoSnapshot; *CorruptionError, with file and offset; ErrBudget or ErrMemory when the
// snapshot's rows do not fit; *LayoutError when the rows have another layout than
// o.Layout; for KindSSD also ErrInUse, ErrFiles and ErrNoSpace.
func Open(ctx context.Context, o Options) (Table, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.ensureDefaults()
	if o.Kind == KindSSD {
		return openSSD(ctx, o)
	}
	return openMemory(ctx, o)
}
