package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"aibox/reader"
)

// Options says what Run reads, does and writes.
//
//	From -> Joins -> Columns -> SortBy -> Split -> To[0], To[1]
type Options struct {
	// From is the input. The roles and transforms of its schema, BatchSize, sampling
	// and shuffling are ignored. If its label rule has a comparison, the label is
	// written as 0 and 1. With a header, or in Parquet, the schema may have no columns:
	// then all columns of the first file are read. A column that only a directory such
	// as dt=2026-11-20 gives is read if Columns, SortBy or a Join names it, and so is one
	// of a group of Parquet, as GROUP.COLUMN. Limit counts rows.
	From  reader.Options
	Joins []Join
	// Columns are written, in this order; none means all columns of the input
	// and the joined ones, as the input's schema has them.
	Columns []OutputColumn
	// SortBy is a column of the input or a joined one; "" keeps the input's order. If
	// every cell is a number or empty, cells are sorted as numbers, with the empty ones
	// first, otherwise as bytes. Rows with equal cells keep their order.
	SortBy     string
	Descending bool
	Split      Split
	// To are the files that are written: one, or two with a Split. Their names tell the
	// compression, as in CreateRows.
	To        []string
	Format    reader.Format
	Header    bool // csv, tsv
	Delimiter byte // csv, tsv; 0: the format's own
	// MemoryBytes bounds the joined tables and the sorted rows together, which
	// are held in memory; 0: 4 GiB.
	MemoryBytes int64

	asked map[string]bool // the columns of the input that the options name; nil: not collected yet
}

// OutputColumn is a column that Run writes.
type OutputColumn struct {
	From   string        // column of the input or of a join; "": Column.Name
	Column reader.Column // its name and what the output format needs of it
}

// defaultConvertMemory is the default of MemoryBytes. A small server can spare that much.
const defaultConvertMemory = 4 << 30

// Summary says what Run did.
type Summary struct {
	Counts    reader.Counts `json:"counts"`
	Written   []int64       `json:"written"`   // rows per file of To
	Unmatched []int64       `json:"unmatched"` // rows per join without a partner
	// Lists are the columns of Parquet lists that became text.
	Lists []ListColumn `json:"lists,omitempty"`
	// Label is the column that a label rule has made 0 or 1; "": none.
	Label string `json:"label,omitempty"`
}

// ListColumn is a column that was a list and is text now: a reader of it needs
// the separator in its schema.
type ListColumn struct {
	Column    string `json:"column"`
	Separator string `json:"separator"`
}

// Run reads rows of any format and writes them in any other. Cells are copied as text;
// reader.CreateRows says how the output format changes them, and a row with a cell that the
// format cannot hold is a bad row. The files of To appear after all of them are
// complete, or not at all. The errors are of the same kinds as those of a reader.Reader.
func Run(ctx context.Context, o Options) (*Summary, error) {
	c := &converter{options: &o, memory: &memoryBudget{left: o.MemoryBytes}}
	if o.MemoryBytes == 0 {
		c.memory.left = defaultConvertMemory
	}
	if err := o.Split.check(len(o.To)); err != nil {
		return nil, err
	}
	inputs := slices.Clone(o.From.URIs)
	for i := range o.Joins {
		inputs = append(inputs, o.Joins[i].Table.URIs...)
	}
	if err := o.From.Sources.RefuseOverwrite(ctx, inputs, o.To); err != nil {
		return nil, err
	}
	summary, err := c.run(ctx)
	if err != nil {
		return nil, reader.AsInputError(ctx, errors.Join(err, c.abort()))
	}
	return summary, nil
}

// converter is the state of one Run.
type converter struct {
	options *Options
	memory  *memoryBudget
	names   []string // columns of the input that are needed
	given   []string // those of them that only directories give, or that are in groups of Parquet
	in      *reader.RawReader
	joins   []*joinTable
	take    []int // output column -> available column
	sortBy  int   // available column, or -1
	label   int   // available column that a rule makes 0 or 1, or -1
	files   []*reader.RowFile
	out     [][]byte        // of the current row
	stored  []reader.Stored // of the available columns
	lists   []ListColumn
	written []int64
}

func (c *converter) run(ctx context.Context) (summary *Summary, err error) {
	o := c.options
	if err := list(ctx, &o.From, "the input"); err != nil {
		return nil, err
	}
	given := len(o.From.Schema.Columns) > 0
	all, err := reader.RawColumns(ctx, &o.From)
	if err != nil {
		return nil, err
	}
	o.From.Whole = !given && len(o.Columns) == 0
	if !given { // columns that are not needed may have no name, or that of another
		o.From.Schema.Columns = slices.DeleteFunc(o.From.Schema.Columns, func(c reader.Column) bool { return !o.uses(c.Name) })
	}
	if o.From.Whole {
		if err := haveNames(all); err != nil {
			return nil, err
		}
	}
	c.names = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !o.uses(name) })
	c.given = slices.DeleteFunc(reader.PartitionColumns(&o.From), func(name string) bool {
		return slices.Contains(all, name) || !o.asksFor(name)
	})
	c.given = append(c.given, o.inGroups(all)...)
	all, c.names = append(all, c.given...), append(c.names, c.given...)
	o.From.KeepLists = o.Format == reader.FormatParquet
	if c.in, err = reader.OpenRaw(ctx, o.From, c.names); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.in.Close()) }()
	c.stored = c.in.Stored()
	known, available := slices.Clone(all), slices.Clone(c.names)
	for i := range o.Joins {
		table, err := loadJoin(ctx, &o.Joins[i], o, known, c.memory)
		if err != nil {
			return nil, err
		}
		table.on = slices.Index(available, o.Joins[i].On)
		c.joins = append(c.joins, table)
		c.stored = append(c.stored, table.stored...)
		known, available = append(known, table.add...), append(available, table.add...)
	}
	schema, err := c.outputSchema(known, available)
	if err != nil {
		return nil, err
	}
	for _, uri := range o.To {
		f, err := reader.CreateRows(ctx, o.From.Sources, uri, o.Format, schema)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
	}
	c.written = make([]int64, len(c.files))
	if c.sortBy >= 0 {
		err = c.sorted(ctx)
	} else {
		err = c.streamed(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := c.in.Close(); err != nil { // the input has changed, so the files must not appear
		return nil, err
	}
	if err := reader.CloseAll(c.files); err != nil {
		return nil, fmt.Errorf("reader: %w", err)
	}
	summary = &Summary{Counts: c.in.Counts(), Written: c.written, Lists: c.lists}
	if c.label >= 0 && o.From.Schema.Label.Op != "" {
		summary.Label = o.From.Schema.Label.Column
	}
	for _, t := range c.joins {
		summary.Unmatched = append(summary.Unmatched, t.unmatched)
	}
	return summary, nil
}

// list lists the files of the input or side table called called, and warns about those that may be
// truncated.
func list(ctx context.Context, o *reader.Options, called string) (err error) {
	o.Listing, err = o.Sources.List(ctx, o.URIs)
	if text := o.Listing.WithoutBytes(called); text != "" {
		cmp.Or(o.Logger, slog.Default()).Warn(text)
	}
	return err
}

// abort discards the files.
func (c *converter) abort() error {
	var faults []error
	for _, f := range c.files {
		faults = append(faults, f.Abort())
	}
	return errors.Join(faults...)
}

// row reads the next row that the output can hold, joins it, and returns its cells in
// the output's order, followed by the cell to sort by, if there is one. They are valid
// until the next call.
func (c *converter) row(ctx context.Context) ([][]byte, error) {
	for {
		cells, err := c.in.Next(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range c.joins {
			cells = t.join(cells)
		}
		c.out = c.out[:0]
		var why error
		for _, from := range c.take {
			cell := cells[from]
			if from == c.label {
				cell, why = c.options.From.Schema.Label.Text(cell)
			}
			c.out = append(c.out, cell)
		}
		if why == nil {
			why = c.files[0].Check(c.out)
		}
		if why == nil {
			if c.sortBy >= 0 {
				c.out = append(c.out, cells[c.sortBy])
			}
			return c.out, nil
		}
		if err := c.in.Refuse(c.out, why); err != nil {
			return nil, err
		}
	}
}

// count reads the input to its end and returns the number of rows that will be
// written.
func (c *converter) count(ctx context.Context) (n int64, err error) {
	again := *c
	from := c.options.From
	from.Quarantine, from.Logger = nil, slog.New(slog.DiscardHandler)
	if again.in, err = reader.OpenRaw(ctx, from, c.names); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, again.in.Close()) }()
	defer func() {
		for _, t := range c.joins {
			t.unmatched = 0
		}
	}()
	for {
		if _, err := again.row(ctx); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return 0, err
		}
		n++
	}
}

// streamed writes rows in the order in which they are read.
func (c *converter) streamed(ctx context.Context) error {
	total := int64(0)
	if c.options.Split.needsTotal() {
		var err error
		if total, err = c.count(ctx); err != nil {
			return err
		}
	}
	for n := int64(0); ; n++ {
		cells, err := c.row(ctx)
		if errors.Is(err, io.EOF) {
			if n == 0 {
				return fmt.Errorf("convert: %w", reader.ErrNoExamples)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.write(cells, n, total); err != nil {
			return err
		}
	}
}

// sorted reads all rows, sorts them and writes them.
func (c *converter) sorted(ctx context.Context) error {
	store := newRowStore(len(c.take)+1, c.memory)
	for {
		cells, err := c.row(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := store.add(cells); err != nil {
			return fmt.Errorf("convert: sort: %w", err)
		}
	}
	order := store.sort(len(c.take), c.options.Descending)
	if len(order) == 0 {
		return fmt.Errorf("convert: %w", reader.ErrNoExamples)
	}
	cells := make([][]byte, len(c.take))
	for n, row := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		store.row(row, cells)
		if err := c.write(cells, int64(n), int64(len(order))); err != nil {
			return err
		}
	}
	return nil
}

// write writes row n of total to its file.
func (c *converter) write(cells [][]byte, n, total int64) error {
	to := c.options.Split.part(n, total)
	if err := c.files[to].Write(cells); err != nil {
		return fmt.Errorf("convert: row %d: %w", n+1, err)
	}
	c.written[to]++
	return nil
}
