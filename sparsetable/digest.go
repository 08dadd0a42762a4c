package sparsetable

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// Digest is a fingerprint of t's layout and all its trained rows. Tables with
// the same rows have the same digest, however they came about and in whatever
// order Scan shows them:
//
//	sum    = sum over rows of SHA-256(key, words of the row), as
//	         little-endian numbers of 256 bits, modulo 2^256
//	Digest = SHA-256("aiboxrow", values, stateDim uint32, rows uint64, sum)
//
// where values is valueDim with the value format in the upper 8 bits. All integers are little-endian. Rows must not be updated meanwhile.
func Digest(ctx context.Context, t Table) ([32]byte, error) {
	l := t.Layout()
	var sum [4]uint64
	rows := uint64(0)
	buf := make([]byte, 0, entryBytes(l))
	err := t.Scan(ctx, func(key uint64, row []float32) error {
		buf = appendEntry(buf[:0], key, row)
		h := sha256.Sum256(buf)
		carry := uint64(0)
		for i := range sum {
			sum[i], carry = bits.Add64(sum[i], binary.LittleEndian.Uint64(h[8*i:]), carry)
		}
		rows++
		return nil
	})
	if err != nil {
		return [32]byte{}, err
	}
	b := []byte(snapshotMagic)
	b = binary.LittleEndian.AppendUint32(b, packValues(l))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.StateDim))
	b = binary.LittleEndian.AppendUint64(b, rows)
	for _, s := range sum {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return sha256.Sum256(b), nil
}
