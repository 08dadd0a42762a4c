package configs

import (
	"reflect"
	"strings"

	"aibox/configs/internal/yamltree"
)

// A model keeps its job with every default written out. If somebody overrides a key of
// such a job, as with `aibox eval --set data.format=parquet`, keys that follow from the
// overridden one would stay as they were: the delimiter of CSV for files of TSV, and
// settings of text files for Parquet, where they are faults. So, of a saved job, what
// equals its default is taken as not given, and what an override makes useless is left out.

// forgetDefaults removes from the tree of a saved job the keys whose values are the
// defaults that the rest of the job gives. Lists of mappings, such as the columns, stay
// whole, and so does what is a default of the surroundings, such as the time zone, which
// is that of training, and what models of earlier versions do not have.
func (l *loader) forgetDefaults(root *yamltree.Node, data []byte) {
	plain := l.opts
	plain.Set, plain.Saved = nil, false
	saved := newLoader(l.file, &plain)
	saved.load(data)
	if len(saved.faults) > 0 || root == nil {
		return // loading reports them
	}
	var paths []string
	walk(saved.job, "", "", reflect.ValueOf(saved.job).Elem(), func(s scope, k *Key, v reflect.Value) {
		if _, given := saved.given[s.path]; !given || k.Surroundings || k.Later || strings.Contains(s.path, "[") || isListOfMappings(k.typ) {
			return
		}
		text := k.Default
		if k.DefaultFrom != nil {
			text = k.DefaultFrom(s)
		}
		if text == "" {
			return
		}
		usual := reflect.New(v.Type()).Elem()
		saved.setDefault(s.path, k, text, usual)
		if reflect.DeepEqual(v.Interface(), usual.Interface()) {
			paths = append(paths, s.path)
		}
	})
	for _, path := range paths {
		root.Remove(strings.Split(path, "."))
	}
}
