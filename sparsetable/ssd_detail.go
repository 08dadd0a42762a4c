package sparsetable

import (
	"context"
	"fmt"

	"aibox/sparsetable/internal/details"
)

// Details are figures that Stats leaves out because they take a pass over the
// index.
type Details = details.Details

// Detailer is implemented by tables that have Details, those of KindSSD.
type Detailer interface {
	// Details makes a pass over the index. Writers of buckets wait for it.
	Details(ctx context.Context) (*Details, error)
}

// Details implements Detailer.
func (t *ssd) Details(ctx context.Context) (*Details, error) {
	if err := t.door.Enter(); err != nil {
		return nil, err
	}
	defer t.door.Leave()
	st := t.openStats()
	d := &Details{Stats: st, Lifetime: t.lifetime(st)}
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

// DetailsOf returns the details of a table, or an error that wraps
// ErrUnsupported where its kind has none.
func DetailsOf(ctx context.Context, t Table) (*Details, error) {
	d, ok := t.(Detailer)
	if !ok {
		return nil, fmt.Errorf("%w: details of a table of kind %q", ErrUnsupported, t.Stats().Kind)
	}
	return d.Details(ctx)
}
