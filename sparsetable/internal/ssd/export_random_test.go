package ssd

import (
	"context"
	"errors"
	"math/rand/v2"

	"aibox/sparsetable/internal/apierr"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/contract"
)

// EvictRows evicts up to n rows from the cache of a table on SSD.
func EvictRows(tab contract.Scanner, n int) error {
	t := tab.(*Table)
	t.rewrite.Lock()
	defer t.rewrite.Unlock()
	err := t.keepShape()
	if err == nil {
		_, err = t.evict(n)
	}
	return apierr.Of(err)
}

// EmptyAFile moves the buckets out of some file to which nothing is being appended, and returns its
// number, or 0 if there is no such file.
func EmptyAFile(ctx context.Context, tab contract.Scanner, rng *rand.Rand) (file uint32, err error) {
	t := tab.(*Table)
	t.rewrite.compacting.Lock()
	defer t.rewrite.compacting.Release()
	c := t.files.CompactionCandidates()
	if len(c) == 0 {
		return 0, nil
	}
	file = c[rng.IntN(len(c))].File
	return file, apierr.Of(t.emptyFile(ctx, file))
}

// CatalogFailed reports whether an error says that the catalog can no longer be used, so that only
// a new process can continue.
func CatalogFailed(err error) bool { return errors.Is(err, catalog.ErrFailed) }
