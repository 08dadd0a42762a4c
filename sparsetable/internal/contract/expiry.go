package contract

import "aibox/sparsetable/internal/layout"

// ExpiryRule expires a row that violates one of the active limits. The zero value expires
// nothing; Expire then does not read a table on SSD.
type ExpiryRule struct {
	Today      uint32  // the present day
	UnseenDays uint32  // drop rows with Today-LastSeen > UnseenDays; 0: never
	MinShow    float32 // drop rows whose Show, decayed to Today, is below this; 0: never
	ShowDecay  float32 // factor per day by which Show decays; 0 means 1
}

// Decay returns factor to the power days: the part of a show or click count that is left after that
// many days. It multiplies by repeated squaring, so that the result has the same bits on every
// machine.
func Decay(factor float32, days uint32) float64 {
	power, base := 1.0, float64(factor)
	for ; days > 0; days >>= 1 {
		if days&1 != 0 {
			power *= base
		}
		base *= base
	}
	return power
}

// Expires reports whether a row with statistics st is to be dropped. A row
// seen after Today counts as seen today.
func (r ExpiryRule) Expires(st layout.RowStats) bool {
	days := uint32(0)
	if r.Today > st.LastSeen {
		days = r.Today - st.LastSeen
	}
	if r.UnseenDays > 0 && days > r.UnseenDays {
		return true
	}
	if r.MinShow <= 0 {
		return false
	}
	factor := r.ShowDecay
	if factor == 0 {
		factor = 1
	}
	return float64(st.Show)*Decay(factor, days) < float64(r.MinShow)
}
