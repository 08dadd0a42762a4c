package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"io"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/offheap"
	"aibox/sparsetable/internal/spool"
)

// A large import makes two passes of sequential I/O.
//
//	source --> partitions by hash --> spool files          internal/spool
//	                                      |
//	            slots grown for all rows  |                ssd_bulk_grow.go
//	                                      v
//	spool --> a partition in memory, sorted by slot        internal/spool
//	old buckets, read ahead in the order of slots          ssd_bulk_read.go
//	      --> each slot's bucket, written once             ssd_bulk_merge.go
//
// The spool's files are deleted one after the other while buckets are written. So a
// new table needs little more space at any time than in the end, and a table of
// which every row is imported again needs twice its space. Where there is not as
// much, the import is done in rounds (ssd_bulk_space.go).
//
// A partition has all keys with certain bits in their hash, hence it is a set of
// whole slots. The new bucket of a slot is made of the imported rows of the slot,
// the rows of its old bucket, and its dirty rows in the cache. A small import, up
// to bulkPlan.smallRows, goes through the cache instead, as a Pull with updates
// does: the rows are pulled and overwritten.
//
// The memory for a large import is borrowed from the cache.

// importBatch is how many rows are pulled and overwritten at a time.
const importBatch = 1024

// importer is the state of one call of Import.
type importer struct {
	t     *ssd
	ctx   context.Context
	words int
	entry int // bytes of a row with its key

	// waiting holds rows, one after the other, each as key and words: at first up
	// to a batch of them, then up to bulkPlan.smallRows.
	waiting []byte
	mapped  []byte // the memory of waiting, if it was borrowed
	rows    int64  // applied

	pulled bool // there is too little memory or disk space for more than pulling batches
	bulk   *bulkLoad
}

// Import implements Table.
func (t *ssd) Import(ctx context.Context, src RowSource) (rows int64, err error) {
	end, err := t.change(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	im := importer{t: t, ctx: ctx, words: t.layout.Words(), entry: t.entryBytes()}
	im.waiting = make([]byte, 0, im.batchBytes())
	defer func() { err = errors.Join(err, im.close()) }()
	for {
		key, row, err := src.Next()
		if errors.Is(err, io.EOF) {
			return im.finish(nil)
		}
		if err == nil && len(row) != im.words {
			err = fmt.Errorf("sparsetable: import key %d: a row of %d words, want %d", key, len(row), im.words)
		}
		if err != nil {
			return im.finish(err)
		}
		if !t.trained(row) {
			continue
		}
		if im.bulk != nil {
			var full bool
			if full, err = im.bulk.full(); full {
				err = im.nextRound()
			}
		}
		switch {
		case err != nil:
		case im.bulk != nil:
			err = im.bulk.add(key, row)
		default:
			err = im.wait(key, row)
		}
		if err != nil {
			return im.applied(), im.failed(err)
		}
	}
}

// finish applies what the source gave before it ended, or failed with err.
func (im *importer) finish(err error) (int64, error) {
	var applied error
	if im.bulk != nil {
		applied = im.bulk.apply()
	} else {
		applied = im.pullWaiting()
	}
	if applied != nil {
		applied = im.failed(applied)
	}
	return im.applied(), errors.Join(err, applied)
}

func (im *importer) applied() int64 {
	if im.bulk != nil {
		return im.rows + im.bulk.applied
	}
	return im.rows
}

func (im *importer) failed(err error) error {
	return fmt.Errorf("after %d imported rows: %w", im.applied(), apierr.Of(err))
}

// wait keeps a row until it is known whether many rows follow.
func (im *importer) wait(key uint64, row []float32) error {
	if len(im.waiting)+im.entry > cap(im.waiting) {
		if err := im.more(); err != nil {
			return err
		}
		if im.bulk != nil {
			return im.bulk.add(key, row)
		}
	}
	n := len(im.waiting)
	im.waiting = im.waiting[:n+im.entry]
	spool.PutEntry(im.waiting[n:], key, row)
	return nil
}

// more makes room for another row.
func (im *importer) more() error {
	if err := im.ctx.Err(); err != nil {
		return err
	}
	t := im.t
	if !im.pulled && im.mapped == nil {
		bytes := t.bulk.smallRows * int64(im.entry)
		if bytes > int64(cap(im.waiting)) {
			err := t.borrow(im.ctx, bytes)
			if err == nil {
				return im.waitLonger(bytes)
			}
			if !errors.Is(err, errNoVictims) {
				return err
			}
		}
	}
	if !im.pulled {
		bulk, err := t.newBulkLoad(im.ctx)
		if err != nil {
			return err
		}
		if bulk != nil {
			im.bulk = bulk
			if err := spool.EachEntry(im.waiting, im.entry, bulk.add); err != nil {
				return err
			}
			return im.dropWaiting()
		}
		im.pulled = true
	}
	return im.pullWaiting()
}

// waitLonger moves the rows that wait to borrowed memory, which has room for more.
func (im *importer) waitLonger(bytes int64) error {
	m, err := offheap.Map(int(bytes))
	if err != nil {
		im.t.giveBack(bytes)
		return err
	}
	im.mapped = m
	im.waiting = append(m[:0], im.waiting...)
	return nil
}

// nextRound applies the rows of the spool and starts another spool. If there is no
// room for one, the rows that follow are pulled.
func (im *importer) nextRound() error {
	l := im.bulk
	if err := l.apply(); err != nil {
		return err
	}
	ok, err := l.begin()
	if ok || err != nil {
		return err
	}
	im.rows += l.applied
	im.bulk, im.pulled = nil, true
	im.waiting = make([]byte, 0, im.batchBytes())
	return l.close()
}

// batchBytes is how many bytes of rows are pulled at a time.
func (im *importer) batchBytes() int { return im.t.importLimit() * im.entry }

// importLimit is how many rows are pulled at a time.
func (t *ssd) importLimit() int {
	return max(1, min(importBatch, int(t.cache.Stats().FitRows/4), (64<<20)/t.entryBytes()))
}

// pullWaiting applies the rows that wait by pulling them, a batch at a time. A
// key that comes twice goes into the next batch.
func (im *importer) pullWaiting() error {
	keys := make([]uint64, 0, importBatch)
	seen := make(map[uint64]struct{}, importBatch)
	limit := im.t.importLimit()
	from := im.waiting
	flush := func() error {
		n := len(keys) * im.entry
		if err := im.t.importRows(im.ctx, keys, from[:n], im.entry); err != nil {
			return err
		}
		im.rows += int64(len(keys))
		keys, from = keys[:0], from[n:]
		clear(seen)
		return nil
	}
	err := spool.EachEntry(im.waiting, im.entry, func(key uint64, _ []float32) error {
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

// importRows pulls keys and overwrites their rows by those of entries, in
// smaller parts where the budget does not let all be pinned.
func (t *ssd) importRows(ctx context.Context, keys []uint64, entries []byte, entry int) error {
	if err := ctx.Err(); err != nil || len(keys) == 0 {
		return err
	}
	t.pull.divisible, t.pull.ahead = false, false
	ws, err := t.pullKeys(ctx, keys, PullCreate)
	if half := len(keys) / 2; errors.Is(err, ErrBudget) && half > 0 {
		if err := t.importRows(ctx, keys[:half], entries[:half*entry], entry); err != nil {
			return err
		}
		return t.importRows(ctx, keys[half:], entries[half*entry:], entry)
	}
	if err != nil {
		return err
	}
	t.publish(ws)
	i := 0
	err = spool.EachEntry(entries, entry, func(_ uint64, row []float32) error {
		copy(ws.Row(i), row)
		i++
		return nil
	})
	ws.Release()
	return err
}

// dropWaiting gives back the memory of the rows that wait.
func (im *importer) dropWaiting() error {
	im.waiting = nil
	if im.mapped == nil {
		return nil
	}
	bytes := int64(len(im.mapped))
	err := offheap.Unmap(im.mapped)
	im.mapped = nil
	im.t.giveBack(bytes)
	return err
}

func (im *importer) close() error {
	err := im.dropWaiting()
	if im.bulk != nil {
		err = errors.Join(err, im.bulk.close())
	}
	return err
}
