package schema

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Document writes tables of all keys in Markdown, one for each section.
func (t *Table) Document(b *bytes.Buffer) {
	head := func() {
		b.WriteString("\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n")
	}
	b.WriteString("\n### Top level\n")
	head()
	for _, k := range t.Keys {
		if !strings.Contains(k.Path, ".") {
			pageRow(b, k, k.Path)
		}
	}
	custom := "-" // the list of a custom type whose keys come next; its table has all of them
	for _, section := range t.Keys {
		elem := section.typ
		prefix := section.Path + "."
		if elem.Kind() == reflect.Slice {
			elem, prefix = writtenType(elem.Elem()), section.Path+"[]."
		}
		if elem.Kind() != reflect.Struct || strings.HasPrefix(section.Path, custom) {
			continue
		}
		whole := section.typ.Kind() == reflect.Slice && customOf(section.typ.Elem()) != nil
		if whole {
			custom = prefix
		}
		fmt.Fprintf(b, "\n### %s\n\n%s\n", strings.TrimSuffix(prefix, "."), section.Meaning)
		head()
		for _, k := range t.Keys {
			rest, ok := strings.CutPrefix(k.Path, prefix)
			if ok && (!strings.Contains(rest, ".") || whole) {
				pageRow(b, k, rest)
			}
		}
	}
}

// pageRow prints the row of one key, called name in its table.
func pageRow(b *bytes.Buffer, k *Key, name string) {
	kind := k.Type()
	if k.Template {
		kind += ", templates"
	}
	def := ""
	switch {
	case k.Required:
		def = "required"
	case k.DefaultNote != "":
		def = k.DefaultNote
	case k.Default != "":
		def = "`" + k.Default + "`"
	}
	meaning := describe(k)
	var only []string
	for _, w := range k.When {
		if w.Only != nil {
			only = append(only, w.Note)
		} else {
			only = append(only, strings.TrimPrefix(w.Path, ".")+" "+strings.Join(w.In, ", "))
		}
	}
	if only != nil {
		meaning += " *Only with " + strings.Join(only, "; ") + ".*"
	}
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, kind, cell(def), cell(meaning))
}
