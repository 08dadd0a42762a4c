package parquetcolumn

import (
	"fmt"

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
	slow    bool            // the chunk has a result that is Slow
	at      [BulkRows]int32 // place of the row's value in the page, or -1
	results [BulkRows]Result
}

// BulkRows is how many rows are decoded at a time: their results fit the first-level cache.
const BulkRows = 256

// Result is what a value means: a key, or a number.
type Result struct {
	Key    uint64
	Number float32
	State  State
}

// State says what there is of a value.
type State uint8

// The states.
const (
	Missing State = iota // the row has no value
	Ready                // it has a result
	Slow                 // its value is to be taken by Next
)

// Converter says what the values of a column mean.
type Converter interface {
	// Convert makes results of at most BulkRows values, which are at the given places; a place of
	// -1 has none. It need not know what is wrong with a value: what it makes Slow is decoded
	// by itself.
	Convert(v *Values, at []int32, out []Result)
}

// Simplify has the column decoded in bulk if it is simple: of says what its values mean, which may
// be texts or not.
func (c *Column) Simplify(of Converter, texts bool) (simple bool) {
	pages, leaf := c.values.Pages(), c.Leaf
	if pages == nil || leaf.List || leaf.null || leaf.given || leaf.decimal || leaf.float16 {
		return false
	}
	switch leaf.kind {
	case parquet.Int32, parquet.Int64, parquet.Float, parquet.Double:
	case parquet.ByteArray:
		if !texts {
			return false
		}
	default:
		return false
	}
	c.bulk = &bulk{leaf: leaf, pages: pages, of: of}
	return true
}

// Result returns the result of the next row. Unless it is Slow, the row is taken. It is valid until
// the next call of a method.
func (c *Column) Result() *Result {
	b := c.bulk
	if b == nil || b.lo == b.hi && b.decode() != nil {
		return &slowResult // Next returns the error
	}
	r := &b.results[b.lo]
	if r.State != Slow {
		b.lo++
	}
	return r
}

var slowResult = Result{State: Slow}

// Results are results of the next rows, up to one that is Slow. REQUIRES: the column is simple.
func (c *Column) Results() []Result {
	b := c.bulk
	if b.lo == b.hi && b.decode() != nil {
		return nil
	}
	results := b.results[b.lo:b.hi]
	if b.slow {
		for i := range results {
			if results[i].State == Slow {
				return results[:i]
			}
		}
	}
	return results
}

// Skip takes the next n rows, of which Results has returned results.
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
		return b.words.of.Index(b.values.int32s[at]), nil
	}
	return b.values.value(int(at)), nil
}

// decode decodes the next rows, at least one. Once it fails it fails for ever: behind a
// damaged page the library would go on with the next one.
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
	used := b.used
	if b.levels == nil {
		for i := range n {
			b.at[i] = int32(used + i)
		}
		used += n
	} else {
		for i, level := range b.levels[b.row : b.row+n] {
			b.at[i] = -1
			if int(level) == b.leaf.levels {
				b.at[i] = int32(used)
				used++
			}
		}
	}
	out := b.results[:n]
	if b.words.of != nil {
		for i, at := range b.at[:n] {
			out[i] = Result{}
			if at >= 0 {
				word := b.values.int32s[at]
				if uint(word) >= uint(len(b.words.results)) {
					return fmt.Errorf("%w: entry %d of a dictionary of %d", parquet.ErrCorrupted, word, len(b.words.results))
				}
				out[i] = b.words.results[word]
			}
		}
	} else {
		b.of.Convert(&b.values, b.at[:n], out)
	}
	b.slow = false
	for i := range out {
		b.slow = b.slow || out[i].State == Slow
	}
	b.row, b.used, b.lo, b.hi = b.row+n, used, 0, n
	b.decoded += n
	return nil
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
	return b.words.enter(page.Dictionary(), b.of, b.leaf)
}

func (b *bulk) release() {
	if b.page != nil {
		parquet.Release(b.page)
		b.page = nil
	}
}

// dictionary holds the results of a dictionary's entries.
type dictionary struct {
	of      parquet.Dictionary // nil: the page has none
	results []Result
}

// enter prepares for a page with that dictionary.
func (d *dictionary) enter(of parquet.Dictionary, c Converter, leaf *Leaf) error {
	if d.of = of; of == nil || len(d.results) == of.Len() {
		return nil // a column has one dictionary, if any
	}
	page := of.Page()
	if err := parquetfile.CheckPage(page); err != nil {
		return err
	}
	values, n := valuesOf(page.Data(), leaf), of.Len()
	d.results = make([]Result, n)
	var at [BulkRows]int32
	for first := 0; first < n; first += BulkRows {
		part := at[:min(BulkRows, n-first)]
		for i := range part {
			part[i] = int32(first + i)
		}
		c.Convert(&values, part, d.results[first:][:len(part)])
	}
	return nil
}
