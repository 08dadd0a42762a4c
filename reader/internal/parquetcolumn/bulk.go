package parquetcolumn

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"aibox/internal/parquetfile"
)

// bulk decodes the values of a simple column many at a time, from the arrays that the
// library makes of a page, instead of one parquet.Value after the other. A column is
// simple if it has at most one value in a row, which is a number, or a text that means a key.
//
// For each row there is a result, or the row has to be decoded from its parquet.Value,
// as other columns are: Slow. The values of a dictionary are decoded once.
type bulk struct {
	leaf   *Leaf
	pages  parquet.Pages
	of     Converter
	isKey  bool // values mean keys, else numbers
	page   parquet.Page
	levels []byte // of the page: which rows have a value; nil: all do
	row    int    // of the page, the first that is not decoded
	rows   int    // of the page
	values Values
	used   int // of values
	words  dictionary
	err    error // of decode

	// Rows lo to hi-1 of the chunk that was decoded are yet to be taken. Chunks end where
	// those of the other columns do, or with a page.
	lo, hi  int
	decoded int             // rows of the column, in all chunks
	at      [BulkRows]int32 // place of the row's value in the page, or in its dictionary; -1: none

	// Of the chunk, computed on demand. Places refer to the chunk's own table, which replaces a
	// dictionary's.
	made    bool
	results [BulkRows]Result
	slow    bool // one of them is Slow
	placed  bool
	places  [BulkRows]int32
	own     table
}

// table has keys or numbers by place.
type table struct {
	keys    []uint64
	numbers []float32
}

// add appends what the results are.
func (t *table) add(results []Result, isKey bool) {
	if isKey {
		t.keys = slices.Grow(t.keys, len(results))
		for i := range results {
			t.keys = append(t.keys, results[i].Key)
		}
		return
	}
	t.numbers = slices.Grow(t.numbers, len(results))
	for i := range results {
		t.numbers = append(t.numbers, results[i].Number)
	}
}

// BulkRows is how many rows are decoded at a time: their results fit the first-level cache.
const BulkRows = 256

// Result is what a value means: a key, or a number.
type Result struct {
	Key    uint64
	Number float32
	State  State
}

// State is the state of a row's result.
type State uint8

// The states.
const (
	Missing State = iota // the row has no value
	Ready                // it has a result
	Slow                 // its value is to be taken by Next
)

// Converter says what the values of a column mean.
type Converter interface {
	// Convert makes results of at most BulkRows values, at the given places; -1 stands for no
	// value. It need not know what is wrong with a value: it makes it Slow, and the value is then
	// decoded individually.
	Convert(v *Values, at []int32, out []Result)
}

// Simplify switches the column to bulk decoding if it is simple. of converts its values, to keys if
// isKey is set and otherwise to numbers.
func (c *Column) Simplify(of Converter, isKey bool) (simple bool) {
	pages, leaf := c.values.Pages(), c.Leaf
	if pages == nil || leaf.List || leaf.null || leaf.given || leaf.decimal || leaf.float16 {
		return false
	}
	switch leaf.kind {
	case parquet.Int32, parquet.Int64, parquet.Float, parquet.Double:
	case parquet.ByteArray:
		if !isKey {
			return false
		}
	default:
		return false
	}
	c.bulk = &bulk{leaf: leaf, pages: pages, of: of, isKey: isKey}
	return true
}

// Result returns the result of the next row. Unless it is Slow, the row is taken. It is valid until
// the next call of a method.
func (c *Column) Result() *Result {
	b := c.bulk
	if b == nil || b.lo == b.hi && b.decode() != nil {
		return &slowResult // Next returns the error
	}
	b.makeResults()
	r := &b.results[b.lo]
	if r.State != Slow {
		b.lo++
	}
	return r
}

var slowResult = Result{State: Slow}

// Places returns the indices in Keys, or Numbers, of the results of the next rows, up to the first
// Slow one; -1: the row has no value. REQUIRES: the column is simple.
func (c *Column) Places() []int32 {
	b := c.bulk
	if b.lo == b.hi && b.decode() != nil {
		return nil
	}
	if b.words.direct() {
		return b.at[b.lo:b.hi]
	}
	b.makePlaces()
	places := b.places[b.lo:b.hi]
	if b.slow {
		if i := slices.Index(places, slowPlace); i >= 0 {
			places = places[:i]
		}
	}
	return places
}

// Keys are the keys at the last Places.
func (c *Column) Keys() []uint64 { return c.bulk.table().keys }

// Numbers are the numbers at the last Places.
func (c *Column) Numbers() []float32 { return c.bulk.table().numbers }

func (b *bulk) table() *table {
	if b.words.direct() {
		return &b.words.table
	}
	return &b.own
}

// Skip takes the next n rows, for which there are Places.
func (c *Column) Skip(n int) { c.bulk.lo += n }

// take takes the next row and returns its value, which is valid until the next call of a
// method, or null.
func (b *bulk) take() (parquet.Value, error) {
	if b.lo == b.hi {
		if err := b.decode(); err != nil {
			return parquet.Value{}, err
		}
	}
	at := b.at[b.lo]
	b.lo++
	if at < 0 {
		return parquet.NullValue(), nil
	}
	if b.words.of != nil {
		return b.words.of.Index(at), nil
	}
	return b.values.value(int(at)), nil
}

// decode decodes the next rows, at least one. Errors are sticky, because after a damaged page the
// library would continue with the next one.
func (b *bulk) decode() error {
	if b.err == nil {
		b.err = b.decodeRows()
	}
	return b.err
}

func (b *bulk) decodeRows() error {
	for b.row == b.rows {
		if err := b.nextPage(); err != nil {
			return err
		}
	}
	n := min(BulkRows-b.decoded%BulkRows, b.rows-b.row)
	at, used := b.at[:n], b.used
	if b.levels == nil {
		for i := range at {
			at[i] = int32(used + i)
		}
		used += n
	} else {
		for i, level := range b.levels[b.row : b.row+n] {
			at[i] = -1
			if int(level) == b.leaf.levels {
				at[i] = int32(used)
				used++
			}
		}
	}
	if b.words.of != nil {
		words, entries := b.values.int32s, uint32(len(b.words.states))
		for i, p := range at {
			if p < 0 {
				continue
			}
			if at[i] = words[p]; uint32(at[i]) >= entries {
				return fmt.Errorf("%w: entry %d of a dictionary of %d", parquet.ErrCorrupted, at[i], entries)
			}
		}
	}
	b.row, b.used, b.lo, b.hi, b.made, b.placed = b.row+n, used, 0, n, false, false
	b.decoded += n
	return nil
}

// makeResults makes the results of the chunk, once.
func (b *bulk) makeResults() {
	if b.made {
		return
	}
	b.made, b.slow = true, false
	at, out := b.at[:b.hi], b.results[:b.hi]
	if b.words.of == nil {
		b.of.Convert(&b.values, at, out)
	} else {
		for i, p := range at {
			out[i] = Result{}
			if p >= 0 {
				out[i] = b.words.result(p, b.isKey)
			}
		}
	}
	for i := range out {
		b.slow = b.slow || out[i].State == Slow
	}
}

// slowPlace stands for a result that is Slow.
const slowPlace = -2

// makePlaces makes the places of the chunk's results, once.
func (b *bulk) makePlaces() {
	b.makeResults()
	if b.placed {
		return
	}
	b.placed = true
	results := b.results[:b.hi]
	for i := range results {
		switch results[i].State {
		case Ready:
			b.places[i] = int32(i)
		case Missing:
			b.places[i] = -1
		default:
			b.places[i] = slowPlace
		}
	}
	b.own.keys, b.own.numbers = b.own.keys[:0], b.own.numbers[:0]
	b.own.add(results, b.isKey)
}

func (b *bulk) nextPage() error {
	b.release()
	page, err := parquetfile.NextPage(b.pages)
	if err != nil {
		return err
	}
	b.page = page
	b.row, b.rows, b.used = 0, int(page.NumValues()), 0
	b.levels = page.DefinitionLevels()
	if len(b.levels) == 0 {
		b.levels = nil
	}
	b.values = valuesOf(page.Data(), b.leaf)
	if b.values.kind == encoding.Undefined { // only nulls
		b.levels = make([]byte, b.rows)
	}
	return b.words.enter(page.Dictionary(), b)
}

func (b *bulk) release() {
	if b.page != nil {
		parquet.Release(b.page)
		b.page = nil
	}
}

// dictionary holds the results of a dictionary's entries.
type dictionary struct {
	of     parquet.Dictionary // nil: the page has none
	table  table
	states []State
	ready  bool // all are
}

// direct says whether the entries of the page's dictionary are places in its table.
func (d *dictionary) direct() bool { return d.of != nil && d.ready }

// result is the result of an entry.
func (d *dictionary) result(entry int32, isKey bool) Result {
	if isKey {
		return Result{Key: d.table.keys[entry], State: d.states[entry]}
	}
	return Result{Number: d.table.numbers[entry], State: d.states[entry]}
}

// enter prepares for a page with that dictionary.
func (d *dictionary) enter(of parquet.Dictionary, b *bulk) error {
	if d.of = of; of == nil || len(d.states) == of.Len() {
		return nil // a column has one dictionary, if any
	}
	page := of.Page()
	if err := parquetfile.CheckPage(page); err != nil {
		return err
	}
	values, n := valuesOf(page.Data(), b.leaf), of.Len()
	if b.isKey {
		d.table.keys = make([]uint64, 0, n)
	} else {
		d.table.numbers = make([]float32, 0, n)
	}
	d.states, d.ready = make([]State, 0, n), true
	for first := 0; first < n; first += BulkRows {
		part := b.at[:min(BulkRows, n-first)]
		for i := range part {
			part[i] = int32(first + i)
		}
		results := b.results[:len(part)]
		b.of.Convert(&values, part, results)
		d.table.add(results, b.isKey)
		for i := range results {
			d.states = append(d.states, results[i].State)
			d.ready = d.ready && results[i].State == Ready
		}
	}
	return nil
}
