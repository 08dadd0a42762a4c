package reader

import (
	"context"
	"fmt"
	"math/big"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/number"
)

// Stored says how the values of a column are stored in Parquet: the type of the
// leaf, and whether it is one of a list. A file that is written with what
// StoredColumns says of another one has the same columns. The zero Stored leaves
// it to the role of the column.
type Stored struct {
	leaf parquet.Type // nil: nothing known
	list bool
}

// storedListSeparator stands between the values of a list in a cell whose column
// has a Stored, since no text in UTF-8 has this byte.
const storedListSeparator = "\xff"

// StoredColumns says how the input, which is Parquet, stores the named columns.
// Where its files differ, it is a type that holds the values of all. It reads
// the footers. The errors are of the kinds that Open has.
func StoredColumns(ctx context.Context, o Options, names []string) ([]Stored, error) {
	o.BatchSize = max(o.BatchSize, 1)
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

// storedIn is how the files store the columns that their plan passes through;
// zero ones where they are no Parquet.
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

// stored is how the leaf is written again.
func (l *parquetLeaf) stored() Stored {
	s := Stored{leaf: l.typ, list: l.list}
	switch {
	case l.float16:
		s.leaf = parquet.FloatType
	case l.decimal && l.kind == parquet.ByteArray, !l.decimal && l.kind == parquet.FixedLenByteArray:
		s.leaf = parquet.String().Type() // its text; the library has no such decimals
	}
	return s
}

// IsList says whether the column is a list.
func (s *Stored) IsList() bool { return s.list }

// known says whether there is anything to go by.
func (s *Stored) known() bool { return s.leaf != nil || s.list }

// and is a Stored for the values of both.
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

// node is the column in a schema.
func (s *Stored) node() parquet.Node {
	leaf := parquet.String()
	if s.leaf != nil {
		leaf = parquet.Leaf(s.leaf)
	}
	if s.list {
		return parquet.List(leaf)
	}
	return parquet.Optional(leaf)
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
		return v, fmt.Errorf("%q is no value of type %v", excerpt(cell), s.leaf)
	}
	return v, nil
}

// decimalValue is the value of a cell that appendDecimal wrote; fewer digits
// behind the point are fine too.
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
