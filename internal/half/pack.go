package half

import (
	"fmt"
	"math"

	"aibox/internal/splitmix"
)

// Words is the number of 32-bit words that n numbers take.
func Words(n int) int { return (n + 1) / 2 }

func checkWords(function string, numbers, words int) {
	if words != Words(numbers) {
		panic(fmt.Sprintf("half.%s: %d numbers do not fit %d words exactly", function, numbers, words))
	}
}

// PackFloat16 rounds src into dst, which has Words(len(src)) words. The same random gives
// the same bits.
func PackFloat16(dst, src []float32, random uint64) {
	checkWords("PackFloat16", len(src), len(dst))
	const normal = largestFast16 - leastNormal16
	whole := len(src) / 2
	for w := range dst[:whole] {
		random += splitmix.Step
		r := splitmix.Mix(random)
		pair := src[2*w : 2*w+2]
		b0, b1 := math.Float32bits(pair[0]), math.Float32bits(pair[1])
		if b0&^signBits-leastNormal16 > normal || b1&^signBits-leastNormal16 > normal {
			dst[w] = word(Float16(pair[0], uint32(r)), Float16(pair[1], uint32(r>>32)))
			continue
		}
		// What Float16 does with most numbers.
		lo := b0>>16&0x8000 | (b0&^signBits-bias16+uint32(r)>>19)>>13
		hi := b1>>16&0x8000 | (b1&^signBits-bias16+uint32(r>>51))>>13
		dst[w] = math.Float32frombits(lo | hi<<16)
	}
	if len(src)%2 != 0 {
		dst[whole] = word(Float16(src[2*whole], uint32(splitmix.Next(random))), 0)
	}
}

// PackBFloat16 is PackFloat16 for bfloat16.
func PackBFloat16(dst, src []float32, random uint64) {
	checkWords("PackBFloat16", len(src), len(dst))
	whole := len(src) / 2
	for w := range dst[:whole] {
		random += splitmix.Step
		r := splitmix.Mix(random)
		pair := src[2*w : 2*w+2]
		b0, b1 := math.Float32bits(pair[0]), math.Float32bits(pair[1])
		if b0&^signBits >= largestFastBF16 || b1&^signBits >= largestFastBF16 {
			dst[w] = word(BFloat16(pair[0], uint32(r)), BFloat16(pair[1], uint32(r>>32)))
			continue
		}
		// What BFloat16 does with most numbers: no carry reaches the sign.
		dst[w] = math.Float32frombits((b0+uint32(r)>>16)>>16 | (b1+uint32(r>>48))&0xffff0000)
	}
	if len(src)%2 != 0 {
		dst[whole] = word(BFloat16(src[2*whole], uint32(splitmix.Next(random))), 0)
	}
}

// Numbers from here on may have to be held back from infinity.
const (
	largestFast16   = (127+15)<<23 + 0x7fe000 // 65504, itself no trouble
	largestFastBF16 = infBits - 1<<16
)

// word is the word of two numbers.
func word(lo, hi uint16) float32 { return math.Float32frombits(uint32(lo) | uint32(hi)<<16) }

// UnpackFloat16 widens src, which has Words(len(dst)) words, into dst.
func UnpackFloat16(dst, src []float32) {
	checkWords("UnpackFloat16", len(dst), len(src))
	whole := len(dst) / 2
	for w, bits := range src[:whole] {
		b := math.Float32bits(bits)
		pair := dst[2*w : 2*w+2]
		pair[0], pair[1] = FromFloat16(uint16(b)), FromFloat16(uint16(b>>16))
	}
	if len(dst)%2 != 0 {
		dst[2*whole] = FromFloat16(uint16(math.Float32bits(src[whole])))
	}
}

// UnpackBFloat16 is UnpackFloat16 for bfloat16.
func UnpackBFloat16(dst, src []float32) {
	checkWords("UnpackBFloat16", len(dst), len(src))
	whole := len(dst) / 2
	for w, bits := range src[:whole] {
		b := math.Float32bits(bits)
		pair := dst[2*w : 2*w+2]
		pair[0], pair[1] = math.Float32frombits(b<<16), math.Float32frombits(b&0xffff0000)
	}
	if len(dst)%2 != 0 {
		dst[2*whole] = FromBFloat16(uint16(math.Float32bits(src[whole])))
	}
}
