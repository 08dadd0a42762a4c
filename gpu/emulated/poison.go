package emulated

import (
	"bytes"

	"aibox/gpu"
)

// poison is a signalling NaN in every float32 of memory that holds nothing. No arithmetic returns
// it: results are quiet NaNs.
var poison = [4]byte{0x1a, 0xab, 0xb1, 0x7f}

// fillPoison overwrites b, whose first byte has the given place in a memory.
func fillPoison(b []byte, place int) {
	for i := range b {
		b[i] = poison[(place+i)&3]
	}
}

// notPoison returns where in b the first byte lies that is not poison, or -1.
func notPoison(b []byte, place int) int {
	for i, v := range b {
		if v != poison[(place+i)&3] {
			return i
		}
	}
	return -1
}

// hasPoison returns where in b the first poisoned word lies, or -1. Single bytes that are like
// poison mean nothing.
func hasPoison(b []byte, place int) int {
	for i := -place & 3; i+4 <= len(b); i += 4 {
		if bytes.Equal(b[i:i+4], poison[:]) {
			return i
		}
	}
	return -1
}

// rows calls f for the rows of a region within data, the bytes of its memory, and their places.
func rows(r gpu.Region, data []byte, f func(row []byte, place int)) {
	for i := range count(r) {
		lo := r.Offset + i*r.Pitch
		f(data[lo:lo+r.Width], lo)
	}
}

// count is the number of rows that have bytes.
func count(r gpu.Region) int {
	if r.Width == 0 {
		return 0
	}
	return r.Rows
}
