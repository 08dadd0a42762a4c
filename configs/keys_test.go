package configs

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"aibox/configs/internal/yamltree"
)

// nest writes a job file in which only the key of that path has a value.
func nest(path, value string) string {
	var open, end strings.Builder
	for _, part := range strings.Split(path, ".") {
		name, list := strings.CutSuffix(part, "[]")
		open.WriteString("{" + name + ": ")
		end.WriteByte('}')
		if list {
			open.WriteByte('[')
			end.WriteByte(']')
		}
	}
	tail := []byte(end.String())
	for i, j := 0, len(tail)-1; i < j; i, j = i+1, j-1 {
		tail[i], tail[j] = tail[j], tail[i]
	}
	return open.String() + value + string(tail)
}

// TestEveryKeyReportsAWrongType gives each key of the table values of a type
// that it does not take.
func TestEveryKeyReportsAWrongType(t *testing.T) {
	for _, k := range Keys() {
		wrong := []string{"{nonsense: 1}", "[[1]]", "7.5x"}
		switch {
		case k.typ == reflect.TypeOf(Bytes(0)):
			wrong = append(wrong, "true", `"x"`, "1.5.5")
		case k.typ == numberOrWordType:
			wrong = append(wrong, "true", `"1"`, ".nan")
		case k.typ.Kind() == reflect.String:
			wrong = []string{"{nonsense: 1}", "[a]", "12", "true"}
		case k.typ.Kind() == reflect.Bool:
			wrong = append(wrong, "1", `"true"`)
		case k.typ.Kind() == reflect.Float64:
			wrong = append(wrong, "true", `"1"`, ".nan", ".inf", "0x10")
		case k.typ.Kind() == reflect.Struct:
			wrong = []string{"text", "[1]", "12", "{nonsense: 1}"}
		case k.typ.Kind() == reflect.Slice:
			wrong = []string{"text", "12", "[[1]]", "[{nonsense: 1}]", "{a: b}", "[null]"}
		default:
			wrong = append(wrong, "true", `"1"`, "1.5", "1e99", "0x10")
		}
		for _, value := range wrong {
			_, err := Parse("job.yaml", []byte(nest(k.Path, value)), LoadOptions{Env: noEnv})
			path := strings.ReplaceAll(k.Path, "[]", "[0]")
			found := false
			faults, _ := err.(FaultsError)
			for _, f := range faults {
				if strings.HasPrefix(f.Path, path) && f.Line == 1 && f.Column > 1 && !strings.Contains(f.Message, "has no effect") && !strings.Contains(f.Message, "is missing") {
					found = true
				}
			}
			if !found {
				t.Errorf("%s: no fault of it in\n%v", nest(k.Path, value), err)
			}
		}
	}
}

// TestEveryRangeIsKept tries values just outside of each range.
func TestEveryRangeIsKept(t *testing.T) {
	for _, k := range Keys() {
		if !k.rng.given {
			continue
		}
		var out []float64
		for _, end := range []struct {
			x    float64
			open bool
			step float64
		}{{k.rng.min, k.rng.openMin, -1}, {k.rng.max, k.rng.openMax, 1}} {
			if math.IsInf(end.x, 0) {
				continue
			}
			if end.open {
				out = append(out, end.x)
			}
			out = append(out, end.x+end.step)
		}
		for _, x := range out {
			value := yamltree.FormatFloat(x)
			if k.typ.Kind() == reflect.Slice {
				value = "[" + value + "]"
			}
			_, err := Parse("job.yaml", []byte(nest(k.Path, value)), LoadOptions{Env: noEnv})
			if err == nil || !strings.Contains(err.Error(), "is out of range; allowed: ") && !strings.Contains(err.Error(), "expected an integer") {
				t.Errorf("%s: no fault in\n%v", nest(k.Path, value), err)
			}
		}
	}
}

// TestEveryWordIsAllowed gives each key of words each of its words, and one
// with a slip.
func TestEveryWordIsAllowed(t *testing.T) {
	for _, k := range Keys() {
		for _, word := range k.Values {
			for _, value := range []string{word, word[:len(word)-1] + "#"} {
				_, err := Parse("job.yaml", []byte(nest(k.Path, fmt.Sprintf("%q", value))), LoadOptions{Env: noEnv})
				if have, want := strings.Contains(err.Error(), "is not allowed"), value != word; have != want {
					t.Errorf("%s: %v", nest(k.Path, value), err)
				}
			}
		}
	}
}

func TestEveryKeyIsExplained(t *testing.T) {
	for _, k := range Keys() {
		if !strings.HasSuffix(k.Meaning, ".") {
			t.Errorf("%s: the meaning %q is not a sentence", k.Path, k.Meaning)
		}
		if k.DefaultFrom != nil && k.DefaultNote == "" {
			t.Errorf("%s: nothing says where the default comes from", k.Path)
		}
		if k.Required && (k.Default != "" || k.DefaultFrom != nil) {
			t.Errorf("%s: required, with a default", k.Path)
		}
	}
}
