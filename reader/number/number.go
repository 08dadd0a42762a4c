// Package number parses decimal numbers from bytes without allocating and with
// exactly the results of package strconv, except that it rejects underscores between
// digits and hexadecimal numbers, which strconv accepts.
//
// Click logs are mostly text, and a day's log holds billions of small numbers:
// converting each cell to a string for strconv would cost more than hashing it.
// The fast path covers what logs really contain (up to 19 digits, a small
// exponent) where one float operation on exact operands is correctly rounded;
// everything else goes to strconv. Spaces around the number are not accepted;
// see Trim.
package number

import (
	"bytes"
	"math"
	"strconv"
	"unsafe"
)

// pow10 holds the powers of ten that float64 represents exactly.
var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// Finite says whether x is neither NaN nor infinite.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Float64 returns what strconv.ParseFloat(string(text), 64) returns for a decimal
// number; ok is false where that fails, as it does for a number that is out of range.
// "nan" and "inf" are numbers, as they are for strconv.
func Float64(text []byte) (value float64, ok bool) {
	if v, ok := fast(text); ok {
		return v, true
	}
	if odd(text) {
		return 0, false
	}
	v, err := strconv.ParseFloat(view(text), 64)
	return v, err == nil
}

// Float32 returns what strconv.ParseFloat(string(text), 32) returns.
func Float32(text []byte) (value float32, ok bool) {
	if v, ok := fast(text); ok {
		// v is the float64 nearest to the decimal number. Rounding v gives the
		// float32 nearest to that number, unless v lies exactly between two float32
		// values and the number does not, or the float32 is subnormal or overflows.
		a := math.Abs(v)
		middle := math.Float64bits(v)&(1<<29-1) == 1<<28
		if a == 0 || (!middle && a >= 0x1p-126 && a <= math.MaxFloat32) {
			return float32(v), true
		}
	}
	if odd(text) {
		return 0, false
	}
	v, err := strconv.ParseFloat(view(text), 32)
	return float32(v), err == nil
}

// odd says whether the text has a character of numbers that Go's syntax allows and
// data do not contain, such as 1_000 and 0x1p4.
func odd(text []byte) bool { return bytes.ContainsAny(text, "_xX") }

// Int64 parses an optional sign and decimal digits.
func Int64(text []byte) (value int64, ok bool) {
	digits := text
	negative := false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		v, err := strconv.ParseInt(view(text), 10, 64)
		return v, err == nil
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		value = value*10 + int64(c-'0')
	}
	if negative {
		value = -value
	}
	return value, true
}

// Trim cuts spaces and tabs off both ends.
func Trim(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for len(text) > 0 && (text[len(text)-1] == ' ' || text[len(text)-1] == '\t') {
		text = text[:len(text)-1]
	}
	return text
}

// fast parses [+-]digits[.digits][e[+-]digits] where one operation on exactly
// represented operands gives the correctly rounded float64: at most 2^53 for the
// digits and 10^22 for the power of ten (Clinger 1990).
func fast(text []byte) (float64, bool) {
	i := 0
	negative := false
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		negative = text[i] == '-'
		i++
	}
	var mantissa uint64
	digits, scale := 0, 0
	start := i
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		mantissa = mantissa*10 + uint64(text[i]-'0')
	}
	digits = i - start
	if i < len(text) && text[i] == '.' {
		i++
		start = i
		for ; i < len(text) && text[i]-'0' <= 9; i++ {
			mantissa = mantissa*10 + uint64(text[i]-'0')
		}
		digits += i - start
		scale = start - i
	}
	// 19 digits cannot overflow uint64.
	if digits == 0 || digits > 19 || mantissa > 1<<53 {
		return 0, false
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		down := false
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			down = text[i] == '-'
			i++
		}
		start = i
		exponent := 0
		for ; i < len(text) && text[i]-'0' <= 9 && i-start < 4; i++ {
			exponent = exponent*10 + int(text[i]-'0')
		}
		if i == start {
			return 0, false
		}
		if down {
			exponent = -exponent
		}
		scale += exponent
	}
	if i != len(text) || scale < -22 || scale > 22 {
		return 0, false
	}
	v := float64(mantissa)
	if scale < 0 {
		v /= pow10[-scale]
	} else {
		v *= pow10[scale]
	}
	if negative {
		v = -v
	}
	return v, true
}

// view returns the bytes as a string without copying them. It is for strconv, which
// does not keep them.
func view(text []byte) string {
	return unsafe.String(unsafe.SliceData(text), len(text))
}
