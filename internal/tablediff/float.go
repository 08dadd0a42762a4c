package tablediff

import (
	"encoding/json"
	"fmt"
	"math"
)

// Float is a number that JSON holds as text if it is not finite, as values of a diverged model may
// be.
type Float float64

// MarshalJSON returns the number, or "NaN", "+Inf" or "-Inf".
func (f Float) MarshalJSON() ([]byte, error) {
	if x := float64(f); math.IsNaN(x) || math.IsInf(x, 0) {
		return json.Marshal(fmt.Sprint(x))
	}
	return json.Marshal(float64(f))
}
