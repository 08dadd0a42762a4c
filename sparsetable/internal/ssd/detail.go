package ssd

import (
	"context"

	"aibox/sparsetable/internal/details"
)

// Details implements sparsetable.Detailer.
func (t *Table) Details(ctx context.Context) (*details.Details, error) {
	if err := t.inFlight.Begin(); err != nil {
		return nil, err
	}
	defer t.inFlight.End()
	st := t.openStats()
	d := &details.Details{Stats: st, Lifetime: t.lifetime(st)}
	x := details.Index{Slots: t.index, Mutex: &t.indexMu, Unit: t.files.Unit(), Words: t.layout.Words()}
	if err := x.Count(ctx, d, t.tableID); err != nil {
		return nil, err
	}
	deltas, deltaBytes := t.checkpoints.Kept()
	_, each := t.files.Space()
	for i, sp := range each {
		dev := t.dirs.Devices[i]
		sp.Files += deltas[i]
		sp.HeldBytes += deltaBytes[i]
		d.Directories = append(d.Directories, details.DirectoryDetails{
			Dir: dev.Dir(), Files: sp.Files, DiskBytes: sp.TotalBytes + sp.OtherBytes, LiveBytes: sp.LiveBytes, HeldBytes: sp.HeldBytes,
			DyingBytes: sp.DyingBytes, BudgetBytes: sp.BudgetBytes, Direct: dev.Direct(), Engine: dev.Engine(),
			QueueDepth: dev.QueueDepth(), MaxInFlight: int64(dev.Stats().MaxInFlight),
		})
	}
	return d, nil
}
