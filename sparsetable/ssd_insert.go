package sparsetable

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"aibox/sparsetable/internal/bucketfile"
)

// batch is rows to be inserted into the cache.
type batch struct {
	keys, keyHashes []uint64
	uses            []uint32
	refs            []uint32
	at              []uint32
	rows            [][]float32
}

// clearBatch empties the batch.
func (p *batch) clearBatch() {
	p.keys, p.keyHashes, p.uses, p.at, p.rows = p.keys[:0], p.keyHashes[:0], p.uses[:0], p.at[:0], p.rows[:0]
}

// insert puts the batch into the cache, fills each row, and sets the references at
// its positions. A reference is set only once its row is filled, so that even after
// an error all cached rows are complete.
func (t *ssd) insert(ctx context.Context, refs []uint32, fill func(i int, row []float32), stored bool) error {
	return t.insertBy(ctx, t.cache.Insert, refs, fill, stored)
}

// insertBy is insert by one of the cache's methods: Insert or Reinsert.
func (t *ssd) insertBy(
	ctx context.Context, insert func(keys, hashes []uint64, used, refs []uint32, mark2 bool) (int, error),
	refs []uint32, fill func(i int, row []float32), stored bool,
) error {
	p := &t.pull
	n := len(p.keys)
	p.refs = slices.Grow(p.refs[:0], n)[:n]
	clear(p.refs)
	const tries = 3 // successive attempts that insert nothing
	for done, left := 0, tries; done < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var used []uint32 // nil: never
		if len(p.uses) > 0 {
			used = p.uses[done:]
		}
		added, err := insert(p.keys[done:], p.keyHashes[done:], used, p.refs[done:], stored)
		slabs, shift, mask := t.cache.Slabs()
		words := t.layout.Words()
		for i := done; i < done+added; i++ {
			ref := p.refs[i]
			off := int(ref&mask) * words
			fill(i, slabs[ref>>shift][off:off+words])
			refs[p.at[i]] = ref
		}
		done += added
		if err != nil {
			return err
		}
		if added > 0 {
			left = tries
		} else if left--; left == 0 {
			return errNoVictims
		}
		if done < n {
			wrote, err := t.makeRoom(n - done)
			if errors.Is(err, bucketfile.ErrNoSpace) && t.compact(ctx) == nil {
				wrote, err = t.makeRoom(n - done)
			}
			if err != nil {
				return fmt.Errorf("sparsetable: make room for %d rows: %w", n-done, err)
			}
			if wrote {
				if err := t.keepSpace(ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
