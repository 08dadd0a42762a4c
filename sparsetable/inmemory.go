package sparsetable

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"aibox/sparsetable/internal/memory"
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

// HoldSnapshot implements SnapshotHolder. The file is open from then on, so it can be read
// after it was deleted.
func (t inMemory) HoldSnapshot(id uint64) (*SnapshotFiles, error) {
	f, err := t.HoldFile(id)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	path := f.Name()
	file := PortableFile{Name: filepath.Base(path), Path: path, Bytes: info.Size(), Open: func() (OpenFile, error) { return keptOpen{f}, nil }}
	return &SnapshotFiles{Files: []PortableFile{file}, Release: sync.OnceValue(f.Close)}, nil
}
