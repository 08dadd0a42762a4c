package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
	"aibox/internal/nearest"
)

// Decoder is the state of decoding one file into a struct.
type Decoder struct {
	// Saved says that the file was written with every default in it.
	Saved bool
	// Expand replaces the templates in the text of a key and reports those that are wrong. Without
	// it texts are taken as they are.
	Expand func(path string, n *yamltree.Node) (text string, ok bool)

	Faults []yamltree.Fault
	Notes  []string                  // sentences about what overrides have put out of effect
	Given  map[string]yamltree.Place // where each given path was written: the value's place
	Keys   map[string]yamltree.Place // where the key of each given path was written

	table   *Table
	root    any             // pointer to the struct of the whole file
	bad     map[string]bool // paths whose value is faulty, or required and missing
	unsound map[string]bool // those, and the paths of what they are in
}

// NewDecoder returns a decoder of a file into a struct, to which root points.
func (t *Table) NewDecoder(root any) *Decoder {
	return &Decoder{table: t, root: root, Given: map[string]yamltree.Place{}, Keys: map[string]yamltree.Place{}, bad: map[string]bool{}, unsound: map[string]bool{}}
}

// Decode decodes a mapping into the struct of the whole file.
func (d *Decoder) Decode(n *yamltree.Node) { d.Mapping("", "", n, reflect.ValueOf(d.root).Elem()) }

// Mapping decodes the keys of n into the struct v.
func (d *Decoder) Mapping(path, pattern string, n *yamltree.Node, v reflect.Value) {
	seen := map[string]yamltree.Place{}
	names := Fields(v.Type())
	for _, e := range n.Entries {
		p := join(path, e.Key)
		if path == "" && strings.HasPrefix(e.Key, "x-") {
			continue // a place for anchors
		}
		i := slices.Index(names, e.Key)
		if i < 0 || e.Key == "" { // no key is empty, but fields that are not keys have no name
			d.unknown(e, p, pattern, names)
			continue
		}
		if first, dup := seen[e.Key]; dup {
			d.Fault(e.Place, p, "is given twice, first in line %d; remove one", first.Line)
			continue
		}
		seen[e.Key] = e.Place
		f := v.Field(i)
		d.Keys[p] = e.Place
		k := d.table.Find(join(pattern, e.Key))
		// A mapping or list that was left empty counts as not given.
		if e.Value.IsNull() && (k.typ.Kind() == reflect.Struct || k.typ.Kind() == reflect.Slice) {
			if k.NullIsText && e.Value.Text != "" {
				d.Fault(e.Value.Place, p, "has no value, as %s means in YAML; if it is meant as text, write %s", e.Value.Text, Instead(p, e.Value.Place, `["`+e.Value.Text+`"]`))
			}
			continue
		}
		d.Given[p] = e.Value.Place
		d.value(p, k.Path, k, e.Value, f)
	}
}

// unknown reports a key that its mapping does not have.
func (d *Decoder) unknown(e yamltree.Entry, path, pattern string, names []string) {
	allowed := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
	if near := nearest.Name(e.Key, allowed); near != "" {
		d.Fault(e.Place, path, "unknown key `%s`: did you mean `%s`?", e.Key, near)
		return
	}
	var elsewhere []string
	for _, k := range d.table.Keys {
		section, _, _ := strings.Cut(strings.Replace(k.Path, "[]", ".", 1), ".")
		if nearest.Plain(leaf(k.Path)) == nearest.Plain(e.Key) && !d.table.Find(section).Apart {
			there := k.Path
			if e.Set != "" { // an override names an item of a list
				there = strings.ReplaceAll(there, "[]", "[0]")
			}
			elsewhere = append(elsewhere, "`"+there+"`")
		}
	}
	if len(elsewhere) > 0 {
		d.Fault(e.Place, path, "unknown key `%s` here: did you mean %s?", e.Key, strings.Join(elsewhere, " or "))
		return
	}
	where := "a job file"
	if pattern != "" {
		where = pattern
	}
	d.Fault(e.Place, path, "unknown key `%s`; the keys of %s are %s", e.Key, where, strings.Join(allowed, ", "))
}

// value decodes n into v, which belongs to key k.
func (d *Decoder) value(path, pattern string, k *Key, n *yamltree.Node, v reflect.Value) {
	if c := customOf(v.Type()); c != nil {
		v.Set(c.Decode(d, path, pattern, n))
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		if n.Kind != yamltree.Mapping {
			d.WrongType(path, "a mapping"+d.meantKind(path, k, n), n)
			return
		}
		d.Mapping(path, pattern, n, v)
	case reflect.Slice:
		if n.Kind != yamltree.List {
			want := "a " + typeName(v.Type()) + ": [" + example(v.Type().Elem()) + ", …]"
			if n.Kind == yamltree.Scalar && !n.IsNull() {
				if list := asList(v.Type().Elem(), k, n.Text); list != "" {
					want += " (write " + Instead(path, n.Place, list) + ")"
				}
			}
			d.WrongType(path, want, n)
			return
		}
		if len(n.Items) < k.MinItems {
			d.Fault(n.Place, path, "the list is empty; it needs at least %d", k.MinItems)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
		elemPattern := pattern
		if writtenType(v.Type().Elem()).Kind() == reflect.Struct {
			elemPattern += "[]"
		}
		for i, item := range n.Items {
			p := fmt.Sprintf("%s[%d]", path, i)
			d.Given[p] = item.Place
			d.value(p, elemPattern, k, item, v.Index(i))
			if d.bad[p] {
				d.bad[path] = true
			}
		}
	default:
		d.scalar(path, k, n, v)
	}
}

func (d *Decoder) WrongType(path, want string, n *yamltree.Node) {
	hint := ""
	switch {
	case n.Flow && n.Kind == yamltree.Mapping && strings.HasPrefix(want, "text"):
		hint = "; a text that begins with { needs quotation marks"
		if _, text, _ := strings.Cut(n.Set, "="); text != "" {
			hint += ": " + Instead(path, n.Place, strconv.Quote(text))
		}
	case strings.Contains(want, "(write "):
	case n.Kind == yamltree.Scalar && n.Quoted && (yamltree.CleanNumber(n.Text) != "?" || n.Text == "true" || n.Text == "false"):
		hint = " as text; remove the quotation marks"
	}
	d.Fault(n.Place, path, "expected %s, found %s%s", want, n.Describe(), hint)
}
