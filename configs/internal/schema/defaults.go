package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"aibox/configs/internal/yamltree"
)

// walk visits every key of the struct of a file, in the order of the table. It visits
// the elements of a list one by one, and does not descend into optional mappings
// that are absent. visit gets the key's value to read or set; a mapping or list is
// visited before its content.
func (t *Table) walk(root any, visit func(s Scope, k *Key, v reflect.Value)) {
	t.walkBelow(root, "", "", reflect.ValueOf(root).Elem(), visit)
}

// walkBelow visits the keys of the struct v, which is at a path.
func (t *Table) walkBelow(root any, path, pattern string, v reflect.Value, visit func(s Scope, k *Key, v reflect.Value)) {
	for i, name := range Fields(v.Type()) {
		if name == "" {
			continue
		}
		p := join(path, name)
		k := t.Find(join(pattern, name))
		f := v.Field(i)
		visit(Scope{Root: root, Parent: v, Path: p}, k, f)
		if f.Kind() == reflect.Pointer {
			if f.IsNil() || f.Type().Elem().Kind() != reflect.Struct {
				continue
			}
			f = f.Elem()
		}
		switch {
		case f.Kind() == reflect.Struct:
			t.walkBelow(root, p, k.Path, f, visit)
		case isListOfStructs(f.Type()):
			for n := range f.Len() {
				t.walkBelow(root, fmt.Sprintf("%s[%d]", p, n), k.Path+"[]", f.Index(n), visit)
			}
		}
	}
}

// Complete fills in what was not given, and reports missing keys and keys without effect. A key of
// the file that has no effect because of an override is dropped instead, so that trying another
// kind of model does not require removing the keys of the first.
func (d *Decoder) Complete() { d.table.walk(d.root, d.complete) }

// CompleteBelow is Complete for the keys of the mapping at a path alone; v is a pointer to its struct.
func (d *Decoder) CompleteBelow(path string, v any) {
	d.table.walkBelow(d.root, path, path, reflect.ValueOf(v).Elem(), d.complete)
}

// complete is Complete for one key.
func (d *Decoder) complete(s Scope, k *Key, v reflect.Value) {
	_, given := d.Given[s.Path]
	if given && k.EmptyIsDefault && v.String() == "" && !d.bad[s.Path] {
		delete(d.Given, s.Path)
		given = false
	}
	if given {
		why, cause := useless(s, k, d)
		switch {
		case why == "":
			return
		case d.Keys[s.Path].Set != "" || !d.Saved && d.Given[cause].Set == "":
			d.Fault(d.Keys[s.Path], s.Path, "%s; remove it", why)
			return
		case !d.Saved:
			d.Notes = append(d.Notes, fmt.Sprintf("%s of the job file is ignored: it %s (%s)", s.Path, why, d.Given[cause].Set))
		}
		v.SetZero()
		delete(d.Given, s.Path)
		return
	}
	if why, _ := useless(s, k, d); why != "" || !v.IsZero() {
		return // it was set by the default of the list around it, or it has no effect
	}
	if k.Later && d.Saved {
		return
	}
	if k.Required {
		missing := !d.bad[s.Path] && !d.bad[parentPath(s.Path)] // else that, or what it is missing from, was reported
		d.markBad(s.Path)
		if missing {
			d.FaultAt(s.Path, "is missing; expected %s%s", article(typeName(k.typ)), missingHint(k))
		}
		return
	}
	if k.DefaultNeeds != "" && !d.Sound(k.DefaultNeeds) {
		d.markBad(s.Path)
	}
	if text := k.defaultIn(s); text != "" {
		d.setDefault(s.Path, k, text, v)
	}
}

func missingHint(k *Key) string {
	if len(k.Values) > 0 {
		return ": one of " + strings.Join(k.Values, ", ")
	}
	return ""
}

// defaultIn is the default of a key as YAML, or "".
func (k *Key) defaultIn(s Scope) string {
	if k.DefaultFrom != nil {
		return k.DefaultFrom(s)
	}
	return k.Default
}

// setDefault decodes a default as if it had been written in the file. A faulty
// default is a bug of this package, unless it was computed from a faulty job file.
func (d *Decoder) setDefault(path string, k *Key, text string, v reflect.Value) {
	sub := d.table.NewDecoder(d.root)
	n, faults := yamltree.Parse(text, yamltree.Place{})
	if n == nil || len(faults) > 0 {
		panic(fmt.Sprintf("schema: default %s of %s: %v", text, path, faults))
	}
	sub.value(path, k.Path, k, n, v)
	if len(sub.Faults) > 0 && len(d.Faults) == 0 {
		panic(fmt.Sprintf("schema: default %s of %s: %v", text, path, sub.Faults))
	}
}

// useless says why the key has no effect in this job, or "", and which key is the cause, if it is a
// single one. Conditions on values that are faulty according to the decoder count as met; with a
// nil decoder, no value is faulty.
func useless(s Scope, k *Key, d *Decoder) (why, cause string) {
	for _, w := range k.When {
		if w.Only != nil {
			if w.Needs != "" && d != nil && !d.Sound(s.pathOf(w.Needs)) {
				continue
			}
			if why := w.Only(s); why != "" {
				return "has no effect: " + why, ""
			}
			continue
		}
		condition, cause := strings.TrimPrefix(w.Path, "."), s.pathOf(w.Path)
		if d != nil && d.bad[cause] {
			continue
		}
		actual := ""
		if condition != w.Path {
			actual = fieldByTag(s.Parent, condition).String()
		} else {
			actual = valueAt(s.Root, condition)
		}
		if actual != "" && !slices.Contains(w.In, actual) {
			return fmt.Sprintf("has no effect with %s: %s, only with %s", condition, actual, strings.Join(w.In, ", ")), cause
		}
	}
	return "", ""
}

// valueAt returns the word at the path of a key without indices.
func valueAt(root any, path string) string {
	v := reflect.ValueOf(root).Elem()
	for part := range strings.SplitSeq(path, ".") {
		v = fieldByTag(v, part)
	}
	return v.String()
}

// Defaulted returns the given paths whose values equal the defaults that follow from the rest of
// the file. It leaves out lists of mappings and their parts, keys whose defaults come from the
// surroundings, such as the time zone, and keys that files of earlier versions do not have.
func (d *Decoder) Defaulted() []string {
	var paths []string
	d.table.walk(d.root, func(s Scope, k *Key, v reflect.Value) {
		if _, given := d.Given[s.Path]; !given || k.Surroundings || k.Later || strings.Contains(s.Path, "[") || isListOfMappings(k.typ) {
			return
		}
		text := k.defaultIn(s)
		if text == "" {
			return
		}
		usual := reflect.New(v.Type()).Elem()
		d.setDefault(s.Path, k, text, usual)
		if reflect.DeepEqual(v.Interface(), usual.Interface()) {
			paths = append(paths, s.Path)
		}
	})
	return paths
}
