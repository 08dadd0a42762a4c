package lost

import (
	"context"
	"fmt"
	"io"

	"aibox/sparsetable/internal/contract"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/slots"
)

// Table is a Refill's view of the table.
type Table interface {
	Pull(ctx context.Context, keys []uint64, mode contract.PullMode) (*contract.WorkingSet, error)
	Import(ctx context.Context, src contract.RowSource) (rows int64, err error)
}

// Refill inserts rows that may have been lost and whose keys the table does not have now.
type Refill struct {
	ctx    context.Context
	table  Table
	files  *Files
	hash   slots.Hasher
	layout layout.Layout

	keys     []uint64
	all      []float32 // the rows of keys
	inserted int64

	next int // of keys, for Next
}

// refillBytes is how many bytes of rows are looked up at a time. They cause hundreds of reads, so
// more would not be faster.
const refillBytes = 256 << 10

// RefillRows is how many rows of a layout are looked up at a time, in a table that can have fit
// rows in memory.
func RefillRows(l layout.Layout, fit int64) int {
	return int(max(1, min(int64(refillBytes/layout.EntryBytes(l)), fit/8)))
}

// NewRefill makes a Refill of a table that has lost these files; it buffers up to rows rows of
// layout l.
func NewRefill(ctx context.Context, t Table, files *Files, hash slots.Hasher, l layout.Layout, rows int) *Refill {
	return &Refill{ctx: ctx, table: t, files: files, hash: hash, layout: l, keys: make([]uint64, 0, rows), all: make([]float32, 0, rows*l.Words())}
}

// Inserted is the number of inserted rows.
func (r *Refill) Inserted() int64 { return r.inserted }

// Add adds a row that may be inserted.
func (r *Refill) Add(key uint64, row []float32) error {
	if len(row) != r.layout.Words() {
		return fmt.Errorf("sparsetable: refill key %d: a row of %d words, want %d", key, len(row), r.layout.Words())
	}
	if !r.files.Row(r.hash.Of(key)) || !layout.Trained(row) {
		return nil
	}
	r.keys, r.all = append(r.keys, key), append(r.all, row...)
	if len(r.keys) == cap(r.keys) {
		return r.Flush()
	}
	return nil
}

// Flush inserts the added rows whose keys the table does not have.
func (r *Refill) Flush() error {
	if len(r.keys) == 0 {
		return nil
	}
	ws, err := r.table.Pull(r.ctx, r.keys, contract.PullLookup)
	if err != nil {
		return err
	}
	words, n := r.layout.Words(), 0
	for i, key := range r.keys {
		if !ws.Found(i) {
			r.keys[n] = key
			copy(r.all[n*words:], r.all[i*words:(i+1)*words])
			n++
		}
	}
	ws.Release()
	r.keys, r.next = r.keys[:n], 0
	rows, err := r.table.Import(r.ctx, r)
	r.inserted += rows
	r.keys, r.all = r.keys[:0], r.all[:0]
	return err
}

// Next implements contract.RowSource, for Flush.
func (r *Refill) Next() (uint64, []float32, error) {
	if r.next == len(r.keys) {
		return 0, nil, io.EOF
	}
	i, words := r.next, r.layout.Words()
	r.next++
	return r.keys[i], r.all[i*words : (i+1)*words], nil
}
