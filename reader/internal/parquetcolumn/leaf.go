package parquetcolumn

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"aibox/internal/parquetfile"
)

// Leaf is a leaf column of the file, or a partition column given by the names of its directories.
type Leaf struct {
	Name string
	List bool // rows may have several values

	index    int // of the column chunk
	kind     parquet.Kind
	typ      parquet.Type
	text     bool // annotated as text: must be UTF-8
	unsigned bool
	levels   int  // definition level of a value that is there
	null     bool // the column is of null type, which writers give to a column without values
	float16  bool
	uuid     bool // of 16 bytes
	decimal  bool
	scale    int   // of a decimal: digits behind the point
	tick     int64 // of a timestamp: its unit in nanoseconds; 0: the column is no timestamp
	utc      bool  // of a timestamp: it is an instant (UTC), not a local time without a zone
	clock    int64 // of a time of day: its unit in nanoseconds; 0: the column is none
	date     bool  // the column holds dates, as days since 1970
	given    bool  // the file's directories give the column, which is value in every row
	value    parquet.Value
}

// Given is a column that is not in the file, but has the same value in every row, or null.
func Given(name string, value []byte) *Leaf {
	leaf := &Leaf{Name: name, kind: parquet.ByteArray, typ: parquet.String().Type(), text: true, given: true, null: value == nil}
	if value != nil {
		leaf.value = parquet.ByteArrayValue(value)
	}
	return leaf
}

// Key is equal for leaves that are read in the same way, in whatever files.
func (l *Leaf) Key() string {
	rest := *l
	rest.typ, rest.value = nil, parquet.Value{}
	return fmt.Sprintf("%q %+v %v %q", l.Name, rest, l.typ, l.value)
}

// Stored is the type in which a file that is written stores the values of the leaf.
func (l *Leaf) Stored() parquet.Type {
	switch {
	case l.float16:
		return parquet.FloatType
	case l.decimal && l.kind == parquet.ByteArray, !l.decimal && l.kind == parquet.FixedLenByteArray:
		return parquet.String().Type() // the value's text, since the library has no such decimals
	}
	return l.typ
}

// Names are the names of the file's columns.
func (f *File) Names() (names []string) {
	for _, c := range f.file.Root().Columns() {
		names = append(names, c.Name())
	}
	return names
}

// Has says whether the file has the column, which may be named by its path with dots.
func (f *File) Has(name string) bool { return f.lookUp(name) != nil }

// Check checks that the leaves, some of which may be nil, can be read.
func (f *File) Check(leaves []*Leaf) error {
	var columns []int
	for _, l := range leaves {
		if l != nil && !l.given {
			columns = append(columns, l.index)
		}
	}
	return parquetfile.CheckCodecs(f.file, columns)
}

// lookUp finds a column by its name, or by its path with dots; nil if there is
// none.
func (f *File) lookUp(name string) *parquet.Column {
	if column := f.columns[name]; column != nil {
		return column
	}
	c := f.file.Root()
	for part := range strings.SplitSeq(name, ".") {
		if c = c.Column(part); c == nil {
			return nil
		}
	}
	return c
}

// leafElements are the footer's descriptions of the leaf columns, by their index.
// They are used because the library does not export its own and knows fewer types.
func leafElements(footer *format.FileMetaData) (leaves []*format.SchemaElement) {
	for i := range footer.Schema {
		if i > 0 && footer.Schema[i].NumChildren == 0 {
			leaves = append(leaves, &footer.Schema[i])
		}
	}
	return leaves
}

// Find finds the leaf of a column that the file has: the column itself, or the element of a
// list.
func (f *File) Find(name string) (*Leaf, error) {
	if n := f.named[name]; n > 1 {
		return nil, fmt.Errorf("there are %d columns %q; it is not known which of them is meant", n, name)
	}
	c := f.lookUp(name)
	for !c.Leaf() {
		if children := c.Columns(); len(children) == 1 {
			c = children[0]
			continue
		}
		return nil, fmt.Errorf("column %q is a group of several columns; name one of them as in \"%s.x\"", name, name)
	}
	if c.MaxRepetitionLevel() > 1 {
		return nil, fmt.Errorf("column %q is a list of lists", name)
	}
	leaf := &Leaf{Name: name, index: c.Index(), List: c.MaxRepetitionLevel() == 1, levels: c.MaxDefinitionLevel()}
	element := f.elements[c.Index()]
	logical := element.LogicalType
	switch {
	case logical != nil && logical.Unknown != nil:
		leaf.null = true
		return leaf, nil
	case element.Type == nil || *element.Type < format.Boolean || *element.Type > format.FixedLenByteArray:
		return nil, fmt.Errorf("column %q has an unknown type", name)
	}
	leaf.typ, leaf.kind = c.Type(), parquet.Kind(*element.Type)
	if leaf.kind == parquet.Int96 {
		return nil, fmt.Errorf("column %q is of type int96, which is not supported: write it as an integer or a timestamp", name)
	}
	if logical != nil && logical.Float16 != nil {
		if leaf.kind != parquet.FixedLenByteArray || leaf.typ.Length() != 2 {
			return nil, fmt.Errorf("column %q is a float16 that is stored as %v, which is not valid", name, leaf.typ)
		}
		leaf.float16 = true
	}
	leaf.uuid = logical != nil && logical.UUID != nil && leaf.kind == parquet.FixedLenByteArray && leaf.typ.Length() == 16
	leaf.findTime(element)
	if t := leaf.typ.LogicalType(); t != nil {
		leaf.text = t.UTF8 != nil || t.Enum != nil || t.Json != nil
		leaf.unsigned = t.Integer != nil && !t.Integer.IsSigned
		if t.Decimal != nil {
			leaf.decimal, leaf.scale = true, int(t.Decimal.Scale)
			if leaf.scale < 0 || leaf.scale > maxDecimalScale {
				return nil, fmt.Errorf("column %q is a decimal with a scale of %d, which is not supported", name, leaf.scale)
			}
		}
	}
	return leaf, nil
}

// maxDecimalScale is the largest scale of a decimal of 256 bits, the widest that
// writers use.
const maxDecimalScale = 76
