package sparsetable

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"aibox/sparsetable/internal/layout"
)

// Digest is a fingerprint of t's layout and all its trained rows. Tables with the same rows have
// the same digest, no matter how they were made and in which order Scan yields the rows:
//
//	sum    = sum over rows of SHA-256(key, words of the row), as
//	         little-endian numbers of 256 bits, modulo 2^256
//	Digest = SHA-256("aiboxrow", values, stateDim uint32, rows uint64, sum)
//
// where values is valueDim with the value format in the upper 8 bits. All integers
// are little-endian. Rows must not be updated while Digest runs.
func Digest(ctx context.Context, t Table) ([32]byte, error) {
	d := NewDigester(t.Layout())
	err := t.Scan(ctx, func(key uint64, row []float32) error {
		d.Add(key, row)
		return nil
	})
	if err != nil {
		return [32]byte{}, err
	}
	return d.Digest(), nil
}

// Digester computes a Digest during a scan that the caller also does for other
// reasons.
type Digester struct {
	layout Layout
	sum    [4]uint64
	rows   uint64
	buf    []byte
}

// NewDigester returns a Digester of a table without rows.
func NewDigester(l Layout) *Digester {
	return &Digester{layout: l, buf: make([]byte, 0, layout.EntryBytes(l))}
}

// Add adds a trained row. The order of the rows does not matter.
func (d *Digester) Add(key uint64, row []float32) {
	d.buf = layout.AppendEntry(d.buf[:0], key, row)
	h := sha256.Sum256(d.buf)
	carry := uint64(0)
	for i := range d.sum {
		d.sum[i], carry = bits.Add64(d.sum[i], binary.LittleEndian.Uint64(h[8*i:]), carry)
	}
	d.rows++
}

// Digest returns the digest of a table with the rows added so far.
func (d *Digester) Digest() [32]byte {
	b := []byte(layout.Magic)
	b = binary.LittleEndian.AppendUint32(b, layout.Packed(d.layout))
	b = binary.LittleEndian.AppendUint32(b, uint32(d.layout.StateDim))
	b = binary.LittleEndian.AppendUint64(b, d.rows)
	for _, s := range d.sum {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	return sha256.Sum256(b)
}
