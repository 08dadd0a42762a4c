package schema

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// scalar decodes one number, word or text and checks its range.
func (d *Decoder) scalar(path string, k *Key, n *yamltree.Node, v reflect.Value) {
	t := v.Type()
	want := article(typeName(t))
	if allowed := k.Allowed(); allowed != "" && len(k.Values) == 0 {
		want += " (" + allowed + ")"
	}
	if n.Kind != yamltree.Scalar {
		d.WrongType(path, want, n)
		return
	}
	if n.IsNull() {
		hint := ""
		if n.Text != "" && t.Kind() == reflect.String && len(k.Values) == 0 {
			hint = fmt.Sprintf("; if %s is meant as text, write %s", n.Text, Instead(path, n.Place, strconv.Quote(n.Text)))
		} else if n.Text == "" && n.Set != "" && t.Kind() == reflect.String && len(k.Values) == 0 && !k.Required {
			hint = "; an empty text is written " + Instead(path, n.Place, `""`)
		}
		d.Fault(n.Place, path, "has no value; expected %s%s%s", want, allowedWords(k), hint)
		return
	}
	if t == reflect.TypeFor[Bytes]() {
		b, err := ParseBytes(n.Text)
		if err != nil {
			d.Fault(n.Place, path, "%s", err.Error())
			return
		}
		if d.inRange(path, k, n, float64(b)) {
			v.SetInt(int64(b))
		}
		return
	}
	if t == numberOrWordType {
		d.numberOrWord(path, k, n, v)
		return
	}
	switch t.Kind() {
	case reflect.String:
		d.text(path, k, n, v)
	case reflect.Bool:
		if n.Quoted || n.Text != "true" && n.Text != "false" {
			want := "true or false"
			if b := asBool(n.Text); b != "" {
				want += " (write " + Instead(path, n.Place, b) + ")"
			}
			d.WrongType(path, want, n)
			return
		}
		v.SetBool(n.Text == "true")
	case reflect.Float64:
		x, err := yamltree.ParseFloat(n.Text)
		if n.Quoted || err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			d.WrongType(path, "a finite number"+strings.TrimPrefix(want, "a number"), n)
			return
		}
		if d.inRange(path, k, n, x) {
			v.SetFloat(x)
		}
	default:
		d.integer(path, want, k, n, v)
	}
}

// integer decodes an integer, which may be written 1000, 1_000 or 1e3.
func (d *Decoder) integer(path, want string, k *Key, n *yamltree.Node, v reflect.Value) {
	text := yamltree.CleanNumber(n.Text)
	x, err := strconv.ParseFloat(text, 64)
	if n.Quoted || err != nil || x != math.Trunc(x) || math.IsInf(x, 0) {
		d.WrongType(path, want, n)
		return
	}
	if !d.inRange(path, k, n, x) {
		return
	}
	if v.CanUint() {
		u, err := strconv.ParseUint(text, 10, 64)
		if err != nil && x >= 0 && x < math.MaxUint64 {
			u, err = uint64(x), nil
		}
		if err != nil || v.OverflowUint(u) {
			d.WrongType(path, "an integer from 0 to 2^64-1", n)
			return
		}
		v.SetUint(u)
		return
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil && math.Abs(x) < math.MaxInt64 {
		i, err = int64(x), nil
	}
	if err != nil || v.OverflowInt(i) {
		d.Fault(n.Place, path, "%s is out of range; the largest integer is %d", n.Text, int64(math.MaxInt64))
		return
	}
	v.SetInt(i)
}

func (d *Decoder) inRange(path string, k *Key, n *yamltree.Node, x float64) bool {
	if k.rng.contains(x) {
		return true
	}
	d.Fault(n.Place, path, "%s is out of range; allowed: %s", n.Text, k.Allowed())
	return false
}

func (d *Decoder) text(path string, k *Key, n *yamltree.Node, v reflect.Value) {
	if !n.Quoted && yamltree.LooksLikeOther(n.Text) && !k.WithUnit {
		if len(k.Values) > 0 {
			d.Fault(n.Place, path, "expected a word, found %s%s", n.Text, allowedWords(k))
		} else {
			d.Fault(n.Place, path, "expected text, found %s; if it is meant as text, write %s", n.Text, Instead(path, n.Place, strconv.Quote(n.Text)))
		}
		return
	}
	if why := k.Refused[n.Text]; why != "" {
		d.Fault(n.Place, path, "%s is not allowed: %s", nearest.Quote(n.Text), why)
		return
	}
	if len(k.Values) > 0 && !slices.Contains(k.Values, n.Text) {
		d.Fault(n.Place, path, "%s is not allowed%s", nearest.Quote(n.Text), nearest.Suggest(n.Text, k.Values))
		return
	}
	s := n.Text
	if k.Template && d.Expand != nil {
		var ok bool
		if s, ok = d.Expand(path, n); !ok {
			return
		}
	}
	if !utf8.ValidString(s) { // as a variable or an override may be; a job file could not hold it
		d.Fault(n.Place, path, "%s is not UTF-8 text", strconv.Quote(s))
		return
	}
	if k.Required && strings.TrimSpace(s) == "" {
		d.Fault(n.Place, path, "must not be empty")
		return
	}
	v.SetString(s)
}

func allowedWords(k *Key) string {
	if len(k.Values) == 0 {
		return ""
	}
	return "; allowed: " + strings.Join(k.Values, ", ")
}

// numberOrWord decodes a number within the key's range, or one of the key's words.
func (d *Decoder) numberOrWord(path string, k *Key, n *yamltree.Node, v reflect.Value) {
	if slices.Contains(k.Values, n.Text) {
		v.SetString(n.Text)
		return
	}
	x, err := yamltree.ParseFloat(n.Text)
	switch {
	case err == nil && !n.Quoted:
		if d.inRange(path, k, n, x) {
			v.SetString(yamltree.FormatFloat(x))
		}
	case nearest.Name(n.Text, k.Values) != "":
		d.Fault(n.Place, path, "%s is not allowed%s", nearest.Quote(n.Text), nearest.Suggest(n.Text, k.Values))
	default:
		d.WrongType(path, "a number or "+strings.Join(k.Values, " or "), n)
	}
}
