package tablediff

import (
	"encoding/json"
	"fmt"
	"math"
)

// Float is a number that JSON holds as text where it is not finite, which values of a
// diverged model can be.
type Float float64

// MarshalJSON returns the number, or "NaN", "+Inf" or "-Inf".
func (f Float) MarshalJSON() ([]byte, error) {
	if x := float64(f); math.IsNaN(x) || math.IsInf(x, 0) {
		return json.Marshal(fmt.Sprint(x))
	}
	return json.Marshal(float64(f))
}
