package twin

import (
	"math"

	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"to_bf16": {Run: func(b *emulated.Block) {
		y, x := halfs(b, 0), at(b, 2)
		given, each := b.Int32(6), b.Int32(7)
		elements(b, b.Int32(4), b.Int32(5)/each, func(i, first int) {
			for j := first * each; j < (first+1)*each; j++ {
				if j < given {
					y.set(i, j, x.row(i)[j])
				} else {
					y.set(i, j, 0)
				}
			}
		})
	}},
	"check_finite": {Run: func(b *emulated.Block) {
		flag, x := emulated.Slice[int32](b, 0), at(b, 1)
		elements(b, b.Int32(3), b.Int32(4), func(i, j int) {
			if math.Float32bits(x.row(i)[j])&0x7f800000 == 0x7f800000 {
				flag[0] = 1
			}
		})
	}},
})

// halfMatrix is a matrix of bfloat16.
type halfMatrix struct {
	data   []uint16
	stride int
}

// halfs is the matrix of argument i, whose stride follows.
func halfs(b *emulated.Block, i int) halfMatrix {
	return halfMatrix{emulated.Slice[uint16](b, i), b.Int32(i + 1)}
}

func (m halfMatrix) set(i, j int, x float32) {
	m.data[i*m.stride+j] = uint16(math.Float32bits(kernel.RoundBF16(x)) >> 16)
}

func (m halfMatrix) value(i, j int) float32 {
	return math.Float32frombits(uint32(m.data[i*m.stride+j]) << 16)
}
