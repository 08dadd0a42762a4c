package bulk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/distinct"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/space"
	"aibox/sparsetable/internal/spool"
)

// Table is an import's view of the table.
type Table interface {
	// Borrow takes bytes of memory from the cache, until GiveBack, or half of them, or a quarter
	// and so on, but not less than least. It returns how many it took, or 0 if the cache cannot
	// give even least.
	Borrow(ctx context.Context, bytes, least int64) (int64, error)
	GiveBack(bytes int64)
	// Overwrite sets the rows of keys, which are distinct, to those of entries, through the cache.
	// PullLimit is the maximum number of keys for one call.
	Overwrite(ctx context.Context, keys []uint64, entries []byte) error
	PullLimit() int
	// Grow grows the index to the size that the table needs with these keys, some of which the
	// table may already have.
	Grow(ctx context.Context, keys *distinct.Keys) error
	// NewMerger begins to merge rows with the table. It may use bytes of the borrowed memory. No
	// slot is split until the Merger is closed.
	NewMerger(bytes int64) Merger
}

// Merger writes rows into the buckets of their slots.
type Merger interface {
	// Merge merges the rows of an area. table is memory for a table of the keys of one slot. Merge
	// returns how many rows are in buckets, even with an error.
	Merge(ctx context.Context, area *spool.Area, table []uint32) (rows int64, err error)
	Close()
}

// Options say what to import into.
type Options struct {
	Table  Table
	Plan   Plan
	Spools *spool.Store
	Hash   slots.Hasher
	Words  int // of a row
	Entry  int // bytes of a row with its key
	// Trained reports whether a row was ever trained. Only such rows are imported.
	Trained func(row []float32) bool

	Files   *bucketfile.Set
	Space   *space.Policy
	Index   *slots.Index
	IndexMu *sync.RWMutex // guards Index
}

// dirs is the number of the table's directories.
func (o *Options) dirs() int { return len(o.Spools.Devices) }

// importer is the state of one call of Import.
type importer struct {
	Options
	ctx context.Context

	// waiting holds rows as consecutive pairs of key and words: at first up to a batch of them,
	// then up to Plan.SmallRows.
	waiting []byte
	mapped  []byte // the memory of waiting if it was borrowed
	rows    int64  // number of applied rows

	pulled bool // memory or disk space suffice only for pulling batches
	load   *load
}

// Import inserts the rows of src and returns how many it applied.
func Import(ctx context.Context, o Options, src contract.RowSource) (rows int64, err error) {
	im := importer{Options: o, ctx: ctx}
	im.waiting = make([]byte, 0, im.batchBytes())
	defer func() { err = errors.Join(err, im.close()) }()
	for {
		key, row, err := src.Next()
		if errors.Is(err, io.EOF) {
			return im.finish(nil)
		}
		if err == nil && len(row) != im.Words {
			err = fmt.Errorf("sparsetable: import key %d: a row of %d words, want %d", key, len(row), im.Words)
		}
		if err != nil {
			return im.finish(err)
		}
		if !im.Trained(row) {
			continue
		}
		if im.load != nil {
			var full bool
			if full, err = im.load.full(); full {
				err = im.nextRound()
			}
		}
		switch {
		case err != nil:
		case im.load != nil:
			err = im.load.add(key, row)
		default:
			err = im.wait(key, row)
		}
		if err != nil {
			return im.applied(), im.failed(err)
		}
	}
}

// finish applies the rows that the source returned before it ended, or failed with err.
func (im *importer) finish(err error) (int64, error) {
	var applied error
	if im.load != nil {
		applied = im.load.apply()
	} else {
		applied = im.pullWaiting()
	}
	if applied != nil {
		applied = im.failed(applied)
	}
	return im.applied(), errors.Join(err, applied)
}

func (im *importer) applied() int64 {
	if im.load != nil {
		return im.rows + im.load.applied
	}
	return im.rows
}

func (im *importer) failed(err error) error {
	return fmt.Errorf("after %d imported rows: %w", im.applied(), apierr.Of(err))
}

// wait keeps a row until it is known whether many more follow.
func (im *importer) wait(key uint64, row []float32) error {
	if len(im.waiting)+im.Entry > cap(im.waiting) {
		if err := im.more(); err != nil {
			return err
		}
		if im.load != nil {
			return im.load.add(key, row)
		}
	}
	n := len(im.waiting)
	im.waiting = im.waiting[:n+im.Entry]
	spool.PutEntry(im.waiting[n:], key, row)
	return nil
}

// more makes room for another row.
func (im *importer) more() error {
	if err := im.ctx.Err(); err != nil {
		return err
	}
	if !im.pulled && im.mapped == nil {
		if bytes := im.Plan.SmallRows * int64(im.Entry); bytes > int64(cap(im.waiting)) {
			got, err := im.Table.Borrow(im.ctx, bytes, bytes)
			if err != nil {
				return err
			}
			if got > 0 {
				return im.waitLonger(bytes)
			}
		}
	}
	if !im.pulled {
		l, err := newLoad(im.ctx, &im.Options)
		if err != nil {
			return err
		}
		if l != nil {
			im.load = l
			if err := spool.EachEntry(im.waiting, im.Entry, l.add); err != nil {
				return err
			}
			return im.dropWaiting()
		}
		im.pulled = true
	}
	return im.pullWaiting()
}

// waitLonger moves the waiting rows to borrowed memory, which has room for more.
func (im *importer) waitLonger(bytes int64) error {
	m, err := offheap.Map(int(bytes))
	if err != nil {
		im.Table.GiveBack(bytes)
		return err
	}
	im.mapped = m
	im.waiting = append(m[:0], im.waiting...)
	return nil
}

// nextRound applies the rows of the spool and starts another spool. If there is no room for one,
// the following rows are pulled.
func (im *importer) nextRound() error {
	l := im.load
	if err := l.apply(); err != nil {
		return err
	}
	ok, err := l.begin()
	if ok || err != nil {
		return err
	}
	im.rows += l.applied
	im.load, im.pulled = nil, true
	im.waiting = make([]byte, 0, im.batchBytes())
	return l.close()
}

// batchBytes is the size of the rows pulled at a time.
func (im *importer) batchBytes() int { return im.Table.PullLimit() * im.Entry }

// pullWaiting applies the waiting rows by pulling them, a batch at a time. A key that occurs again
// goes into the next batch.
func (im *importer) pullWaiting() error {
	keys := make([]uint64, 0, Batch)
	seen := make(map[uint64]struct{}, Batch)
	limit := im.Table.PullLimit()
	from := im.waiting
	flush := func() error {
		n := len(keys) * im.Entry
		if err := im.Table.Overwrite(im.ctx, keys, from[:n]); err != nil {
			return err
		}
		im.rows += int64(len(keys))
		keys, from = keys[:0], from[n:]
		clear(seen)
		return nil
	}
	err := spool.EachEntry(im.waiting, im.Entry, func(key uint64, _ []float32) error {
		if _, again := seen[key]; again || len(keys) == limit {
			if err := flush(); err != nil {
				return err
			}
		}
		seen[key] = struct{}{}
		keys = append(keys, key)
		return nil
	})
	if err == nil {
		err = flush()
	}
	im.waiting = im.waiting[:0]
	return err
}

// dropWaiting frees the memory of the waiting rows.
func (im *importer) dropWaiting() error {
	im.waiting = nil
	if im.mapped == nil {
		return nil
	}
	bytes := int64(len(im.mapped))
	err := offheap.Unmap(im.mapped)
	im.mapped = nil
	im.Table.GiveBack(bytes)
	return err
}

func (im *importer) close() error {
	err := im.dropWaiting()
	if im.load != nil {
		err = errors.Join(err, im.load.close())
	}
	return err
}
