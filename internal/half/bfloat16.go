package half

import "math"

// Of bfloat16, the upper half of float32.
const (
	infBF16     = infBits >> 16
	nanBF16     = infBF16 | 0x40
	largestBF16 = infBF16 - 1
)

// BFloat16 rounds x to one of its two bfloat16 neighbours, stochastically: over all values of
// random, it rounds up in magnitude with a probability equal to the distance of x from the lower
// neighbour, relative to the distance between the two. It uses the upper 16 bits of random.
func BFloat16(x float32, random uint32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &^= signBits
	if b >= infBits {
		if b > infBits {
			return sign | nanBF16
		}
		return sign | infBF16
	}
	return sign | uint16(min((b+random>>16)>>16, largestBF16))
}

// FromBFloat16 is the number that h stands for.
func FromBFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
