package layout

import (
	"encoding/binary"
	"math"
)

// Magic begins the files that hold rows, and the input of digests.
const Magic = "aiboxrow"

// EntryBytes is the size of a row with its key.
func EntryBytes(l Layout) int { return 8 + l.Bytes() }

// AppendEntry appends the canonical bytes of a row with its key, little-endian.
func AppendEntry(b []byte, key uint64, row []float32) []byte {
	return appendWords(binary.LittleEndian.AppendUint64(b, key), row)
}

func appendWords(b []byte, row []float32) []byte {
	for _, v := range row {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// formatShift is the bit at which the value format begins in the word of Packed.
const formatShift = 24

// Packed is ValueDim and Format in one number, as files store it.
func Packed(l Layout) uint32 { return uint32(l.ValueDim) | uint32(l.Format)<<formatShift }

// Unpacked is the layout with the given Packed and StateDim. It may be one that no table can hold.
func Unpacked(values, stateDim uint32) Layout {
	return Layout{ValueDim: int(values & (1<<formatShift - 1)), StateDim: int(stateDim), Format: ValueFormat(values >> formatShift)}
}
