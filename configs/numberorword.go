package configs

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// NumberOrWord is a number, or one of a few words that take its place, such as auto. It
// holds either as text.
type NumberOrWord string

var numberOrWordType = reflect.TypeOf(NumberOrWord(""))

// Number returns the number; ok is false if it is a word, or if there is no value.
func (x NumberOrWord) Number() (v float64, ok bool) {
	v, err := strconv.ParseFloat(string(x), 64)
	return v, err == nil
}

// numberOrWord decodes a number within the key's range, or one of the key's words.
func (l *loader) numberOrWord(path string, k *Key, n *yamltree.Node, v reflect.Value) {
	if slices.Contains(k.Values, n.Text) {
		v.SetString(n.Text)
		return
	}
	x, err := yamltree.ParseFloat(n.Text)
	switch {
	case err == nil && !n.Quoted:
		if l.inRange(path, k, n, x) {
			v.SetString(yamltree.FormatFloat(x))
		}
	case nearest.Name(n.Text, k.Values) != "":
		l.fault(n.Place, path, "%s is not allowed%s", nearest.Quote(n.Text), nearest.Suggest(n.Text, k.Values))
	default:
		l.wrongType(path, "a number or "+strings.Join(k.Values, " or "), n)
	}
}
