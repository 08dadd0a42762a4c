package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go"
)

// Dictionary indices are stored in runs. The library decodes bytes after the last value as further
// runs, and fails if they are none: fastparquet writes 8 zero bytes there. Older versions of
// fastparquet truncate the last group of eight indices after the last value.

// decodePlaces decodes n dictionary indices: their width in bits, then runs.
func decodePlaces(text []byte, n int) ([]int32, error) {
	if n == 0 {
		return nil, nil
	}
	if len(text) == 0 || text[0] > 32 {
		return nil, fmt.Errorf("%w: dictionary indices without their bit width", parquet.ErrCorrupted)
	}
	width, places := int(text[0]), make([]int32, 0, n)
	for text = text[1:]; len(places) < n; {
		head, size := binary.Uvarint(text)
		if size <= 0 {
			return nil, fmt.Errorf("%w: %d dictionary indices instead of %d", parquet.ErrCorrupted, len(places), n)
		}
		text = text[size:]
		left := uint64(n - len(places))
		packed, count, bytes := head&1 != 0, head>>1, (width+7)/8 // of equal places, or of groups of eight
		if packed {
			count = min(count, left) * 8
			bytes = int(count) / 8 * width
			if count >= left {
				bytes = (int(left)*width + 7) / 8
			}
		}
		if bytes > len(text) {
			return nil, fmt.Errorf("%w: a run of dictionary indices is truncated", parquet.ErrCorrupted)
		}
		for i := range int(min(count, left)) {
			first := 0
			if packed {
				first = i * width
			}
			places = append(places, bitsOf(text[:bytes], first, width))
		}
		text = text[bytes:]
	}
	return places, nil
}

// bitsOf returns the number in width bits of the text, from bit first on.
func bitsOf(text []byte, first, width int) int32 {
	var word [8]byte
	copy(word[:], text[first/8:])
	return int32(binary.LittleEndian.Uint64(word[:]) >> (first % 8) & (1<<width - 1))
}
