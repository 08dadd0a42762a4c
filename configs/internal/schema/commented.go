package schema

import (
	"bufio"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Commented prints a struct as a file to start from: an explanation before every key, and keys that
// few users change commented out. given reports whether a path was given. w keeps errors until it
// is flushed.
func (t *Table) Commented(w *bufio.Writer, root any, given func(path string) bool) {
	p := &commenter{printer{w: w, table: t, root: root, given: given}}
	p.mapping("", "", "", reflect.ValueOf(root).Elem())
}

// commenter prints every key with an explanation in front of it.
type commenter struct{ printer }

// mapping prints the keys of v, with lead in front of each line: lead is spaces
// and, if all of v is commented out, a #. An explanation has a space after its #,
// and a key has none, so that removing the # of a key puts it into effect.
func (p *commenter) mapping(lead, path, pattern string, v reflect.Value) {
	for i, tag := range Fields(v.Type()) {
		if tag == "" {
			continue
		}
		k := p.table.Find(join(pattern, tag))
		if k.Apart {
			continue
		}
		f := v.Field(i)
		s := Scope{Root: p.root, Parent: v, Path: join(path, tag)}
		// An optional mapping is shown with its defaults, commented out.
		why, _ := useless(s, k, nil)
		optional := why == "" && f.Kind() == reflect.Pointer && f.IsNil() && k.typ.Kind() == reflect.Struct
		if p.absent(s, k, f) && !optional {
			continue
		}
		if optional {
			f = reflect.New(f.Type().Elem())
			p.table.walkBelow(p.root, s.Path, k.Path, f.Elem(), func(s Scope, k *Key, v reflect.Value) {
				text := k.defaultIn(s)
				if why, _ := useless(s, k, nil); why == "" && text != "" {
					p.table.NewDecoder(p.root).setDefault(s.Path, k, text, v)
				}
			})
		}
		f = reflect.Indirect(f)
		if path == "" {
			p.linef("")
		}
		Comment(p.w, lead, describe(k))
		keyLead := lead
		if k.Tuning && !p.given(s.Path) && !strings.Contains(lead, "#") {
			keyLead += "#"
		}
		switch {
		case k.typ.Kind() == reflect.Struct:
			p.linef("%s%s:", keyLead, tag)
			p.mapping(keyLead+"  ", s.Path, k.Path, f)
		case isListOfStructs(f.Type()):
			p.list(keyLead, tag, s.Path, k, f)
		default:
			p.linef("%s%s: %s", keyLead, tag, flowValue(f))
		}
	}
}

// list prints a list of mappings, without the keys that have their defaults. The
// meanings of the keys come before the list.
func (p *commenter) list(lead, tag, path string, k *Key, v reflect.Value) {
	var lines []string
	for i := range v.Len() {
		elem := v.Index(i)
		var parts []string
		for n, name := range Fields(elem.Type()) {
			at := fmt.Sprintf("%s[%d].%s", path, i, name)
			if p.given(at) || k.Whole {
				parts = append(parts, name+": "+flowValue(reflect.Indirect(elem.Field(n))))
			}
		}
		if parts != nil {
			lines = append(lines, lead+"  - {"+strings.Join(parts, ", ")+"}")
		}
	}
	for _, sub := range p.table.Keys {
		name, ok := strings.CutPrefix(sub.Path, k.Path+"[].")
		if ok && !strings.Contains(name, ".") && !p.unused(sub) {
			Comment(p.w, lead, "- "+name+": "+describe(sub))
		}
	}
	if lines == nil {
		p.linef("%s#%s: [%s]", lead, tag, k.Example)
		return
	}
	p.linef("%s%s:", lead, tag)
	for _, line := range lines {
		p.linef("%s", line)
	}
}

// unused reports whether no item of a list uses the key, because of a key outside of the list.
func (p *commenter) unused(k *Key) bool {
	return slices.ContainsFunc(k.When, func(w When) bool {
		return w.Path != "" && w.Path[0] != '.' && !slices.Contains(w.In, valueAt(p.root, w.Path))
	})
}

// describe returns the meaning of a key and the values that it may have.
func describe(k *Key) string {
	allowed := k.Allowed()
	if allowed == "" || len(k.Values) > 0 && strings.Contains(k.Meaning, k.Values[len(k.Values)-1]) {
		return k.Meaning
	}
	return k.Meaning + " Allowed: " + allowed + "."
}

// Comment prints a comment in lines of about 80 columns, after lead.
func Comment(w *bufio.Writer, lead, text string) {
	line, hang := "", ""
	if strings.HasPrefix(text, "- ") {
		hang = "  " // further lines of an item are indented to its text
	}
	flush := func() { fmt.Fprintf(w, "%s# %s\n", lead, line) } //nolint:errcheck // w keeps it
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		word := words[i]
		for strings.Count(word, "{{") > strings.Count(word, "}}") && i+1 < len(words) {
			i++ // {{date -1d}} is one word
			word += " " + words[i]
		}
		switch {
		case line == "":
			line = word
		case len(lead)+2+len(line)+1+len(word) > 80:
			flush()
			line = hang + word
		default:
			line += " " + word
		}
	}
	flush()
}
