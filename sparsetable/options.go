package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// Layout is the layout of the rows. The zero value means that of the opened
	// snapshot; any other must be the same as the snapshot's.
	Layout Layout
	// Init fills the values and the state of a new row, which is all zeros. It must
	// leave the statistics as they are, and its result must depend on nothing but
	// key. With nil, new rows stay zero.
	Init func(key uint64, row []float32)
	// MemoryBytes is a hard limit on what the table holds in memory. 0 means
	// 256 MiB for KindSSD; for KindMemory it means no limit, but what the machine and its control group have left (ErrMemory).
	MemoryBytes int64
	FS          FS           // nil: OSFS; KindSSD does not use it
	Logger      *slog.Logger // nil: none

	SSD SSDOptions // for KindSSD alone
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
	if o.Kind == KindSSD {
		o.ensureSSDDefaults()
	}
	if o.ReadOnly || o.SSD.AllowLost {
		o.MustExist = true
	}
}

// Validate reports everything that is wrong with o.
func (o *Options) Validate() error {
	var errs []error
	switch o.Kind {
	case "", KindMemory:
	case KindSSD:
		errs = append(errs, o.validateSSD())
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

// Open opens the table that o describes. ctx ends the opening; it has no effect
// once Open has returned.
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
		return openSSD(ctx, o, ssdStorage{})
	}
	return openMemory(ctx, o)
}
