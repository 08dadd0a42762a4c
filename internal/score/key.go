package score

import "math"

// key maps a float32 that is not NaN to a uint32 of the same order; -0 and 0
// map to the same one.
//
//	bits of x      sign 0: 0x00000000..0x7f800000    sign 1: 0x80000000..0xff800000
//	key            0x80000000..0xff800000            0x7fffffff..0x007fffff
func key(x float32) uint32 {
	b := math.Float32bits(x + 0) // -0 + 0 is 0
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}
