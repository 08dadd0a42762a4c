package ssd

import (
	"fmt"

	"aibox/internal/kernel"
	"aibox/sparsetable/internal/catalog"
	"aibox/sparsetable/internal/layout"
	"aibox/sparsetable/internal/slots"
	"aibox/sparsetable/internal/spool"
	"aibox/sparsetable/internal/tabledirs"
)

// identity is what never changes in a table. It is stored in the catalog.
type identity struct {
	layout  layout.Layout
	unit    int // size of a unit in bytes: a bucket takes a whole number of units
	tableID uint64
	hash    slots.Hasher // of keys
}

// hasherOf is the hash of a table by its number. Tests replace it to be reproducible.
var hasherOf = func(tableID uint64) slots.Hasher { return slots.Hasher(tableID) }

// identify sets d from the format f in the catalog at catalogPath, of a table whose first directory
// is dir.
func (d *identity) identify(f catalog.Format, catalogPath, dir string) (err error) {
	d.unit = f.UnitBytes
	if d.layout, err = tabledirs.LayoutOf(f); err != nil {
		return fmt.Errorf("the table in %s: %w", dir, err)
	}
	if d.tableID, err = tabledirs.TableNumber(f); err != nil {
		return err
	}
	switch f.Hash {
	case slots.HashName:
	case slots.SeededHashName:
		d.hash = hasherOf(d.tableID)
	default:
		return &catalog.FormatError{Dir: catalogPath, Field: "hash", Have: f.Hash, Want: slots.SeededHashName}
	}
	return nil
}

// Layout implements Table.
func (d *identity) Layout() layout.Layout { return d.layout }

// entryBytes is the size of a row in a spool.
func (d *identity) entryBytes() int { return spool.EntryBytes(d.layout.Bytes()) }

// trained reports whether row is not a placeholder.
func (d *identity) trained(row []float32) bool { return layout.Trained(row) }

// hashKeys sets hashes[i] to the hash of keys[i].
func (d *identity) hashKeys(hashes, keys []uint64) {
	kernel.Parallel(len(keys), 1<<14, func(lo, hi int) {
		for i, k := range keys[lo:hi] {
			hashes[lo+i] = d.hash.Of(k)
		}
	})
}
