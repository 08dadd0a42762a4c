package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"io"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/lost"
)

// LossHandler is what a table of KindSSD implements. Each of its directories is a failure
// domain (CPR §4): when one is lost, the rows of the slots whose buckets lie there are lost,
// and no others. With SSDOptions.AllowLost the table opens nevertheless.
type LossHandler interface {
	// Lost says what the snapshot had that Open did not find; nil if it found everything.
	// It does not change while the table is open. Once a snapshot was taken, the table is
	// whole without the lost rows: when that snapshot is opened, Lost returns nil.
	Lost() *Loss

	// Refill inserts rows of src, until src returns io.EOF, that may have been lost and
	// whose key the table does not have now, and returns their number. It leaves out all
	// others, also rows that were never trained. So with the rows of an earlier snapshot as
	// src, the lost rows go back to that snapshot while the others stay (partial recovery,
	// CPR §4.1), apart from rows that were made anew since Open. Rows that were added after the
	// earlier snapshot stay lost; Pull makes them again by Options.Init. Rows of lost slots
	// that were expired since come back, until Expire drops them again.
	//
	// Refill must not run while working sets are pinned (ErrPinned). After an error, some of
	// the rows are inserted; a second Refill with the same rows inserts the others. Where
	// nothing was lost, it inserts nothing and does not read src.
	Refill(ctx context.Context, src RowSource) (rows int64, err error)

	// RefillFrom is Refill with all rows of another table of the same layout.
	RefillFrom(ctx context.Context, from Table) (rows int64, err error)
}

// Loss is what a table lacks that was opened with SSDOptions.AllowLost.
type Loss = lost.Loss

// Lost implements LossHandler.
func (t *ssd) Lost() *Loss {
	if t.lost == nil {
		return nil
	}
	l := t.lost.Loss
	return &l
}

// Refill implements LossHandler.
func (t *ssd) Refill(ctx context.Context, src RowSource) (rows int64, err error) {
	if t.lost == nil {
		return 0, nil
	}
	r, err := t.newRefill(ctx)
	if err != nil {
		return 0, err
	}
	defer r.close()
	for {
		key, row, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.add(key, row)
		}
		if err != nil {
			return r.rows, errors.Join(err, r.flush())
		}
	}
	err = r.flush()
	return r.rows, err
}

// RefillFrom implements LossHandler.
func (t *ssd) RefillFrom(ctx context.Context, from Table) (rows int64, err error) {
	if t.lost == nil {
		return 0, nil
	}
	if have := from.Layout(); have != t.layout {
		return 0, &LayoutError{Dir: t.dirs.Names[0], Have: t.layout, Want: have}
	}
	r, err := t.newRefill(ctx)
	if err != nil {
		return 0, err
	}
	defer r.close()
	if err := from.Scan(ctx, r.add); err != nil {
		return r.rows, err
	}
	err = r.flush()
	return r.rows, err
}

// refill is a call of Refill.
type refill struct {
	t    *ssd
	ctx  context.Context
	keys []uint64
	all  []float32 // the rows of keys
	rows int64     // inserted

	next int // of keys, for Next
}

// refillBytes is how many bytes of rows are looked up at a time. More would not make it
// faster: they are hundreds of reads.
const refillBytes = 256 << 10

// newRefill begins a call of Refill, which ends with close. Close of the table waits for that.
func (t *ssd) newRefill(ctx context.Context) (*refill, error) {
	if err := t.door.Enter(); err != nil {
		return nil, err
	}
	n := int(max(1, min(int64(refillBytes/layout.EntryBytes(t.layout)), t.fitRows.Load()/8)))
	err := t.borrow(ctx, int64(n*layout.EntryBytes(t.layout)))
	if errors.Is(err, errNoVictims) {
		err = t.overBudget("the rows to be inserted", t.aLittleMore())
	}
	if err != nil {
		t.door.Leave()
		return nil, apierr.Of(err)
	}
	return &refill{t: t, ctx: ctx, keys: make([]uint64, 0, n), all: make([]float32, 0, n*t.layout.Words())}, nil
}

func (r *refill) close() {
	r.t.giveBack(int64(cap(r.keys) * layout.EntryBytes(r.t.layout)))
	r.t.door.Leave()
}

// add adds a row that may be inserted.
func (r *refill) add(key uint64, row []float32) error {
	t := r.t
	if len(row) != t.layout.Words() {
		return fmt.Errorf("sparsetable: refill key %d: a row of %d words, want %d", key, len(row), t.layout.Words())
	}
	if !t.lost.Row(t.hash.Of(key)) || !t.trained(row) {
		return nil
	}
	r.keys, r.all = append(r.keys, key), append(r.all, row...)
	if len(r.keys) == cap(r.keys) {
		return r.flush()
	}
	return nil
}

// flush inserts those of the rows whose key the table does not have.
func (r *refill) flush() error {
	if len(r.keys) == 0 {
		return nil
	}
	ws, err := r.t.Pull(r.ctx, r.keys, PullLookup)
	if err != nil {
		return err
	}
	words, n := r.t.layout.Words(), 0
	for i, key := range r.keys {
		if !ws.Found(i) {
			r.keys[n] = key
			copy(r.all[n*words:], r.all[i*words:(i+1)*words])
			n++
		}
	}
	ws.Release()
	r.keys, r.next = r.keys[:n], 0
	rows, err := r.t.Import(r.ctx, r)
	r.rows += rows
	r.keys, r.all = r.keys[:0], r.all[:0]
	return err
}

// Next implements RowSource, for flush.
func (r *refill) Next() (uint64, []float32, error) {
	if r.next == len(r.keys) {
		return 0, nil, io.EOF
	}
	i, words := r.next, r.t.layout.Words()
	r.next++
	return r.keys[i], r.all[i*words : (i+1)*words], nil
}
