package schema

import (
	"reflect"
	"strconv"
)

// NumberOrWord is a number, or one of a few words that take its place, such as auto. It
// holds either as text.
type NumberOrWord string

var numberOrWordType = reflect.TypeFor[NumberOrWord]()

// Number returns the number; ok is false if it is a word, or if there is no value.
func (x NumberOrWord) Number() (v float64, ok bool) {
	v, err := strconv.ParseFloat(string(x), 64)
	return v, err == nil
}
