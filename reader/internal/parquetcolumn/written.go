package parquetcolumn

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"aibox/reader/internal/rowtext"
	"aibox/reader/number"
)

// node is the column in a schema.
func (c *Written) node(dictionary bool) parquet.Node {
	leaf := parquet.String()
	switch {
	case c.Number:
		leaf = parquet.Leaf(parquet.DoubleType)
	case c.Type != nil:
		leaf = parquet.Leaf(c.Type)
	}
	if dictionary && leaf.Type().Kind() != parquet.Boolean {
		leaf = parquet.Encoded(leaf, &parquet.RLEDictionary)
	}
	if c.List {
		return parquet.List(leaf)
	}
	return parquet.Optional(leaf)
}

// Common is a type that can hold the values of both.
func Common(a, b parquet.Type) parquet.Type {
	switch {
	case a.Kind() == b.Kind() && a.String() == b.String():
		return a
	case isSigned(a) && isSigned(b):
		return parquet.Int64Type
	case isFloat(a) && isFloat(b):
		return parquet.DoubleType
	}
	return parquet.String().Type()
}

func isSigned(t parquet.Type) bool {
	logical := t.LogicalType()
	return (t.Kind() == parquet.Int32 || t.Kind() == parquet.Int64) && (logical == nil || logical.Integer != nil && logical.Integer.IsSigned)
}

func isFloat(t parquet.Type) bool { return t.Kind() == parquet.Float || t.Kind() == parquet.Double }

// value returns the value that a text represents. It is the inverse of Column.Text.
func (c *Written) value(cell []byte) (parquet.Value, error) {
	if c.Number {
		x, ok := number.Float64(cell)
		if !ok {
			return parquet.Value{}, fmt.Errorf("%s is not a number", rowtext.Shown(cell))
		}
		return parquet.DoubleValue(x), nil
	}
	if c.Type == nil {
		return parquet.ByteArrayValue(cell), nil
	}
	logical := c.Type.LogicalType()
	unsigned := logical != nil && logical.Integer != nil && !logical.Integer.IsSigned
	var v parquet.Value
	ok := true
	switch kind := c.Type.Kind(); {
	case logical != nil && logical.Decimal != nil:
		v, ok = decimalValue(c.Type, int(logical.Decimal.Scale), cell)
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
		return v, fmt.Errorf("%s is not a value of type %v", rowtext.Shown(cell), c.Type)
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
