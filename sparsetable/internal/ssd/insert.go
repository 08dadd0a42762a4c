package ssd

import (
	"context"
	"errors"
	"fmt"

	"aibox/sparsetable/internal/bucketfile"
	"aibox/sparsetable/internal/rowcache"
)

// insert puts rows into the cache, fills them (with p.Rows, or else with Options.Init), and sets
// the references at their positions in refs. A reference is set only once its row is filled, so
// that all cached rows are complete even after an error.
func (t *Table) insert(ctx context.Context, p *rowcache.Incoming, refs []uint32, stored bool) error {
	return t.insertBy(ctx, t.cache.Insert, p, refs, stored)
}

// insertBy is insert with one of the cache's methods Insert and Reinsert.
func (t *Table) insertBy(
	ctx context.Context, insert func(keys, hashes []uint64, used, refs []uint32, mark2 bool) (int, error),
	p *rowcache.Incoming, refs []uint32, stored bool,
) error {
	n, got := len(p.Keys), p.Refs()
	const tries = 3 // attempts in a row that insert nothing
	for done, left := 0, tries; done < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var used []uint32 // nil: never
		if len(p.Uses) > 0 {
			used = p.Uses[done:]
		}
		added, err := insert(p.Keys[done:], p.Hashes[done:], used, got[done:], stored)
		slabs, shift, mask := t.cache.Slabs()
		words := t.layout.Words()
		for i := done; i < done+added; i++ {
			ref := got[i]
			off := int(ref&mask) * words
			row := slabs[ref>>shift][off : off+words]
			if len(p.Rows) > 0 {
				copy(row, p.Rows[i])
			} else if t.opts.Init != nil {
				t.opts.Init(p.Keys[i], row)
			}
			refs[p.At[i]] = ref
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
