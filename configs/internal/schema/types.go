package schema

import (
	"reflect"
	"slices"

	"aibox/configs/internal/yamltree"
)

// Custom is a type with a notation of its own: a mapping with exactly one key, or the bare name of one that
// needs no options. It is used in lists only.
type Custom interface {
	// Written is the type of a struct with the keys of the notation, as pointers.
	Written() reflect.Type
	// Plural is what several are called.
	Plural() string
	// Bare are the names that may stand alone.
	Bare() []string
	// Decode returns the value of a node and reports its faults.
	Decode(d *Decoder, path, pattern string, n *yamltree.Node) reflect.Value
	// YAML writes the value as it is read.
	YAML() string
}

// customOf is a value of a custom type, or nil for other types.
func customOf(t reflect.Type) Custom {
	c, _ := reflect.Zero(t).Interface().(Custom)
	return c
}

// writtenType is the type a user sees: pointers say only whether a value was
// given, and custom types are written as mappings.
func writtenType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if c := customOf(t); c != nil {
		return c.Written()
	}
	return t
}

func isListOfMappings(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && writtenType(t.Elem()).Kind() == reflect.Struct
}

func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Bytes]():
		return "size"
	case numberOrWordType:
		return "number or word"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		elem := writtenType(t.Elem())
		switch c := customOf(t.Elem()); {
		case c != nil:
			return "list of " + c.Plural()
		case elem.Kind() == reflect.Struct:
			return "list of mappings"
		case elem.Kind() == reflect.String:
			return "list of text"
		}
		return "list of " + typeName(elem) + "s"
	case reflect.Struct:
		return "mapping"
	}
	return "integer"
}

// Fields are the keys of a struct, "" for fields that are not keys.
func Fields(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "-" {
			names[i] = tag
		}
	}
	return names
}

func fieldByTag(v reflect.Value, tag string) reflect.Value {
	i := slices.Index(Fields(v.Type()), tag)
	if i < 0 {
		panic("schema: no key " + tag + " in " + v.Type().String())
	}
	return v.Field(i)
}

// example is an item of a list, for messages.
func example(t reflect.Type) string {
	switch c := customOf(t); {
	case c != nil:
		return c.Bare()[0]
	case t.Kind() == reflect.Struct:
		return "{…}"
	case t.Kind() == reflect.String:
		return "a"
	}
	return "64"
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

// isListOfStructs reports whether the items of a list have keys of their own, other than those of a
// custom type.
func isListOfStructs(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && customOf(t.Elem()) == nil
}
