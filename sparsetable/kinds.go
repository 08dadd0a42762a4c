package sparsetable

import (
	"context"

	"aibox/sparsetable/internal/memory"
	"aibox/sparsetable/internal/ssd"
	"aibox/sparsetable/internal/transfer"
)

// inMemory is the table of KindMemory.
type inMemory struct{ *memory.Table }

// openMemory opens a table. o has its defaults and is valid.
func openMemory(ctx context.Context, o Options) (Table, error) {
	t, err := memory.Open(ctx, memory.Options{
		Dir: o.Dir, SnapshotID: o.SnapshotID, MustExist: o.MustExist, ReadOnly: o.ReadOnly,
		Layout: o.Layout, Init: o.Init, MemoryBytes: o.MemoryBytes, FS: o.FS, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	return inMemory{t}, nil
}

// HoldSnapshot implements SnapshotHolder. The file stays open, so it can be read even after it was
// deleted.
func (t inMemory) HoldSnapshot(id uint64) (*SnapshotFiles, error) {
	f, err := t.HoldFile(id)
	if err != nil {
		return nil, err
	}
	return transfer.OfFile(f)
}

// onSSD are the options of a table of KindSSD.
func (o *Options) onSSD() ssd.Options {
	return ssd.Options{
		Dir: o.Dir, SnapshotID: o.SnapshotID, MustExist: o.MustExist, ReadOnly: o.ReadOnly,
		Layout: o.Layout, Init: o.Init, MemoryBytes: o.MemoryBytes, Logger: o.Logger, Settings: ssd.Settings(o.SSD),
	}
}

// openSSD opens a table. o has its defaults and is valid.
func openSSD(ctx context.Context, o Options) (Table, error) {
	t, err := ssd.Open(ctx, o.onSSD())
	if err != nil {
		return nil, err
	}
	return t, nil
}
