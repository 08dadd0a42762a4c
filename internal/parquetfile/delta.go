package parquetfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// Delta encoded values start with a header that says how many there are. The library allocates
// memory for that many, up to 2^31 of 8 bytes, before it reads them. Pages of delta encoded columns
// are therefore decoded here, after a check of the header. Texts with common prefixes also take as
// much memory as the prefixes say, which need next to no bytes of the page.

func isDelta(e format.Encoding) bool {
	return e == format.DeltaBinaryPacked || e == format.DeltaLengthByteArray || e == format.DeltaByteArray
}

// hasDeltas reports whether the footer says that the column has delta encoded pages.
func hasDeltas(column *format.ColumnMetaData) bool {
	return slices.ContainsFunc(column.Encoding, isDelta)
}

// checkDeltas fails if a header of delta encoded values announces far more than the n values of its
// page. Strings with common prefixes (DELTA_BYTE_ARRAY) have two headers: one before the lengths of
// the prefixes and, after these, one before the lengths of the suffixes.
func checkDeltas(e format.Encoding, text []byte, n int) error {
	d := deltas(text)
	for {
		block, parts, values := d.uvarint(), d.uvarint(), d.uvarint()
		if values > uint64(max(n, roomyPage/8)) {
			return fmt.Errorf("%w: %d delta-encoded values in a page of %d", parquet.ErrCorrupted, values, n)
		}
		if e != format.DeltaByteArray || parts == 0 || block > math.MaxInt32 {
			return nil // if something is wrong with them, the library says what
		}
		if err := checkPrefixes(text); err != nil {
			return err
		}
		d.skip(block, parts, values)
		e = format.DeltaLengthByteArray
	}
}

// maxPrefixes is how many bytes of prefixes a page that takes more than roomyPage may have for each
// of its bytes.
const maxPrefixes = 16

// checkPrefixes fails if the prefixes of a page's values take far more room than the page, or so much
// that the library's 32-bit offsets overflow.
func checkPrefixes(text []byte) error {
	lengths, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, text)
	if err != nil {
		return fmt.Errorf("%w: %w", parquet.ErrCorrupted, err)
	}
	sum, size := int64(0), int64(len(text))
	for _, n := range lengths {
		sum += int64(max(n, 0)) // the library refuses negative ones
	}
	if sum > min(max(roomyPage, maxPrefixes*size), math.MaxUint32-size) {
		return fmt.Errorf("%w: %d bytes of prefixes in a page of %d", parquet.ErrCorrupted, sum, size)
	}
	return nil
}

// deltas is the unread rest of a page of delta encoded values. Past its end, all numbers are 0.
type deltas []byte

func (d *deltas) uvarint() uint64 {
	x, length := binary.Uvarint(*d)
	if length <= 0 {
		*d, x = nil, 0
	}
	*d = (*d)[max(length, 0):]
	return x
}

// skip skips the differences after a header. They are in blocks. Each block begins with its
// smallest difference and the bit widths of its parts.
func (d *deltas) skip(block, parts, values uint64) {
	d.uvarint() // the first value; the others are differences
	for left := int64(values) - 1; left > 0 && len(*d) > 0; {
		d.uvarint()
		widths := (*d)[:min(parts, uint64(len(*d)))]
		*d = (*d)[len(widths):]
		for _, width := range widths {
			if left <= 0 {
				break
			}
			*d = (*d)[min(block/parts*uint64(width)/8, uint64(len(*d))):]
			left -= int64(block / parts)
		}
	}
}
