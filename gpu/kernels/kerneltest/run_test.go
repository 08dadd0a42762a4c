package kerneltest

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestDifference: all NaN are equal, as numbers of their own size, and nothing else is.
func TestDifference(t *testing.T) {
	le := binary.LittleEndian
	bf16 := func(bits uint16) []byte { return le.AppendUint16(le.AppendUint16(nil, bits), 1) }
	f32 := func(bits uint32) []byte { return le.AppendUint32(le.AppendUint32(nil, 1), bits) }
	f64 := func(bits uint64) []byte { return le.AppendUint32(le.AppendUint64(le.AppendUint64(nil, 1), bits), 5) }
	device := math.Float64bits(float64(math.Float32frombits(0x7fffffff)))
	for i, c := range []struct {
		a, b []byte
		size int
		want int
	}{
		{bf16(0x7fc0), bf16(0x7fff), 2, -1},
		{bf16(0x7fc0), bf16(0xffc1), 2, -1},
		{bf16(0x7f80), bf16(0x7fff), 2, 0},
		{bf16(0x0000), bf16(0x8000), 2, 0},
		{bf16(0x7fc0), bf16(0x7fff), 4, 0},
		{f32(0x7fc00000), f32(0x7fffffff), 4, -1},
		{f32(0x7f800000), f32(0x7fffffff), 4, 4},
		{f32(0xffc00000), f32(0x3f800000), 4, 4},
		{f64(0x7ff8 << 48), f64(device), 8, -1},
		{f64(0x7ff8 << 48), f64(device), 4, 8},
		{f64(0x7ff0 << 48), f64(device), 8, 8},
		{f64(7), append(f64(7)[:16], 6, 0, 0, 0), 8, 16},
	} {
		if got := difference(c.a, c.b, c.size); got != c.want {
			t.Errorf("case %d: %#x and %#x, numbers of %d bytes, differ at %d, want %d", i, c.a, c.b, c.size, got, c.want)
		}
	}
}
