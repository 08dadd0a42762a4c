package configs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"aibox/internal/nearest"
)

// loader carries what is known about one job file on its way to a Job.
type loader struct {
	file   string
	opts   LoadOptions
	job    *Job
	faults []Fault
	given  map[string]place // where each given path was written: the value's place
	keys   map[string]place // where the key of each given path was written
	raw    bool             // values are defaults, in which templates are already expanded
	bad    map[string]bool  // paths whose value is faulty, or required and missing
}

// fault reports a fault of path at p.
func (l *loader) fault(p place, path, format string, args ...any) {
	f := Fault{File: l.file, Line: p.line, Column: p.column, Path: path, Message: fmt.Sprintf(format, args...), order: p.order}
	if p.set != "" {
		f.File, f.Line, f.Column = p.set, 0, 0
	}
	l.faults = append(l.faults, f)
	l.bad[path] = true
}

// faultAt reports a fault at the value of path or, where it was not given, at
// the nearest thing around it that was.
func (l *loader) faultAt(path, format string, args ...any) {
	l.fault(l.placeOf(path), path, format, args...)
}

func (l *loader) placeOf(path string) place {
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
	return place{line: 1, column: 1}
}

func parentPath(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

// mapping decodes the keys of n into the struct v.
func (l *loader) mapping(path, pattern string, n *node, v reflect.Value) {
	seen := map[string]place{}
	names := fieldNames(v.Type())
	for _, e := range n.entries {
		p := join(path, e.key)
		if path == "" && strings.HasPrefix(e.key, "x-") {
			continue // a place for anchors
		}
		i := slices.Index(names, e.key)
		if i < 0 {
			l.unknown(e, p, pattern, names)
			continue
		}
		if first, dup := seen[e.key]; dup {
			l.fault(e.place, p, "is given twice, first in line %d; remove one", first.line)
			continue
		}
		seen[e.key] = e.place
		f := v.Field(i)
		l.keys[p] = e.place
		k := keyIndex[join(pattern, e.key)]
		// A mapping or list that was left empty counts as not given.
		if e.value.isNull() && (k.typ.Kind() == reflect.Struct || k.typ.Kind() == reflect.Slice) {
			if k.NullIsText && e.value.text != "" {
				l.fault(e.value.place, p, "has no value, as %s means in YAML; if it is meant as text, write %s", e.value.text, written(p, e.value, `["`+e.value.text+`"]`))
			}
			if pattern == "data.columns[].transform[]" {
				f.Set(reflect.New(f.Type().Elem())) // log1p: and standardize: need no options
			}
			continue
		}
		l.given[p] = e.value.place
		l.value(p, k.Path, k, e.value, f)
	}
}

// unknown reports a key that its mapping does not have.
func (l *loader) unknown(e entry, path, pattern string, names []string) {
	allowed := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
	if near := nearest.Name(e.key, allowed); near != "" {
		l.fault(e.place, path, "unknown key `%s`: did you mean `%s`?", e.key, near)
		return
	}
	var elsewhere []string
	for _, k := range keyTable {
		if nearest.Plain(leaf(k.Path)) == nearest.Plain(e.key) && !strings.HasPrefix(k.Path, "generate") {
			there := k.Path
			if e.place.set != "" { // an override names an item of a list
				there = strings.ReplaceAll(there, "[]", "[0]")
			}
			elsewhere = append(elsewhere, "`"+there+"`")
		}
	}
	if len(elsewhere) > 0 {
		l.fault(e.place, path, "unknown key `%s` here: did you mean %s?", e.key, strings.Join(elsewhere, " or "))
		return
	}
	where := "a job file"
	if pattern != "" {
		where = pattern
	}
	l.fault(e.place, path, "unknown key `%s`; the keys of %s are %s", e.key, where, strings.Join(allowed, ", "))
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
func (l *loader) value(path, pattern string, k *Key, n *node, v reflect.Value) {
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
		if n.kind != mapNode {
			l.wrongType(path, "a mapping"+meantKind(path, k, n), n)
			return
		}
		l.mapping(path, pattern, n, v)
	case reflect.Slice:
		if n.kind != listNode {
			want := "a " + typeName(v.Type()) + ": [" + example(v.Type().Elem()) + ", …]"
			if n.kind == scalarNode && !n.isNull() {
				if list := asList(v.Type().Elem(), k, n.text); list != "" {
					want += " (write " + written(path, n, list) + ")"
				}
			}
			l.wrongType(path, want, n)
			return
		}
		if len(n.items) < k.MinItems {
			l.fault(n.place, path, "the list is empty; it needs at least %d", k.MinItems)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
		elemPattern := pattern
		if schemaType(v.Type().Elem()).Kind() == reflect.Struct {
			elemPattern += "[]"
		}
		for i, item := range n.items {
			p := fmt.Sprintf("%s[%d]", path, i)
			l.given[p] = item.place
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

func (l *loader) wrongType(path, want string, n *node) {
	hint := ""
	switch {
	case n.flow && n.kind == mapNode && strings.HasPrefix(want, "text"):
		hint = "; a text that begins with { needs quotation marks"
		if _, text, _ := strings.Cut(n.place.set, "="); text != "" {
			hint += ": " + written(path, n, strconv.Quote(text))
		}
	case strings.Contains(want, "(write "):
	case n.kind == scalarNode && n.quoted && (cleanNumber(n.text) != "?" || n.text == "true" || n.text == "false"):
		hint = " as text; remove the quotation marks"
	}
	l.fault(n.place, path, "expected %s, found %s%s", want, n.describe(), hint)
}

// scalar decodes one number, word or text and checks its range.
func (l *loader) scalar(path string, k *Key, n *node, v reflect.Value) {
	t := v.Type()
	want := article(typeName(t))
	if allowed := k.Allowed(); allowed != "" && len(k.Values) == 0 {
		want += " (" + allowed + ")"
	}
	if n.kind != scalarNode {
		l.wrongType(path, want, n)
		return
	}
	if n.isNull() {
		hint := ""
		if n.text != "" && t.Kind() == reflect.String && len(k.Values) == 0 {
			hint = fmt.Sprintf("; if %s is meant as text, write %s", n.text, written(path, n, strconv.Quote(n.text)))
		} else if n.text == "" && n.place.set != "" && t.Kind() == reflect.String && len(k.Values) == 0 && !k.Required {
			hint = "; an empty text is written " + written(path, n, `""`)
		}
		l.fault(n.place, path, "has no value; expected %s%s%s", want, allowedWords(k), hint)
		return
	}
	if t == reflect.TypeOf(Bytes(0)) {
		b, err := ParseBytes(n.text)
		if err != nil {
			l.fault(n.place, path, "%s", err.Error())
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
		if n.quoted || n.text != "true" && n.text != "false" {
			want := "true or false"
			if b := asBool(n.text); b != "" {
				want += " (write " + written(path, n, b) + ")"
			}
			l.wrongType(path, want, n)
			return
		}
		v.SetBool(n.text == "true")
	case reflect.Float64:
		x, err := strconv.ParseFloat(cleanNumber(n.text), 64)
		if n.quoted || err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
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
func (l *loader) integer(path, want string, k *Key, n *node, v reflect.Value) {
	text := cleanNumber(n.text)
	x, err := strconv.ParseFloat(text, 64)
	if n.quoted || err != nil || x != math.Trunc(x) || math.IsInf(x, 0) {
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

// cleanNumber removes underscores. It returns "?" for what Go's parsers accept as a
// number and a job file does not, such as hexadecimal digits and Inf.
func cleanNumber(s string) string {
	s = strings.ReplaceAll(s, "_", "")
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return "?"
	}
	return s
}

func (l *loader) inRange(path string, k *Key, n *node, x float64) bool {
	if k.rng.contains(x) {
		return true
	}
	l.fault(n.place, path, "%s is out of range; allowed: %s", n.text, k.Allowed())
	return false
}

func (l *loader) text(path string, k *Key, n *node, v reflect.Value) {
	if !n.quoted && looksLikeOther(n.text) {
		if len(k.Values) > 0 {
			l.fault(n.place, path, "expected a word, found %s%s", n.text, allowedWords(k))
		} else {
			l.fault(n.place, path, "expected text, found %s; if it is meant as text, write %s", n.text, written(path, n, strconv.Quote(n.text)))
		}
		return
	}
	if why := k.Refused[n.text]; why != "" {
		l.fault(n.place, path, "%s is not allowed: %s", quote(n.text), why)
		return
	}
	if len(k.Values) > 0 && !slices.Contains(k.Values, n.text) {
		l.fault(n.place, path, "%s is not allowed%s", quote(n.text), suggest(n.text, k.Values))
		return
	}
	s := n.text
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
			l.job.plainName = n.text
		case "output.model_dir":
			l.job.modelDir = l.datedTextOf(n)
		}
	}
	if k.Required && strings.TrimSpace(s) == "" {
		l.fault(n.place, path, "must not be empty")
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

// looksLikeOther reports whether YAML takes a plain scalar for something other than
// text.
func looksLikeOther(s string) bool {
	if s == "true" || s == "false" {
		return true
	}
	_, err := strconv.ParseFloat(cleanNumber(s), 64)
	return err == nil
}

// isPlain reports whether a text needs no quotation marks, neither in block nor in
// flow style.
func isPlain(s string) bool {
	if s == "" || strings.EqualFold(s, "null") || looksLikeOther(s) {
		return false
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '/'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789.-+=@*", r)) {
			// A colon is fine inside of hdfs://name:8020/path.
			if r != ':' || i == 0 || i+1 == len(s) || s[i+1] != '/' && (s[i+1] < '0' || s[i+1] > '9') {
				return false
			}
		}
	}
	return true
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
