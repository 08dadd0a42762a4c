package parquetcolumn

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"aibox/internal/half"
	"aibox/reader/number"
)

// Text is the value as a CSV file would hold it: integers in decimal, decimals
// with all digits of their scale, floats in their shortest form, booleans as true
// and false (as 1 and 0 where Digits is set), UUIDs as in RFC 9562, bytes as they are.
// It is valid until the next call.
func (c *Column) Text(v *parquet.Value) []byte {
	switch {
	case c.Leaf.decimal:
		c.cell = appendDecimal(c.cell[:0], c.Leaf, v)
		return c.cell
	case c.Leaf.float16:
		c.cell = appendFloat(c.cell[:0], float64(float16(v.ByteArray())), 32)
		return c.cell
	case c.Leaf.uuid:
		c.cell = appendUUID(c.cell[:0], v.ByteArray())
		return c.cell
	}
	if c.Times {
		if text, ok := c.Leaf.appendTime(c.cell[:0], v); ok {
			c.cell = text
			return c.cell
		}
	}
	switch c.Leaf.kind {
	case parquet.Boolean:
		switch {
		case !c.Digits:
			c.cell = strconv.AppendBool(c.cell[:0], v.Boolean())
		case v.Boolean():
			c.cell = append(c.cell[:0], '1')
		default:
			c.cell = append(c.cell[:0], '0')
		}
	case parquet.Int32:
		c.cell = c.Leaf.appendInt(c.cell[:0], c.Leaf.int32(v.Int32()))
	case parquet.Int64:
		c.cell = c.Leaf.appendInt(c.cell[:0], v.Int64())
	case parquet.Float:
		c.cell = appendFloat(c.cell[:0], float64(v.Float()), 32)
	case parquet.Double:
		c.cell = appendFloat(c.cell[:0], v.Double(), 64)
	default:
		return v.ByteArray()
	}
	return c.cell
}

// int32 widens a stored 32-bit integer to 64 bits, for appendInt and float.
func (l *Leaf) int32(x int32) int64 {
	if l.unsigned {
		return int64(uint32(x))
	}
	return int64(x)
}

// appendInt appends the text of an integer.
func (l *Leaf) appendInt(text []byte, x int64) []byte {
	if l.unsigned {
		return strconv.AppendUint(text, uint64(x), 10)
	}
	return strconv.AppendInt(text, x, 10)
}

// float is an integer as a number.
func (l *Leaf) float(x int64) float64 {
	if l.unsigned {
		return float64(uint64(x))
	}
	return float64(x)
}

// appendFloat appends the shortest text that reads back as x, without an exponent up to 10^21,
// which covers all 64-bit integers. An integer stored as a double thus has the same text, and as a
// sparse value the same feature, as one stored as an integer.
func appendFloat(text []byte, x float64, bits int) []byte {
	if a := math.Abs(x); a >= 1e6 && a < 1e21 {
		return strconv.AppendFloat(text, x, 'f', -1, bits)
	}
	return strconv.AppendFloat(text, x, 'g', -1, bits)
}

// Number is the value as a number; a value that is text is parsed.
func (c *Column) Number(v *parquet.Value) (x float64, ok bool) {
	switch {
	case c.Leaf.decimal: // its digits are parsed, so that it is rounded only once
		return number.Float64(c.Text(v))
	case c.Leaf.float16:
		return float64(float16(v.ByteArray())), true
	}
	switch c.Leaf.kind {
	case parquet.Boolean:
		if v.Boolean() {
			return 1, true
		}
		return 0, true
	case parquet.Int32:
		return c.Leaf.float(c.Leaf.int32(v.Int32())), true
	case parquet.Int64:
		return c.Leaf.float(v.Int64()), true
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
func appendDecimal(text []byte, leaf *Leaf, v *parquet.Value) []byte {
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

// appendUUID appends the text of a UUID: 00112233-4455-6677-8899-aabbccddeeff.
func appendUUID(text, value []byte) []byte {
	for i, group := range [][]byte{value[:4], value[4:6], value[6:8], value[8:10], value[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, group)
	}
	return text
}

// float16 is the number in IEEE 754 binary16, little-endian.
func float16(b []byte) float32 { return half.FromFloat16(binary.LittleEndian.Uint16(b)) }
