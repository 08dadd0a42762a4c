package reader

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"aibox/internal/half"
	"aibox/reader/number"
)

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

// findLeaf finds the leaf of a column: the column itself, or the element of a
// list.
func findLeaf(root *parquet.Column, elements []*format.SchemaElement, name string) (*parquetLeaf, error) {
	c := lookUp(root, name)
	if c == nil {
		names := make([]string, 0, len(root.Columns()))
		for _, c := range root.Columns() {
			names = append(names, c.Name())
		}
		return nil, fmt.Errorf("no column %q; the columns are %s%s", name, quoteAll(names), meantColumns([]string{name}, names))
	}
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
	leaf := &parquetLeaf{name: name, index: c.Index(), list: c.MaxRepetitionLevel() == 1, levels: c.MaxDefinitionLevel()}
	element := elements[c.Index()]
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

// text is the value as a CSV file would hold it: integers in decimal, decimals
// with all digits of their scale, floats in their shortest form, booleans as true
// and false (as 1 and 0 where cursor.digits is set), bytes as they are. It is valid
// until the next call.
func (c *cursor) text(v *parquet.Value) []byte {
	switch {
	case c.leaf.decimal:
		c.cell = appendDecimal(c.cell[:0], c.leaf, v)
		return c.cell
	case c.leaf.float16:
		c.cell = appendFloat(c.cell[:0], float64(float16(v.ByteArray())), 32)
		return c.cell
	}
	if c.times {
		if text, ok := c.leaf.appendTime(c.cell[:0], v); ok {
			c.cell = text
			return c.cell
		}
	}
	switch c.leaf.kind {
	case parquet.Boolean:
		switch {
		case !c.digits:
			c.cell = strconv.AppendBool(c.cell[:0], v.Boolean())
		case v.Boolean():
			c.cell = append(c.cell[:0], '1')
		default:
			c.cell = append(c.cell[:0], '0')
		}
	case parquet.Int32:
		if c.leaf.unsigned {
			c.cell = strconv.AppendUint(c.cell[:0], uint64(v.Uint32()), 10)
		} else {
			c.cell = strconv.AppendInt(c.cell[:0], int64(v.Int32()), 10)
		}
	case parquet.Int64:
		if c.leaf.unsigned {
			c.cell = strconv.AppendUint(c.cell[:0], v.Uint64(), 10)
		} else {
			c.cell = strconv.AppendInt(c.cell[:0], v.Int64(), 10)
		}
	case parquet.Float:
		c.cell = appendFloat(c.cell[:0], float64(v.Float()), 32)
	case parquet.Double:
		c.cell = appendFloat(c.cell[:0], v.Double(), 64)
	default:
		return v.ByteArray()
	}
	return c.cell
}

// appendFloat appends the shortest text that reads back as x, without an exponent
// up to 10^21, a range that holds all integers of 64 bits. So an integer that is
// stored as a double has the same text, and as a sparse value the same feature, as one
// that is stored as an integer.
func appendFloat(text []byte, x float64, bits int) []byte {
	if a := math.Abs(x); a >= 1e6 && a < 1e21 {
		return strconv.AppendFloat(text, x, 'f', -1, bits)
	}
	return strconv.AppendFloat(text, x, 'g', -1, bits)
}

// number is the value as a number; a value that is text is parsed.
func (c *cursor) number(v *parquet.Value) (x float64, ok bool) {
	switch {
	case c.leaf.decimal: // its digits are parsed, so that it is rounded only once
		return number.Float64(c.text(v))
	case c.leaf.float16:
		return float64(float16(v.ByteArray())), true
	}
	switch c.leaf.kind {
	case parquet.Boolean:
		if v.Boolean() {
			return 1, true
		}
		return 0, true
	case parquet.Int32:
		if c.leaf.unsigned {
			return float64(v.Uint32()), true
		}
		return float64(v.Int32()), true
	case parquet.Int64:
		if c.leaf.unsigned {
			return float64(v.Uint64()), true
		}
		return float64(v.Int64()), true
	case parquet.Float:
		return float64(v.Float()), true
	case parquet.Double:
		return v.Double(), true
	default:
		return number.Float64(number.Trim(v.ByteArray()))
	}
}

// appendDecimal appends the digits of a decimal, of which leaf.scale follow the
// point: -5 of scale 2 is -0.05.
func appendDecimal(text []byte, leaf *parquetLeaf, v *parquet.Value) []byte {
	switch leaf.kind {
	case parquet.Int32:
		text = strconv.AppendInt(text, int64(v.Int32()), 10)
	case parquet.Int64:
		text = strconv.AppendInt(text, v.Int64(), 10)
	default:
		text = appendBigEndian(text, v.ByteArray())
	}
	if leaf.scale == 0 {
		return text
	}
	first := 0
	if text[0] == '-' {
		first = 1
	}
	for len(text)-first <= leaf.scale {
		text = slices.Insert(text, first, '0')
	}
	return slices.Insert(text, len(text)-leaf.scale, '.')
}

// appendBigEndian appends an integer in two's complement of any width.
func appendBigEndian(text, value []byte) []byte {
	negative := len(value) > 0 && value[0] >= 0x80
	sign := byte(0)
	if negative {
		sign = 0xff
	}
	for len(value) > 8 && value[0] == sign && (value[1] >= 0x80) == negative {
		value = value[1:]
	}
	if len(value) <= 8 {
		x := uint64(int64(int8(sign)))
		for _, b := range value {
			x = x<<8 | uint64(b)
		}
		return strconv.AppendInt(text, int64(x), 10)
	}
	x := new(big.Int).SetBytes(value)
	if negative {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(value))))
	}
	return x.Append(text, 10)
}

// float16 is the number in IEEE 754 binary16, little-endian.
func float16(b []byte) float32 { return half.FromFloat16(binary.LittleEndian.Uint16(b)) }
