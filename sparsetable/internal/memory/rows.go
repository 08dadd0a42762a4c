package memory

import (
	"context"
	"errors"
	"fmt"
	"io"

	"aibox/sparsetable/internal/contract"
)

// scanChunk is the number of rows handled per acquisition of the mutex.
const scanChunk = 1024

// Scan implements Table.
func (t *Table) Scan(ctx context.Context, fn func(key uint64, row []float32) error) error {
	if err := t.inFlight.Begin(); err != nil {
		return err
	}
	defer t.inFlight.End()
	t.mu.Lock()
	end := t.mu.slabs.next
	t.mu.Unlock()
	type entry struct {
		key uint64
		row []float32
	}
	chunk := make([]entry, 0, scanChunk)
	for from := uint64(1); from < end; from += scanChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Only the caller trains rows, and not while Scan runs. But a Pull may create rows
		// meanwhile, in places that were free.
		t.mu.Lock()
		chunk = chunk[:0]
		for ref := from; ref < min(from+scanChunk, end); ref++ {
			if t.mu.slabs.trained(uint32(ref)) {
				chunk = append(chunk, entry{t.mu.slabs.key(uint32(ref)), t.mu.slabs.row(uint32(ref))})
			}
		}
		t.mu.Unlock()
		for _, e := range chunk {
			if err := fn(e.key, e.row); err != nil {
				return err
			}
		}
	}
	return nil
}

// change begins Import and Expire; the caller calls end when it is done.
func (t *Table) change(ctx context.Context) (end func(), err error) {
	if t.readOnly {
		return nil, contract.ErrReadOnly
	}
	if end, err = t.inFlight.BeginLocked(ctx, t.changing, t.saving); err != nil {
		return nil, err
	}
	t.mu.Lock()
	n := len(t.mu.live)
	t.mu.Unlock()
	if n > 0 {
		end()
		return nil, fmt.Errorf("%w: %d", contract.ErrPinned, n)
	}
	return end, nil
}

// Import implements Table.
func (t *Table) Import(ctx context.Context, src contract.RowSource) (rows int64, err error) {
	end, err := t.change(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	for {
		if rows%pullChunk == 0 && ctx.Err() != nil {
			return rows, ctx.Err()
		}
		key, row, err := src.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		if len(row) != t.layout.Words() {
			return rows, fmt.Errorf("sparsetable: import key %d: a row of %d words, want %d", key, len(row), t.layout.Words())
		}
		if t.layout.Stats(row).Count == 0 {
			continue
		}
		if err := t.importRow(key, row); err != nil {
			return rows, fmt.Errorf("after %d imported rows: %w", rows, err)
		}
		rows++
	}
}

func (t *Table) importRow(key uint64, row []float32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	ref := t.mu.index.find(key, t.mu.slabs)
	if ref == 0 {
		if err := t.growLocked(1, fmt.Sprintf("importing %d rows and more", t.mu.slabs.used+1)); err != nil {
			return err
		}
		var err error
		if ref, err = t.createLocked(key); err != nil {
			return err
		}
	}
	copy(t.mu.slabs.row(ref), row)
	return nil
}

// Expire implements Table. It also drops placeholders, but does not count them, because no other
// method shows them.
func (t *Table) Expire(ctx context.Context, rule contract.ExpiryRule) (rows int64, err error) {
	end, err := t.change(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.slabs
	for ref := uint32(1); uint64(ref) < s.next; ref++ {
		if ref%scanChunk == 0 && ctx.Err() != nil {
			return rows, ctx.Err()
		}
		key := s.key(ref)
		trained := s.trained(ref)
		if !trained && t.mu.index.find(key, s) != ref {
			continue // free
		}
		if trained && !rule.Expires(t.layout.Stats(s.row(ref))) {
			continue
		}
		t.mu.index.remove(key, ref)
		s.put(ref)
		if trained {
			rows++
		}
	}
	t.mu.stats.Expired += rows
	return rows, nil
}
