package generate

import "math"

// turn is the position of a feature on its circle on a day: its effect is
// cos·(first draw) + sin·(second draw).
type turn struct{ cos, sin float64 }

// drift computes turns. The speed of a feature is an angle ω per day from the wrapped
// Cauchy distribution, for which the mean of cos(ωd) is ρ^d. This is the correlation of
// effects after d days. ρ² is the share of a day's variance that the day before explains,
// 1 - share. ω satisfies tan(ω/2) = (1-ρ)/(1+ρ)·x, where x has the Cauchy distribution,
// which is that of the quotient of two normal numbers. So cos ω and sin ω are computed
// without trigonometric functions, and those of ωd by powers of a complex number.
type drift struct {
	day     uint64
	squeeze float64 // (1-ρ)/(1+ρ)
}

func newDrift(share float64, day int) drift {
	rho := math.Sqrt(1 - share)
	return drift{uint64(day), (1 - rho) / (1 + rho)}
}

// still says whether all effects are their first draws.
func (d *drift) still() bool { return d.day == 0 || d.squeeze == 0 }

// turn of the feature with these two hashes.
func (d *drift) turn(h1, h2 uint64) turn {
	if d.still() {
		return turn{1, 0}
	}
	a, b := float64(d.squeeze*normal(h1)), normal(h2)
	aa, bb := float64(a*a), float64(b*b)
	z := turn{(bb - aa) / (bb + aa), 2 * float64(a*b) / (bb + aa)}
	result := turn{1, 0}
	for n := d.day; ; z = z.times(z) {
		if n&1 != 0 {
			result = result.times(z)
		}
		if n >>= 1; n == 0 {
			return result
		}
	}
}

func (t turn) times(u turn) turn {
	return turn{
		float64(t.cos*u.cos) - float64(t.sin*u.sin),
		float64(t.cos*u.sin) + float64(t.sin*u.cos),
	}
}

// of mixes the two draws.
func (t turn) of(first, second float64) float64 {
	return float64(t.cos*first) + float64(t.sin*second)
}
