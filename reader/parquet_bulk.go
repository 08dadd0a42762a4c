package reader

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"

	"aibox/internal/parquetfile"
	"aibox/reader/internal/rowtext"
)

// bulk decodes the values of a simple column many at a time, from the arrays that the
// library makes of a page, instead of one parquet.Value after the other. A column is
// simple if it has at most one value in a row, which is a number that is used as one, or
// a text or number that is used as a feature.
//
// For each row there is a result, or the row has to be decoded from its parquet.Value,
// as other columns are: bulkSlow. That is so for every value at fault, so that bulk need
// not know what is wrong with a value. The values of a dictionary are decoded once.
type bulk struct {
	leaf   *parquetLeaf
	pages  parquet.Pages
	of     conversion
	page   parquet.Page
	levels []byte // of the page: which rows have a value; nil: all do
	row    int    // of the page, the first that is not decoded
	rows   int    // of the page
	values values
	used   int // of values
	words  dictionary
	err    error // of decode

	// Rows lo to hi-1 of the chunk that was decoded are yet to be taken. Chunks end where
	// those of the other columns do, or with a page.
	lo, hi  int
	decoded int             // rows of the column, in all chunks
	slow    bool            // the chunk has a result that is bulkSlow
	at      [bulkRows]int32 // place of the row's value in the page, or -1
	results [bulkRows]bulkResult
}

// bulkRows is how many rows are decoded at a time: their results fit the first-level cache.
const bulkRows = 256

// bulkState says what there is of a value.
type bulkState uint8

const (
	bulkMissing bulkState = iota // the row has no value
	bulkReady                    // it has a result
	bulkSlow                     // its parquet.Value is to be decoded
)

// bulkResult is what a value means: a key, or a dense feature or label.
type bulkResult struct {
	key    uint64
	number float32
	state  bulkState
}

// conversion says what the values of a column become.
type conversion struct {
	leaf   *parquetLeaf
	isKey  bool
	seed   uint64      // of keys
	steps  []Transform // of dense features
	binary bool        // numbers other than 0 and 1 are bulkSlow
	text   []byte      // of a number that is used as a feature
}

// newBulk returns nil if the column is not simple.
func newBulk(pages parquet.Pages, leaf *parquetLeaf, of conversion) *bulk {
	of.leaf = leaf
	if pages == nil || leaf.list || leaf.null || leaf.given || leaf.decimal || leaf.float16 {
		return nil
	}
	switch leaf.kind {
	case parquet.Int32, parquet.Int64, parquet.Float, parquet.Double:
	case parquet.ByteArray:
		if !of.isKey {
			return nil
		}
	default:
		return nil
	}
	return &bulk{leaf: leaf, pages: pages, of: of}
}

// newKeys, newDense and newLabel return the conversions of a field, a dense column and
// the label; simple is false where values need more than a conversion.
func newKeys(f *fieldColumn) (c conversion, simple bool) {
	simple = f.steps == nil && f.separator == "" && f.weightSeparator == "" && len(f.nulls) == 0
	return conversion{isKey: true, seed: f.seed}, simple
}

func newDense(d *denseColumn) (c conversion, simple bool) { return conversion{steps: d.steps}, true }

func newLabel(rule LabelRule) (c conversion, simple bool) {
	return conversion{binary: true}, rule.Op == ""
}

// next returns the result of the next row. Unless it is bulkSlow, the row is taken.
func (b *bulk) next() *bulkResult {
	if b.lo == b.hi && b.decode() != nil {
		return &slowResult // take returns the error
	}
	r := &b.results[b.lo]
	if r.state != bulkSlow {
		b.lo++
	}
	return r
}

var slowResult = bulkResult{state: bulkSlow}

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
	n := min(bulkRows-b.decoded%bulkRows, b.rows-b.row)
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
			out[i] = bulkResult{}
			if at >= 0 {
				word := b.values.int32s[at]
				if uint(word) >= uint(len(b.words.results)) {
					return fmt.Errorf("%w: entry %d of a dictionary of %d", parquet.ErrCorrupted, word, len(b.words.results))
				}
				out[i] = b.words.results[word]
			}
		}
	} else {
		b.of.convert(&b.values, b.at[:n], out)
	}
	b.slow = false
	for i := range out {
		b.slow = b.slow || out[i].state == bulkSlow
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
	b.values = valuesOf(page.Data())
	if b.values.kind == encoding.Undefined { // only nulls
		b.levels = make([]byte, b.rows)
	}
	return b.words.enter(page.Dictionary(), &b.of)
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
	results []bulkResult
}

// enter prepares for a page with that dictionary.
func (d *dictionary) enter(of parquet.Dictionary, c *conversion) error {
	if d.of = of; of == nil || len(d.results) == of.Len() {
		return nil // a column has one dictionary, if any
	}
	page := of.Page()
	if err := parquetfile.CheckPage(page); err != nil {
		return err
	}
	values, n := valuesOf(page.Data()), of.Len()
	at := make([]int32, n)
	for i := range at {
		at[i] = int32(i)
	}
	d.results = make([]bulkResult, n)
	c.convert(&values, at, d.results)
	return nil
}

// values are the values of a page or a dictionary in the array of their type.
type values struct {
	kind    encoding.Kind
	int32s  []int32
	int64s  []int64
	floats  []float32
	doubles []float64
	bytes   []byte
	offsets []uint32 // value i is bytes[offsets[i]:offsets[i+1]]
	ascii   bool     // bytes are ASCII, so that each value is valid text
}

func valuesOf(data encoding.Values) (v values) {
	v.kind = data.Kind()
	switch v.kind {
	case encoding.Int32:
		v.int32s = data.Int32()
	case encoding.Int64:
		v.int64s = data.Int64()
	case encoding.Float:
		v.floats = data.Float()
	case encoding.Double:
		v.doubles = data.Double()
	case encoding.ByteArray:
		v.bytes, v.offsets = data.ByteArray()
		v.ascii = rowtext.IsASCII(v.bytes)
	}
	return v
}

func (v *values) value(i int) parquet.Value {
	switch v.kind {
	case encoding.Int32:
		return parquet.Int32Value(v.int32s[i])
	case encoding.Int64:
		return parquet.Int64Value(v.int64s[i])
	case encoding.Float:
		return parquet.FloatValue(v.floats[i])
	case encoding.Double:
		return parquet.DoubleValue(v.doubles[i])
	default:
		return parquet.ByteArrayValue(v.bytes[v.offsets[i]:v.offsets[i+1]])
	}
}

// convert makes results of the values at the given places.
func (c *conversion) convert(v *values, at []int32, out []bulkResult) {
	switch {
	case !c.isKey:
		for i, p := range at {
			out[i] = bulkResult{}
			if p >= 0 {
				out[i].number, out[i].state = c.number(v, int(p))
			}
		}
	case v.kind == encoding.ByteArray:
		c.convertTexts(v, at, out)
	default:
		for i, p := range at {
			out[i] = bulkResult{}
			if p >= 0 {
				out[i].key, out[i].state = keyIn(c.seed, c.digits(v, int(p))), bulkReady
			}
		}
	}
}

func (c *conversion) convertTexts(v *values, at []int32, out []bulkResult) {
	valid := !c.leaf.text || v.ascii
	for i, p := range at {
		out[i] = bulkResult{}
		if p < 0 {
			continue
		}
		text := v.bytes[v.offsets[p]:v.offsets[p+1]]
		switch {
		case len(text) == 0: // an empty value is a missing one
		case !valid && !utf8.Valid(text):
			out[i].state = bulkSlow
		default:
			out[i] = bulkResult{key: keyIn(c.seed, text), state: bulkReady}
		}
	}
}

// number is value i as a dense feature or a label.
func (c *conversion) number(v *values, i int) (float32, bulkState) {
	var x float64
	switch v.kind {
	case encoding.Int32:
		x = float64(v.int32s[i])
		if c.leaf.unsigned {
			x = float64(uint32(v.int32s[i]))
		}
	case encoding.Int64:
		x = float64(v.int64s[i])
		if c.leaf.unsigned {
			x = float64(uint64(v.int64s[i]))
		}
	case encoding.Float:
		x = float64(v.floats[i])
	default:
		x = v.doubles[i]
	}
	if c.binary {
		switch x {
		case 0:
			return 0, bulkReady
		case 1:
			return 1, bulkReady
		}
		return 0, bulkSlow
	}
	if !finite(x) {
		return 0, bulkSlow
	}
	y := float32(transform(c.steps, x))
	if !finite(float64(y)) {
		return 0, bulkSlow
	}
	return y, bulkReady
}

// digits is the text of number i, as cursor.text has it.
func (c *conversion) digits(v *values, i int) []byte {
	c.text = c.text[:0]
	switch v.kind {
	case encoding.Int32:
		if c.leaf.unsigned {
			c.text = strconv.AppendUint(c.text, uint64(uint32(v.int32s[i])), 10)
		} else {
			c.text = strconv.AppendInt(c.text, int64(v.int32s[i]), 10)
		}
	case encoding.Int64:
		if c.leaf.unsigned {
			c.text = strconv.AppendUint(c.text, uint64(v.int64s[i]), 10)
		} else {
			c.text = strconv.AppendInt(c.text, v.int64s[i], 10)
		}
	case encoding.Float:
		c.text = appendFloat(c.text, float64(v.floats[i]), 32)
	default:
		c.text = appendFloat(c.text, v.doubles[i], 64)
	}
	return c.text
}
