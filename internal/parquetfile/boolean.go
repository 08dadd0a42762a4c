package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// The library decodes run-length encoded booleans wrongly: it starts a run at a whole byte, and a
// run of true sets only one bit of eight. Writers use that encoding in data pages of version 2, so
// such pages are decoded here.

// decodeBooleans decodes n booleans: the length of the runs, then the runs.
func decodeBooleans(text []byte, n int) (values encoding.Values, err error) {
	runs, _, err := cutLength(text)
	if err != nil {
		return values, err
	}
	bits := make([]byte, (n+7)/8)
	return encoding.BooleanValues(bits), decodeRuns(bits, runs, n)
}

// decodeRuns decodes n booleans, one bit each, into bits that are 0.
func decodeRuns(bits, runs []byte, n int) error {
	for at := 0; at < n; {
		head, size := binary.Uvarint(runs)
		if size <= 0 {
			return fmt.Errorf("%w: %d booleans instead of %d", parquet.ErrCorrupted, at, n)
		}
		runs = runs[size:]
		packed, count := head&1 != 0, head>>1 // of bytes with eight values each, or of equal values
		if count == 0 {
			continue
		}
		bytes := uint64(1)
		if packed {
			bytes = count
		}
		if bytes > uint64(len(runs)) {
			return fmt.Errorf("%w: a run of booleans is truncated", parquet.ErrCorrupted)
		}
		if packed {
			count *= 8
		}
		for i := range int(min(count, uint64(n-at))) {
			value := runs[0]
			if packed {
				value = runs[i/8] >> (i % 8)
			}
			bits[(at+i)/8] |= value & 1 << ((at + i) % 8)
		}
		at += int(min(count, uint64(n-at)))
		runs = runs[bytes:]
	}
	return nil
}
