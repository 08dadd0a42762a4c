package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"aibox/internal/errkind"
)

// The kinds of tables.
const (
	KindMemory = "memory" // all rows in memory
	KindSSD    = "ssd"    // rows on SSDs, those in use in memory
)

// Options say what table to open.
type Options struct {
	Kind string // KindMemory, also when empty, or KindSSD
	// Dir is where snapshots live. Open makes it. "" means that the table
	// starts empty and cannot be saved.
	Dir        string
	SnapshotID uint64 // the snapshot to open; 0: the newest, or an empty table where there is none
	MustExist  bool   // ErrNoSnapshot instead of an empty table
	// ReadOnly opens an existing table and leaves its files alone: only
	// lookups, scans and statistics work. It implies MustExist.
	ReadOnly bool
	// Layout of the rows. Zero takes over that of the opened snapshot;
	// otherwise the two must be the same.
	Layout Layout
	// Init fills the values and the state of a new row, which is all zeros; it
	// must leave the statistics alone and depend on nothing but key. nil
	// leaves the zeros.
	Init func(key uint64, row []float32)
	// MemoryBytes is a hard limit on what the table holds in memory; 0 is no
	// limit, for KindSSD 256 MiB.
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
	if o.ReadOnly {
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
		errs = append(errs, fmt.Errorf("sparsetable: memory budget of %d bytes: want 0 (no limit) or more", o.MemoryBytes))
	}
	if o.Dir == "" && o.Kind != KindSSD && (o.MustExist || o.ReadOnly || o.SnapshotID != 0) {
		errs = append(errs, errors.New("sparsetable: opening an existing table needs its directory"))
	}
	return errors.Join(errs...)
}

// Open opens the table that o describes. ctx covers the opening alone.
//
// Errors: ErrNoSnapshot, *CorruptionError with file and offset, ErrBudget when
// the snapshot's rows do not fit, another layout than asked for.
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

// CorruptionError reports damage in a file.
type CorruptionError struct {
	File   string
	Offset int64 // of the damaged part: header, block, footer or bucket; -1: of no one place
	Bucket bool  // it is a bucket, that of Slot
	Slot   uint32
	Reason string
}

func (e *CorruptionError) Error() string {
	if e.Bucket {
		return fmt.Sprintf("sparsetable: %s is damaged at offset %d, in the bucket of slot %d: %s", e.File, e.Offset, e.Slot, e.Reason)
	}
	if e.Offset < 0 {
		return fmt.Sprintf("sparsetable: %s is damaged: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("sparsetable: %s is damaged at offset %d: %s", e.File, e.Offset, e.Reason)
}

// ErrorKind sorts the error for exit codes and reports.
func (*CorruptionError) ErrorKind() errkind.Kind { return errkind.IO }
