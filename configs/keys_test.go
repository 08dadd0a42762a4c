package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"aibox/configs/internal/yamltree"
)

// nest writes a job file in which only the key of that path has a value.
func nest(path, value string) string {
	var open, end strings.Builder
	for part := range strings.SplitSeq(path, ".") {
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
		case k.Type() == "size":
			wrong = append(wrong, "true", `"x"`, "1.5.5")
		case k.Type() == "number or word":
			wrong = append(wrong, "true", `"1"`, ".nan")
		case k.Type() == "text":
			wrong = []string{"{nonsense: 1}", "[a]", "12", "true"}
		case k.Type() == "true or false":
			wrong = append(wrong, "1", `"true"`)
		case k.Type() == "number":
			wrong = append(wrong, "true", `"1"`, ".nan", ".inf", "0x10")
		case k.Type() == "mapping":
			wrong = []string{"text", "[1]", "12", "{nonsense: 1}"}
		case strings.HasPrefix(k.Type(), "list"):
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
		if k.Range == "" {
			continue
		}
		low, high, _ := strings.Cut(k.Range[1:len(k.Range)-1], ",")
		var out []float64
		for _, end := range []struct {
			text string
			open bool
			step float64
		}{{low, k.Range[0] == '(', -1}, {high, strings.HasSuffix(k.Range, ")"), 1}} {
			x, err := strconv.ParseFloat(end.text, 64)
			if err != nil {
				t.Fatalf("%s: range %s", k.Path, k.Range)
			}
			if math.IsInf(x, 0) {
				continue
			}
			if end.open {
				out = append(out, x)
			}
			out = append(out, x+end.step)
		}
		for _, x := range out {
			value := yamltree.FormatFloat(x)
			if strings.HasPrefix(k.Type(), "list") {
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
