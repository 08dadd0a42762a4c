package schema

import (
	"reflect"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
)

// Key describes one key of the job file.
type Key struct {
	// Path names the key; [] stands for any index: data.columns[].role.
	Path string
	// Meaning is one or two sentences for the user.
	Meaning string
	// Default is the value of a key that is not given, as YAML; empty when
	// there is none.
	Default string
	// DefaultFrom computes the default from the rest of the job, as YAML, and
	// DefaultNote tells the documentation how.
	DefaultFrom func(s Scope) string
	DefaultNote string
	// DefaultNeeds is a key without whose value the default is not known.
	DefaultNeeds string
	// Surroundings says that the default does not come from the job, but from the
	// name of its file or from the system.
	Surroundings bool
	// Later says that models of earlier versions do not have this key, and behave differently from
	// its default: in the saved job of such a model, the key is empty.
	Later bool
	// Range bounds numbers, or each number of a list: "[1,4096]", "(0,1]",
	// "[0,inf)".
	Range string
	// Values are the allowed words.
	Values []string
	// NullIsText marks a list for which a written null is probably meant as text.
	NullIsText bool
	// WithUnit marks text such as 10m, which the application parses: quoting a number without a
	// unit would not fix it.
	WithUnit bool
	// EmptyIsDefault says that an empty text stands for the default.
	EmptyIsDefault bool
	// Refused are words that users may expect to be allowed, each with the reason why it is not.
	Refused map[string]string
	// MinItems is the smallest length of a list that is given.
	MinItems int
	// Required keys must be given.
	Required bool
	// Template says that {{date}} and ${NAME} are expanded.
	Template bool
	// When lists the conditions for the key to have an effect. If it has none, giving it is a
	// fault, and it gets no default.
	When []When
	// Tuning marks keys that `config init` leaves commented out.
	Tuning bool
	// Whole marks a list whose default `config init` prints, as users will want to change it.
	Whole bool
	// Example is an item that `config init` prints, commented out, if the list has none.
	Example string
	// Apart marks a section that is not part of most files: `config init` leaves it out, and no message
	// suggests its keys.
	Apart bool

	typ reflect.Type
	rng interval
}

// When is a condition for a key to have an effect. Either the value of another
// key, Path, must be one of In; Path is absolute or, when it begins with a dot, a
// key of the same mapping. Or the function Only must return the empty string;
// otherwise the string that it returns says why the key has no effect.
type When struct {
	Path  string
	In    []string
	Only  func(s Scope) string
	Needs string // what Only looks at, written as Path is; unless all of it is sound, the condition counts as met
	Note  string // what Only requires, for the documentation
}

// Scope is what defaults and conditions may look at.
type Scope struct {
	Root   any           // the struct of the whole file
	Parent reflect.Value // the struct that holds the key
	Path   string        // of the key, with indices
}

// pathOf is the path of a condition: that of a key of the same mapping, where it begins with a dot.
func (s Scope) pathOf(condition string) string {
	if name, ok := strings.CutPrefix(condition, "."); ok {
		return join(parentPath(s.Path), name)
	}
	return condition
}

// Index is the last list index in the path.
func (s Scope) Index() int {
	open, end := strings.LastIndexByte(s.Path, '['), strings.LastIndexByte(s.Path, ']')
	i, err := strconv.Atoi(s.Path[open+1 : end])
	if err != nil {
		panic("schema: no index in " + s.Path)
	}
	return i
}

// Table holds the keys in the order in which they are printed and filled in, which is that of the
// fields of the struct that a file is read into.
type Table struct {
	Keys  []*Key
	index map[string]*Key
}

// NewTable returns the table of the keys of a struct, which the sections describe: each key once.
func NewTable(root reflect.Type, sections ...[]Key) *Table {
	t := &Table{index: map[string]*Key{}}
	for _, section := range sections {
		for i := range section {
			k := &section[i]
			if t.index[k.Path] != nil {
				panic("schema: key described twice: " + k.Path)
			}
			t.index[k.Path] = k
		}
	}
	t.visit(root, "")
	for p, k := range t.index {
		if k.typ == nil {
			panic("schema: description of a key that does not exist: " + p)
		}
	}
	return t
}

// visit adds the keys of a struct and of all structs below it.
func (t *Table) visit(mapping reflect.Type, pattern string) {
	for i, name := range Fields(mapping) {
		if name == "" {
			continue
		}
		p := join(pattern, name)
		k := t.index[p]
		if k == nil {
			panic("schema: key not described: " + p)
		}
		k.typ = writtenType(mapping.Field(i).Type)
		k.rng = parseInterval(k.Range)
		t.Keys = append(t.Keys, k)
		switch {
		case k.typ.Kind() == reflect.Struct:
			t.visit(k.typ, p)
		case isListOfMappings(k.typ):
			t.visit(writtenType(k.typ.Elem()), p+"[]")
		}
	}
}

// Find returns the key of a path without indices, or nil.
func (t *Table) Find(path string) *Key { return t.index[path] }

// Type says in words what the key holds.
func (k *Key) Type() string { return typeName(k.typ) }

// Allowed says in words which values are allowed; empty when all of the type
// are.
func (k *Key) Allowed() string {
	if k.typ == numberOrWordType {
		number := strings.TrimSpace("a number " + k.rng.format(yamltree.FormatFloat))
		return number + ", " + strings.Join(k.Values, ", ")
	}
	if len(k.Values) > 0 {
		return strings.Join(k.Values, ", ")
	}
	return k.rng.format(func(x float64) string {
		if k.typ == reflect.TypeFor[Bytes]() {
			return Bytes(x).String()
		}
		return yamltree.FormatFloat(x)
	})
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// leaf is the last part of a path.
func leaf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
