package score

import (
	"encoding/json"
	"math"
	"strconv"
)

// Value is a figure that may be undefined: an AUC with one class only, a mean
// of nothing. Undefined is NaN, null in JSON.
type Value float64

// Undefined is the undefined Value.
func Undefined() Value { return Value(math.NaN()) }

// Defined says whether there is a figure.
func (v Value) Defined() bool { return !math.IsNaN(float64(v)) }

// String is the figure, or "undefined".
func (v Value) String() string {
	if !v.Defined() {
		return "undefined"
	}
	return strconv.FormatFloat(float64(v), 'g', -1, 64)
}

// MarshalJSON writes an undefined Value as null.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Defined() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(v))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*v = Undefined()
		return nil
	}
	return json.Unmarshal(b, (*float64)(v))
}
