package twin

import (
	"math"

	"aibox/gpu/emulated"
	"aibox/internal/kernel"
)

var _ = add(emulated.Kernels{
	"to_bf16": {Run: func(b *emulated.Block) {
		y, stride, x := emulated.Slice[uint16](b, 0), b.Int32(1), at(b, 2)
		elements(b, b.Int32(4), b.Int32(5), func(i, j int) {
			y[i*stride+j] = uint16(math.Float32bits(kernel.RoundBF16(x.row(i)[j])) >> 16)
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
