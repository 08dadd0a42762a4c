package schema

import (
	"bufio"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
)

// Show prints a struct as a file in which defaults are filled in, marked as such and explained.
// given tells whether a path was given. w keeps errors until it is flushed.
func (t *Table) Show(w *bufio.Writer, root any, given func(path string) bool) {
	p := &printer{w: w, table: t, root: root, given: given}
	p.mapping("", "", "", reflect.ValueOf(root).Elem())
}

// printer writes a struct as YAML.
type printer struct {
	w     *bufio.Writer
	table *Table
	root  any
	given func(path string) bool
}

// linef writes one line; Flush returns errors of the writer.
func (p *printer) linef(format string, args ...any) {
	fmt.Fprintf(p.w, format+"\n", args...) //nolint:errcheck // see above
}

// absent reports whether a key has no value or no effect.
func (p *printer) absent(s Scope, k *Key, v reflect.Value) bool {
	why, _ := useless(s, k, nil)
	return why != "" || v.IsZero() && k.Default == "" && k.typ.Kind() != reflect.Struct || v.Kind() == reflect.Pointer && v.IsNil()
}

func (p *printer) mapping(indent, path, pattern string, v reflect.Value) {
	for i, tag := range Fields(v.Type()) {
		if tag == "" {
			continue
		}
		k := p.table.Find(join(pattern, tag))
		f := v.Field(i)
		s := Scope{Root: p.root, Parent: v, Path: join(path, tag)}
		if p.absent(s, k, f) {
			continue
		}
		f = reflect.Indirect(f)
		switch {
		case k.typ.Kind() == reflect.Struct:
			if path == "" {
				p.linef("")
			}
			p.linef("%s%s:  # %s", indent, tag, k.Meaning)
			p.mapping(indent+"  ", s.Path, k.Path, f)
		case isListOfStructs(f.Type()) && f.Len() > 0:
			p.list(indent, tag, s.Path, k, f)
		default:
			line := indent + tag + ": " + flowValue(f)
			if !p.given(s.Path) {
				line += "  # default: " + k.Meaning
			}
			p.linef("%s", line)
		}
	}
}

// list prints a list of mappings, one per line. A comment at the end of the line
// names the keys that have their defaults; their meanings come before the list.
func (p *printer) list(indent, tag, path string, k *Key, v reflect.Value) {
	if p.given(path) {
		p.linef("%s%s:", indent, tag)
	} else {
		p.linef("%s%s:  # default: %s", indent, tag, k.Meaning)
	}
	var legend, lines []string
	explained := map[string]bool{}
	for i := range v.Len() {
		text, defaulted := p.flowMapping(fmt.Sprintf("%s[%d]", path, i), k.Path+"[]", v.Index(i))
		line := indent + "  - " + text
		if len(defaulted) > 0 {
			line += "  # default: " + strings.Join(defaulted, ", ")
		}
		lines = append(lines, line)
		for _, d := range defaulted {
			if !explained[d] {
				explained[d] = true
				legend = append(legend, fmt.Sprintf("%s  # %s: %s", indent, d, p.table.Find(k.Path+"[]."+d).Meaning))
			}
		}
	}
	for _, line := range append(legend, lines...) {
		p.linef("%s", line)
	}
}

// flowMapping prints one mapping in braces; defaulted are its keys that were
// not given.
func (p *printer) flowMapping(path, pattern string, v reflect.Value) (text string, defaulted []string) {
	var parts []string
	for i, tag := range Fields(v.Type()) {
		k := p.table.Find(join(pattern, tag))
		s := Scope{Root: p.root, Parent: v, Path: join(path, tag)}
		if p.absent(s, k, v.Field(i)) {
			continue
		}
		parts = append(parts, tag+": "+flowValue(reflect.Indirect(v.Field(i))))
		if !p.given(s.Path) {
			defaulted = append(defaulted, tag)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}", defaulted
}

// flowValue prints a scalar, or a list in brackets.
func flowValue(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Bytes:
		return x.String()
	case Custom:
		return x.YAML()
	case string:
		return yamltree.Text(x)
	case float64:
		return yamltree.FormatFloat(x)
	case bool:
		return strconv.FormatBool(x)
	}
	if v.Kind() != reflect.Slice {
		return fmt.Sprint(v.Interface())
	}
	parts := make([]string, v.Len())
	for i := range parts {
		parts[i] = flowValue(v.Index(i))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
