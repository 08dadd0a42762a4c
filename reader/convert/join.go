package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"aibox/reader"
)

// Join adds columns of a side table to every row, found by a key.
type Join struct {
	// Table is the side table: URIs, Schema, Compression; the rest comes from
	// the input's options. It is held in memory.
	Table reader.Options
	On    string // column of the rows that holds the key
	Key   string // column of the table that holds it; "": On
	// Add are columns of the table; none means all except the key. In that case, partition columns,
	// which come from directories such as dt=2026-11-20, are added only if the options name them.
	Add []string
}

// joinTable is a side table in memory.
type joinTable struct {
	add        []string
	stored     []reader.Stored // of the added columns
	on         int             // column of the rows
	separators []string        // of the added columns: the text between the values of a list
	rows       *rowStore
	byKey      map[string]int32
	unmatched  int64
	cells      [][]byte
	found      [][]byte
}

// loadJoin reads a side table. A key that occurs twice is an error, because it is ambiguous which
// row to join.
func loadJoin(ctx context.Context, j *Join, options *Options, available []string, memory *memoryBudget) (t *joinTable, err error) {
	where := func(err error) error { return fmt.Errorf("convert: join on %q: %w", j.On, err) }
	t = &joinTable{on: slices.Index(available, j.On), byKey: map[string]int32{}}
	if t.on < 0 {
		return nil, where(optionsErrorf("the rows have no such column; they have %s", quoteAll(available)))
	}
	key := j.Key
	if key == "" {
		key = j.On
	}
	o, from := j.Table, &options.From
	o.KeepLists, o.Whole = from.KeepLists, len(j.Add) == 0 && len(o.Schema.Columns) == 0
	o.Sources, o.Threads, o.Logger, o.MaxLineBytes = from.Sources, from.Threads, from.Logger, from.MaxLineBytes
	if err := list(ctx, &o, "the side table"); err != nil {
		return nil, where(err)
	}
	names, err := reader.ColumnNames(ctx, o)
	if err != nil {
		return nil, where(err)
	}
	t.add = j.Add
	if len(t.add) == 0 {
		t.add = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == key })
		for _, name := range reader.PartitionColumns(&o) {
			if name != key && options.asksFor(name) && !slices.Contains(names, name) && !slices.Contains(available, name) {
				t.add = append(t.add, name)
			}
		}
	}
	for _, name := range t.add {
		if slices.Contains(available, name) {
			return nil, where(optionsErrorf("the rows already have a column %q: choose the columns to add with --add", name))
		}
	}
	in, err := reader.OpenRaw(ctx, o, append(slices.Clone(t.add), key))
	if err != nil {
		return nil, where(err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for _, name := range t.add {
		t.separators = append(t.separators, in.ListSeparator(name))
	}
	t.stored = in.Stored()[:len(t.add)]
	t.rows = newRowStore(len(t.add), memory)
	t.found = make([][]byte, len(t.add))
	for {
		cells, err := in.Next(ctx)
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, where(err)
		}
		id := string(cells[len(t.add)])
		if _, twice := t.byKey[id]; twice {
			return nil, where(fmt.Errorf("the table has the key %q twice", id))
		}
		// A map entry takes about 64 bytes in addition to the key.
		if err := memory.take(int64(len(id)) + 64); err != nil {
			return nil, where(err)
		}
		t.byKey[id] = int32(t.rows.len())
		if err := t.rows.add(cells[:len(t.add)]); err != nil {
			return nil, where(err)
		}
	}
}

// join returns the row with the table's cells added; they are empty if the table does
// not have the row's key.
func (t *joinTable) join(cells [][]byte) [][]byte {
	row, found := t.byKey[string(cells[t.on])]
	if found {
		t.rows.row(row, t.found)
	} else {
		t.unmatched++
		clear(t.found)
	}
	t.cells = append(append(t.cells[:0], cells...), t.found...)
	return t.cells
}
