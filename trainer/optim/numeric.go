package optim

import "math"

// powInt returns base to the power n >= 0, by repeated squaring.
func powInt(base float64, n int64) float64 {
	power := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = float64(power * base)
		}
		base = float64(base * base)
	}
	return power
}

// powFrac returns base to the power num/den, 0 <= num < den < 2^62: the product of those of
// base^(1/2), base^(1/4), … whose bits are set in the binary fraction.
func powFrac(base float64, num, den int64) float64 {
	power := 1.0
	for range 60 { // beyond 53 bits the factors are 1
		base = math.Sqrt(base)
		if num *= 2; num >= den {
			num -= den
			power = float64(power * base)
		}
	}
	return power
}

// cosPi returns cos(pi x) for 0 <= x <= 1, to within 1e-15.
func cosPi(x float64) float64 {
	if x > 0.5 {
		return -cosPi(1 - x)
	}
	// The Taylor series; at pi/2 its first missing term, y^24/24!, is 8e-20.
	y := float64(math.Pi * x)
	y2 := float64(y * y)
	sum := 0.0
	for k := 22; k > 0; k -= 2 {
		sum = float64((1-sum)*y2) / float64(k*(k-1))
	}
	return 1 - sum
}
