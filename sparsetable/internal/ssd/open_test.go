package ssd_test

import (
	"context"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"aibox/sparsetable"
	"aibox/sparsetable/internal/blockio"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/ssd"
)

// openOn opens a table of KindSSD as sparsetable.Open does, but on devices and a file system that
// the test chooses.
func openOn(ctx context.Context, o sparsetable.Options, devices []blockio.Device, fs vfs.FS) (sparsetable.Table, error) {
	return openHashed(ctx, o, devices, fs, "")
}

// openOldOn is openOn, but makes a new table like an older version, whose hash is slots.Hash.
func openOldOn(ctx context.Context, o sparsetable.Options, devices []blockio.Device, fs vfs.FS) (sparsetable.Table, error) {
	return openHashed(ctx, o, devices, fs, slots.HashName)
}

func openHashed(ctx context.Context, o sparsetable.Options, devices []blockio.Device, fs vfs.FS, hash string) (sparsetable.Table, error) {
	o.Kind = sparsetable.KindSSD
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t, err := ssd.OpenOn(ctx, ssd.Options{
		Dir: o.Dir, SnapshotID: o.SnapshotID, MustExist: o.MustExist || o.ReadOnly || o.SSD.AllowLost, ReadOnly: o.ReadOnly,
		Layout: o.Layout, Init: o.Init, MemoryBytes: o.MemoryBytes, Logger: o.Logger, Settings: ssd.Settings(o.SSD),
	}, devices, fs, hash)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// smallest returns the smallest budget of a table that has that many rows in memory.
func smallest(l sparsetable.Layout, s sparsetable.SSDOptions, resident int64) int64 {
	return ssd.Smallest(l, ssd.Settings(s), resident)
}
