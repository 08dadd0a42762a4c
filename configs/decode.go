package configs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"aibox/configs/internal/jobdate"
	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// loader carries what is known about one job file on its way to a Job.
type loader struct {
	file   string
	opts   LoadOptions
	job    *Job
	faults []Fault
	given  map[string]yamltree.Place // where each given path was written: the value's place
	keys   map[string]yamltree.Place // where the key of each given path was written
	raw    bool                      // values are defaults, in which templates are already expanded
	bad    map[string]bool           // paths whose value is faulty, or required and missing
}

// fault reports a fault of path at p.
func (l *loader) fault(p yamltree.Place, path, format string, args ...any) {
	l.report([]yamltree.Fault{{Place: p, Path: path, Message: fmt.Sprintf(format, args...)}})
	l.bad[path] = true
}

// report adds faults of the tree. They mark no path as bad.
func (l *loader) report(faults []yamltree.Fault) {
	l.faults = append(l.faults, newFaults(l.file, faults)...)
}

// faultAt reports a fault at the value of path or, where it was not given, at
// the nearest thing around it that was.
func (l *loader) faultAt(path, format string, args ...any) {
	l.fault(l.placeOf(path), path, format, args...)
}

func (l *loader) placeOf(path string) yamltree.Place {
	if p, ok := l.given[path]; ok {
		return p
	}
	if p, ok := l.keys[path]; ok { // its value was left out
		return p
	}
	for p := parentPath(path); p != ""; p = parentPath(p) {
		if at, ok := l.keys[p]; ok {
			return at
		}
		if at, ok := l.given[p]; ok {
			return at
		}
	}
	return yamltree.Place{Line: 1, Column: 1}
}

func parentPath(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

// mapping decodes the keys of n into the struct v.
func (l *loader) mapping(path, pattern string, n *yamltree.Node, v reflect.Value) {
	seen := map[string]yamltree.Place{}
	names := fieldNames(v.Type())
	for _, e := range n.Entries {
		p := join(path, e.Key)
		if path == "" && strings.HasPrefix(e.Key, "x-") {
			continue // a place for anchors
		}
		i := slices.Index(names, e.Key)
		if i < 0 {
			l.unknown(e, p, pattern, names)
			continue
		}
		if first, dup := seen[e.Key]; dup {
			l.fault(e.Place, p, "is given twice, first in line %d; remove one", first.Line)
			continue
		}
		seen[e.Key] = e.Place
		f := v.Field(i)
		l.keys[p] = e.Place
		k := keyIndex[join(pattern, e.Key)]
		// A mapping or list that was left empty counts as not given.
		if e.Value.IsNull() && (k.typ.Kind() == reflect.Struct || k.typ.Kind() == reflect.Slice) {
			if k.NullIsText && e.Value.Text != "" {
				l.fault(e.Value.Place, p, "has no value, as %s means in YAML; if it is meant as text, write %s", e.Value.Text, written(p, e.Value.Place, `["`+e.Value.Text+`"]`))
			}
			if pattern == "data.columns[].transform[]" {
				f.Set(reflect.New(f.Type().Elem())) // log1p: and standardize: need no options
			}
			continue
		}
		l.given[p] = e.Value.Place
		l.value(p, k.Path, k, e.Value, f)
	}
}

// unknown reports a key that its mapping does not have.
func (l *loader) unknown(e yamltree.Entry, path, pattern string, names []string) {
	allowed := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
	if near := nearest.Name(e.Key, allowed); near != "" {
		l.fault(e.Place, path, "unknown key `%s`: did you mean `%s`?", e.Key, near)
		return
	}
	var elsewhere []string
	for _, k := range keyTable {
		if nearest.Plain(leaf(k.Path)) == nearest.Plain(e.Key) && !strings.HasPrefix(k.Path, "generate") {
			there := k.Path
			if e.Set != "" { // an override names an item of a list
				there = strings.ReplaceAll(there, "[]", "[0]")
			}
			elsewhere = append(elsewhere, "`"+there+"`")
		}
	}
	if len(elsewhere) > 0 {
		l.fault(e.Place, path, "unknown key `%s` here: did you mean %s?", e.Key, strings.Join(elsewhere, " or "))
		return
	}
	where := "a job file"
	if pattern != "" {
		where = pattern
	}
	l.fault(e.Place, path, "unknown key `%s`; the keys of %s are %s", e.Key, where, strings.Join(allowed, ", "))
}

// fieldNames are the keys of a struct, "" for fields that are not keys.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "-" {
			names[i] = tag
		}
	}
	return names
}

// value decodes n into v, which belongs to key k.
func (l *loader) value(path, pattern string, k *Key, n *yamltree.Node, v reflect.Value) {
	if v.Type() == reflect.TypeOf(Transform{}) {
		l.transform(path, pattern, n, v.Addr().Interface().(*Transform))
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		if n.Kind != yamltree.Mapping {
			l.wrongType(path, "a mapping"+meantKind(path, k, n), n)
			return
		}
		l.mapping(path, pattern, n, v)
	case reflect.Slice:
		if n.Kind != yamltree.List {
			want := "a " + typeName(v.Type()) + ": [" + example(v.Type().Elem()) + ", …]"
			if n.Kind == yamltree.Scalar && !n.IsNull() {
				if list := asList(v.Type().Elem(), k, n.Text); list != "" {
					want += " (write " + written(path, n.Place, list) + ")"
				}
			}
			l.wrongType(path, want, n)
			return
		}
		if len(n.Items) < k.MinItems {
			l.fault(n.Place, path, "the list is empty; it needs at least %d", k.MinItems)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
		elemPattern := pattern
		if schemaType(v.Type().Elem()).Kind() == reflect.Struct {
			elemPattern += "[]"
		}
		for i, item := range n.Items {
			p := fmt.Sprintf("%s[%d]", path, i)
			l.given[p] = item.Place
			l.value(p, elemPattern, k, item, v.Index(i))
			if l.bad[p] {
				l.bad[path] = true
			}
		}
	default:
		l.scalar(path, k, n, v)
	}
}

func example(t reflect.Type) string {
	switch {
	case t == reflect.TypeOf(Transform{}):
		return "log1p"
	case t.Kind() == reflect.Struct:
		return "{…}"
	case t.Kind() == reflect.String:
		return "a"
	}
	return "64"
}

func (l *loader) wrongType(path, want string, n *yamltree.Node) {
	hint := ""
	switch {
	case n.Flow && n.Kind == yamltree.Mapping && strings.HasPrefix(want, "text"):
		hint = "; a text that begins with { needs quotation marks"
		if _, text, _ := strings.Cut(n.Set, "="); text != "" {
			hint += ": " + written(path, n.Place, strconv.Quote(text))
		}
	case strings.Contains(want, "(write "):
	case n.Kind == yamltree.Scalar && n.Quoted && (yamltree.CleanNumber(n.Text) != "?" || n.Text == "true" || n.Text == "false"):
		hint = " as text; remove the quotation marks"
	}
	l.fault(n.Place, path, "expected %s, found %s%s", want, n.Describe(), hint)
}

// scalar decodes one number, word or text and checks its range.
func (l *loader) scalar(path string, k *Key, n *yamltree.Node, v reflect.Value) {
	t := v.Type()
	want := article(typeName(t))
	if allowed := k.Allowed(); allowed != "" && len(k.Values) == 0 {
		want += " (" + allowed + ")"
	}
	if n.Kind != yamltree.Scalar {
		l.wrongType(path, want, n)
		return
	}
	if n.IsNull() {
		hint := ""
		if n.Text != "" && t.Kind() == reflect.String && len(k.Values) == 0 {
			hint = fmt.Sprintf("; if %s is meant as text, write %s", n.Text, written(path, n.Place, strconv.Quote(n.Text)))
		} else if n.Text == "" && n.Set != "" && t.Kind() == reflect.String && len(k.Values) == 0 && !k.Required {
			hint = "; an empty text is written " + written(path, n.Place, `""`)
		}
		l.fault(n.Place, path, "has no value; expected %s%s%s", want, allowedWords(k), hint)
		return
	}
	if t == reflect.TypeOf(Bytes(0)) {
		b, err := ParseBytes(n.Text)
		if err != nil {
			l.fault(n.Place, path, "%s", err.Error())
			return
		}
		if l.inRange(path, k, n, float64(b)) {
			v.SetInt(int64(b))
		}
		return
	}
	if t == numberOrWordType {
		l.numberOrWord(path, k, n, v)
		return
	}
	switch t.Kind() {
	case reflect.String:
		l.text(path, k, n, v)
	case reflect.Bool:
		if n.Quoted || n.Text != "true" && n.Text != "false" {
			want := "true or false"
			if b := asBool(n.Text); b != "" {
				want += " (write " + written(path, n.Place, b) + ")"
			}
			l.wrongType(path, want, n)
			return
		}
		v.SetBool(n.Text == "true")
	case reflect.Float64:
		x, err := yamltree.ParseFloat(n.Text)
		if n.Quoted || err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			l.wrongType(path, "a finite number"+strings.TrimPrefix(want, "a number"), n)
			return
		}
		if l.inRange(path, k, n, x) {
			v.SetFloat(x)
		}
	default:
		l.integer(path, want, k, n, v)
	}
}

// integer decodes an integer, which may be written 1000, 1_000 or 1e3.
func (l *loader) integer(path, want string, k *Key, n *yamltree.Node, v reflect.Value) {
	text := yamltree.CleanNumber(n.Text)
	x, err := strconv.ParseFloat(text, 64)
	if n.Quoted || err != nil || x != math.Trunc(x) || math.IsInf(x, 0) {
		l.wrongType(path, want, n)
		return
	}
	if !l.inRange(path, k, n, x) {
		return
	}
	if v.CanUint() {
		u, err := strconv.ParseUint(text, 10, 64)
		if err != nil && x >= 0 && x < math.MaxUint64 {
			u, err = uint64(x), nil
		}
		if err != nil || v.OverflowUint(u) {
			l.wrongType(path, "an integer from 0 to 2^64-1", n)
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
		l.wrongType(path, want, n)
		return
	}
	v.SetInt(i)
}

func (l *loader) inRange(path string, k *Key, n *yamltree.Node, x float64) bool {
	if k.rng.contains(x) {
		return true
	}
	l.fault(n.Place, path, "%s is out of range; allowed: %s", n.Text, k.Allowed())
	return false
}

func (l *loader) text(path string, k *Key, n *yamltree.Node, v reflect.Value) {
	if !n.Quoted && yamltree.LooksLikeOther(n.Text) {
		if len(k.Values) > 0 {
			l.fault(n.Place, path, "expected a word, found %s%s", n.Text, allowedWords(k))
		} else {
			l.fault(n.Place, path, "expected text, found %s; if it is meant as text, write %s", n.Text, written(path, n.Place, strconv.Quote(n.Text)))
		}
		return
	}
	if why := k.Refused[n.Text]; why != "" {
		l.fault(n.Place, path, "%s is not allowed: %s", nearest.Quote(n.Text), why)
		return
	}
	if len(k.Values) > 0 && !slices.Contains(k.Values, n.Text) {
		l.fault(n.Place, path, "%s is not allowed%s", nearest.Quote(n.Text), nearest.Suggest(n.Text, k.Values))
		return
	}
	s := n.Text
	if k.Template && !l.raw {
		var ok bool
		if s, ok = l.expand(path, n); !ok {
			return
		}
		if path != "name" {
			s = followUpward(s)
		}
		switch path {
		case "name":
			l.job.plainName = n.Text
		case "output.model_dir":
			l.job.modelDir = jobdate.Split(n.Text, l.opts.Env)
		}
	}
	if k.Required && strings.TrimSpace(s) == "" {
		l.fault(n.Place, path, "must not be empty")
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

func article(s string) string {
	switch s {
	case "text", "true or false":
		return s
	case "integer":
		return "an integer"
	case "size":
		return "a size such as 64MiB"
	}
	return "a " + s
}
