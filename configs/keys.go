package configs

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
)

// Key describes one key of the job file. The table of all of them, Keys, is
// what checking, `config show`, `config init` and docs/job-file.md come from.
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
	DefaultFrom func(s scope) string
	DefaultNote string
	// Surroundings says that the default does not come from the job, but from the
	// name of its file or from the system.
	Surroundings bool
	// Later says that models of earlier versions have no such key, and something else than the
	// default in its place: in the job that such a model keeps, the key is empty.
	Later bool
	// Range bounds numbers, or each number of a list: "[1,4096]", "(0,1]",
	// "[0,inf)".
	Range string
	// Values are the allowed words.
	Values []string
	// NullIsText marks a list for which a written null is probably meant as text.
	NullIsText bool
	// Refused are words that one may take for allowed, each with the reason why it is not.
	Refused map[string]string
	// MinItems is the smallest length of a list that is given.
	MinItems int
	// Required keys must be given.
	Required bool
	// Template says that {{date}} and ${NAME} are expanded.
	Template bool
	// When lists what must hold for the key to have an effect; where it has
	// none, giving it is a fault and it gets no default.
	When []When
	// Tuning marks keys that `config init` leaves commented out.
	Tuning bool

	typ reflect.Type
	rng interval
}

// When is a condition for a key to have an effect. Either the value of another
// key, Path, must be one of In; Path is absolute or, when it begins with a dot, a
// key of the same mapping. Or the function Only must return the empty string;
// otherwise the string that it returns says why the key has no effect.
type When struct {
	Path string
	In   []string
	Only func(s scope) string
	Note string // what Only requires, for the documentation
}

// scope is what defaults and conditions may look at.
type scope struct {
	job    *Job
	parent reflect.Value // the struct that holds the key
	path   string        // of the key, with indices
}

// keyTable holds the keys in the order in which they are printed and filled in.
var keyTable, keyIndex = buildKeys()

// Keys returns the description of every key of the job file, in the order of
// the structs in job.go. The caller must not change them.
func Keys() []*Key { return keyTable }

// Type says in words what the key holds.
func (k *Key) Type() string { return typeName(k.typ) }

// Allowed says in words which values are allowed; empty when all of the type
// are.
func (k *Key) Allowed() string {
	if k.typ == numberOrWordType {
		return "a number, " + strings.Join(k.Values, ", ")
	}
	if len(k.Values) > 0 {
		return strings.Join(k.Values, ", ")
	}
	return k.rng.format(func(x float64) string {
		if k.typ == reflect.TypeOf(Bytes(0)) {
			return Bytes(x).String()
		}
		return yamltree.FormatFloat(x)
	})
}

func buildKeys() ([]*Key, map[string]*Key) {
	index := map[string]*Key{}
	for _, section := range [][]Key{topKeys, dataKeys, columnKeys, modelKeys, optimizerKeys, linearKeys(), trainingKeys, tableKeys, engineKeys, runKeys, generateKeys} {
		for i := range section {
			k := &section[i]
			if index[k.Path] != nil {
				panic("configs: key described twice: " + k.Path)
			}
			index[k.Path] = k
		}
	}
	// The structs give the order and the types; both sides must be complete.
	var table []*Key
	var visit func(t reflect.Type, pattern string)
	visit = func(t reflect.Type, pattern string) {
		for i := 0; i < t.NumField(); i++ {
			tag := t.Field(i).Tag.Get("yaml")
			if tag == "-" || tag == "" {
				continue
			}
			p := join(pattern, tag)
			k := index[p]
			if k == nil {
				panic("configs: key not described: " + p)
			}
			k.typ = schemaType(t.Field(i).Type)
			k.rng = parseInterval(k.Range)
			table = append(table, k)
			switch elem := k.typ; {
			case elem.Kind() == reflect.Struct:
				visit(elem, p)
			case elem.Kind() == reflect.Slice && schemaType(elem.Elem()).Kind() == reflect.Struct:
				visit(schemaType(elem.Elem()), p+"[]")
			}
		}
	}
	visit(reflect.TypeOf(Job{}), "")
	if len(table) != len(index) {
		for p, k := range index {
			if k.typ == nil {
				panic("configs: description of a key that does not exist: " + p)
			}
		}
	}
	return table, index
}

// schemaType is the type a user sees: pointers say only whether a value was
// given, and a transform is written as a mapping.
func schemaType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeOf(Transform{}) {
		return reflect.TypeOf(transformKeys{})
	}
	return t
}

func isListOfMappings(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && schemaType(t.Elem()).Kind() == reflect.Struct
}

func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeOf(Bytes(0)):
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
		elem := schemaType(t.Elem())
		switch {
		case elem == reflect.TypeOf(transformKeys{}):
			return "list of transforms"
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

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// leaf is the last part of a path.
func leaf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// interval is a range of numbers.
type interval struct {
	min, max         float64
	openMin, openMax bool
	given            bool
}

func parseInterval(s string) interval {
	if s == "" {
		return interval{}
	}
	low, high, ok := strings.Cut(s[1:len(s)-1], ",")
	iv := interval{openMin: s[0] == '(', openMax: s[len(s)-1] == ')', given: true}
	var err1, err2 error
	iv.min, err1 = strconv.ParseFloat(low, 64)
	iv.max, err2 = strconv.ParseFloat(high, 64)
	if !ok || err1 != nil || err2 != nil {
		panic("configs: bad range " + s)
	}
	return iv
}

func (iv interval) contains(x float64) bool {
	if !iv.given {
		return true
	}
	return (x > iv.min || x == iv.min && !iv.openMin) && (x < iv.max || x == iv.max && !iv.openMax)
}

// format says in words what is in the interval; number prints its ends. It
// returns "" for an interval of all finite numbers.
func (iv interval) format(number func(float64) string) string {
	if !iv.given || math.IsInf(iv.min, -1) {
		return ""
	}
	low, high := number(iv.min), ""
	if !math.IsInf(iv.max, 1) {
		high = number(iv.max)
	}
	switch {
	case math.IsInf(iv.max, 1) && iv.openMin:
		return "more than " + low
	case math.IsInf(iv.max, 1):
		return low + " or more"
	case !iv.openMin && !iv.openMax:
		return "from " + low + " to " + high
	}
	word := func(open bool, yes, no string) string {
		if open {
			return yes
		}
		return no
	}
	return fmt.Sprintf("%s %s, %s %s", word(iv.openMin, "more than", "at least"), low, word(iv.openMax, "less than", "at most"), high)
}
