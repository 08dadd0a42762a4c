package parquetcolumn

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// Values are the values of a page or a dictionary in the array of their type.
type Values struct {
	leaf    *Leaf
	kind    encoding.Kind
	int32s  []int32
	int64s  []int64
	floats  []float32
	doubles []float64
	bytes   []byte
	offsets []uint32 // value i is bytes[offsets[i]:offsets[i+1]]
	valid   bool     // each value is valid text, or need not be
}

func valuesOf(data encoding.Values, leaf *Leaf) (v Values) {
	v.leaf, v.kind = leaf, data.Kind()
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
		v.valid = !leaf.text || isASCII(v.bytes)
	}
	return v
}

// value is value i.
func (v *Values) value(i int) parquet.Value {
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

// Texts says whether the values are texts; else they are numbers.
func (v *Values) Texts() bool { return v.kind == encoding.ByteArray }

// Valid says that all texts are UTF-8, or need not be.
func (v *Values) Valid() bool { return v.valid }

// Text is text i.
func (v *Values) Text(i int) []byte { return v.bytes[v.offsets[i]:v.offsets[i+1]] }

// Number is number i.
func (v *Values) Number(i int) float64 {
	switch v.kind {
	case encoding.Int32:
		return v.leaf.float(v.leaf.int32(v.int32s[i]))
	case encoding.Int64:
		return v.leaf.float(v.int64s[i])
	case encoding.Float:
		return float64(v.floats[i])
	default:
		return v.doubles[i]
	}
}

// AppendNumber appends the text of number i, as Column.Text has it.
func (v *Values) AppendNumber(text []byte, i int) []byte {
	switch v.kind {
	case encoding.Int32:
		return v.leaf.appendInt(text, v.leaf.int32(v.int32s[i]))
	case encoding.Int64:
		return v.leaf.appendInt(text, v.int64s[i])
	case encoding.Float:
		return appendFloat(text, float64(v.floats[i]), 32)
	default:
		return appendFloat(text, v.doubles[i], 64)
	}
}

// isASCII says whether all bytes are ASCII, so that every part of them is valid text.
func isASCII(text []byte) bool {
	const high = 0x8080808080808080
	var all uint64
	for ; len(text) >= 32; text = text[32:] {
		all |= binary.LittleEndian.Uint64(text) | binary.LittleEndian.Uint64(text[8:]) |
			binary.LittleEndian.Uint64(text[16:]) | binary.LittleEndian.Uint64(text[24:])
	}
	for _, b := range text {
		all |= uint64(b)
	}
	return all&high == 0
}
