package reader

import (
	"context"
	"fmt"
	"math/big"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
)

// Stored says how the values of a column are stored in Parquet: the type of the
// leaf, and whether the column is a list. A file written with the Stored values that
// StoredColumns returns for another file has the same column types. With the zero
// Stored, the column's role decides.
type Stored struct {
	leaf parquet.Type // nil: unknown
	list bool
}

// storedListSeparator separates the values of a list in a cell whose column has a
// Stored. No text in UTF-8 contains this byte.
const storedListSeparator = "\xff"

// StoredColumns says how the input, which is Parquet, stores the named columns. If
// its files differ, it returns a type that can hold the values of all. It reads only
// the footers. Its errors are of the same kinds as Open's.
func StoredColumns(ctx context.Context, o Options, names []string) ([]Stored, error) {
	o.BatchSize, o.Start = max(o.BatchSize, 1), nil
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := o.Schema.withDefaults()
	p := &plan{schema: s, pass: names, asked: true, labelColumn: s.labelColumn(), raw: true, keepUnlabelled: true}
	files, _, err := openFiles(ctx, &o, p)
	if err != nil {
		return nil, AsInputError(ctx, err)
	}
	return storedIn(files, len(names)), nil
}

// storedIn says how the files store their pass-through columns; the Stored values are
// zero if the files are not Parquet.
func storedIn(files []*inputFile, columns int) []Stored {
	all := make([]Stored, columns)
	for _, f := range files {
		for i := range all {
			if f.parquet != nil && f.parquet.leaves != nil && f.parquet.leaves.texts[i] != nil {
				all[i] = all[i].and(f.parquet.leaves.texts[i].stored())
			}
		}
	}
	return all
}

// stored says how a file that is written stores the values of the leaf.
func (l *parquetLeaf) stored() Stored {
	s := Stored{leaf: l.typ, list: l.list}
	switch {
	case l.float16:
		s.leaf = parquet.FloatType
	case l.decimal && l.kind == parquet.ByteArray, !l.decimal && l.kind == parquet.FixedLenByteArray:
		s.leaf = parquet.String().Type() // the value's text, since the library has no such decimals
	}
	return s
}

// IsList says whether the column is a list.
func (s *Stored) IsList() bool { return s.list }

// known says whether s is not the zero Stored.
func (s *Stored) known() bool { return s.leaf != nil || s.list }

// and returns a Stored that can hold the values of s and of t.
func (s Stored) and(t Stored) Stored {
	both := Stored{leaf: s.leaf, list: s.list || t.list}
	switch a, b := s.leaf, t.leaf; {
	case a == nil:
		both.leaf = b
	case b == nil, a.Kind() == b.Kind() && a.String() == b.String():
	case isSigned(a) && isSigned(b):
		both.leaf = parquet.Int64Type
	case isFloat(a) && isFloat(b):
		both.leaf = parquet.DoubleType
	default:
		both.leaf = parquet.String().Type()
	}
	return both
}

func isSigned(t parquet.Type) bool {
	logical := t.LogicalType()
	return (t.Kind() == parquet.Int32 || t.Kind() == parquet.Int64) && (logical == nil || logical.Integer != nil && logical.Integer.IsSigned)
}

func isFloat(t parquet.Type) bool { return t.Kind() == parquet.Float || t.Kind() == parquet.Double }

// node is a value of the column in a schema.
func (s *Stored) node() parquet.Node {
	if s.leaf != nil {
		return parquet.Leaf(s.leaf)
	}
	return parquet.String()
}

// value is the value that a cell means. It is the inverse of cursor.text.
func (s *Stored) value(cell []byte) (parquet.Value, error) {
	if s.leaf == nil {
		return parquet.ByteArrayValue(cell), nil
	}
	logical := s.leaf.LogicalType()
	unsigned := logical != nil && logical.Integer != nil && !logical.Integer.IsSigned
	var v parquet.Value
	ok := true
	switch kind := s.leaf.Kind(); {
	case logical != nil && logical.Decimal != nil:
		v, ok = decimalValue(s.leaf, int(logical.Decimal.Scale), cell)
	case kind == parquet.Boolean:
		x := string(cell) == "true" || string(cell) == "1"
		v, ok = parquet.BooleanValue(x), x || string(cell) == "false" || string(cell) == "0"
	case unsigned:
		bits := 64
		if kind == parquet.Int32 {
			bits = 32
		}
		x, err := strconv.ParseUint(string(cell), 10, bits)
		if v, ok = parquet.Int64Value(int64(x)), err == nil; bits == 32 {
			v = parquet.Int32Value(int32(uint32(x)))
		}
	case kind == parquet.Int32:
		x, err := strconv.ParseInt(string(cell), 10, 32)
		v, ok = parquet.Int32Value(int32(x)), err == nil
	case kind == parquet.Int64:
		x, err := strconv.ParseInt(string(cell), 10, 64)
		v, ok = parquet.Int64Value(x), err == nil
	case kind == parquet.Float:
		x, isFloat := number.Float32(cell)
		v, ok = parquet.FloatValue(x), isFloat
	case kind == parquet.Double:
		x, isFloat := number.Float64(cell)
		v, ok = parquet.DoubleValue(x), isFloat
	default:
		v = parquet.ByteArrayValue(cell)
	}
	if !ok {
		return v, fmt.Errorf("%q is not a value of type %v", rowtext.Excerpt(cell), s.leaf)
	}
	return v, nil
}

// decimalValue is the value of a cell that appendDecimal wrote; a cell with fewer
// digits after the point is accepted too.
func decimalValue(t parquet.Type, scale int, cell []byte) (v parquet.Value, ok bool) {
	digits := make([]byte, 0, len(cell)+scale)
	behind, point := 0, false
	for _, b := range cell {
		switch {
		case b == '.' && !point:
			point = true
			continue
		case point:
			behind++
		}
		digits = append(digits, b)
	}
	if behind > scale {
		return v, false
	}
	for ; behind < scale; behind++ {
		digits = append(digits, '0')
	}
	x, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		return v, false
	}
	switch bits := x.BitLen(); t.Kind() {
	case parquet.Int32:
		return parquet.Int32Value(int32(x.Int64())), bits < 32
	case parquet.Int64:
		return parquet.Int64Value(x.Int64()), bits < 64
	default:
		if bits >= 8*t.Length() {
			return v, false
		}
		if x.Sign() < 0 {
			x.Add(x, new(big.Int).Lsh(big.NewInt(1), uint(8*t.Length())))
		}
		return parquet.FixedLenByteArrayValue(x.FillBytes(make([]byte, t.Length()))), true
	}
}
