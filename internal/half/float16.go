package half

import "math"

// Bit patterns of float32.
const (
	signBits   = 1 << 31
	infBits    = 0x7f800000
	leadingBit = 1 << 23 // what a normal number's fraction leaves out
)

// Of float16.
const (
	inf16     = 0x7c00
	nan16     = 0x7e00
	largest16 = 0x7bff
	// bias16 is the difference of the two formats' exponents, in place.
	bias16 = (127 - 15) << 23
	// leastNormal16 is 2^-14 as float32; below it the spacing is 2^-24.
	leastNormal16 = (127 - 14) << 23
)

// Float16 rounds x to one of its two float16 neighbours, stochastically: over all values of random,
// it rounds up in magnitude with a probability equal to the distance of x from the lower neighbour,
// relative to the distance between the two, to within 2^-32.
func Float16(x float32, random uint32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &^= signBits
	switch {
	case b >= infBits:
		if b > infBits {
			return sign | nan16
		}
		return sign | inf16
	case b >= leastNormal16:
		// 13 bits of the fraction go; a carry goes into the exponent.
		return sign | uint16(min((b-bias16+random>>19)>>13, largest16))
	}
	// Multiples of 2^-24, with 32 bits behind the point: x is m 2^(e-150).
	e, m := b>>23, uint64(b&(leadingBit-1))
	if e == 0 {
		e = 1
	} else {
		m |= leadingBit
	}
	return sign | uint16((m<<32>>(126-e)+uint64(random))>>32)
}

// FromFloat16 is the number that h stands for.
func FromFloat16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	b := uint32(h&0x7fff) << 13
	switch {
	case b >= inf16<<13: // infinity or NaN
		return math.Float32frombits(sign | b | infBits)
	case b < leadingBit: // zero or below 2^-14: 2^-14 more and less again
		return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(b+leastNormal16)-math.Float32frombits(leastNormal16)))
	}
	return math.Float32frombits(sign | (b + bias16))
}
