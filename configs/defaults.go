package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
)

// walk visits every key of the job below v, in the order of the table. It visits
// the elements of a list one by one, and does not descend into optional mappings
// that are absent. visit gets the key's value to read or set; a mapping or list is
// visited before its content.
func walk(job *Job, path, pattern string, v reflect.Value, visit func(s scope, k *Key, v reflect.Value)) {
	t := v.Type()
	for i := 0; i < t.NumField(); i++ {
		tag := t.Field(i).Tag.Get("yaml")
		if tag == "-" || tag == "" {
			continue
		}
		p := join(path, tag)
		k := keyIndex[join(pattern, tag)]
		f := v.Field(i)
		visit(scope{job: job, parent: v, path: p}, k, f)
		if f.Kind() == reflect.Pointer {
			if f.IsNil() || f.Type().Elem().Kind() != reflect.Struct {
				continue
			}
			f = f.Elem()
		}
		switch f.Kind() {
		case reflect.Struct:
			walk(job, p, k.Path, f, visit)
		case reflect.Slice:
			elem := f.Type().Elem()
			if elem.Kind() != reflect.Struct || elem == reflect.TypeOf(Transform{}) {
				continue
			}
			for n := range f.Len() {
				walk(job, fmt.Sprintf("%s[%d]", p, n), k.Path+"[]", f.Index(n), visit)
			}
		}
	}
}

// complete fills in what was not given, and reports what is missing and what
// was given without having an effect. A key of the file that has none because of an override is
// left out instead: whoever tries another kind of model need not remove the keys of the first.
func (l *loader) complete() {
	walk(l.job, "", "", reflect.ValueOf(l.job).Elem(), func(s scope, k *Key, v reflect.Value) {
		_, given := l.given[s.path]
		if given {
			why, cause := l.useless(s, k)
			switch {
			case why == "":
				return
			case l.keys[s.path].Set != "" || !l.opts.Saved && l.given[cause].Set == "":
				l.fault(l.keys[s.path], s.path, "%s; remove it", why)
				return
			case !l.opts.Saved:
				l.job.notes = append(l.job.notes, fmt.Sprintf("%s of the job file is left out: it %s (%s)", s.path, why, l.given[cause].Set))
			}
			v.SetZero()
			delete(l.given, s.path)
			return
		}
		if why, _ := l.useless(s, k); why != "" || !v.IsZero() {
			return // it was set by the default of the list around it, or it has no effect
		}
		if k.Later && l.opts.Saved {
			return
		}
		if k.Required {
			if !l.bad[s.path] {
				l.bad[s.path] = true
				l.faultAt(s.path, "is missing; expected %s%s", article(typeName(k.typ)), missingHint(k))
			}
			return
		}
		if k.Path == "data.columns[].role" && !l.sound("data.format") {
			l.bad[s.path] = true // it depends on the format, which is faulty
		}
		text := k.Default
		if k.DefaultFrom != nil {
			text = k.DefaultFrom(s)
		}
		if text == "" {
			return
		}
		l.setDefault(s.path, k, text, v)
	})
}

func missingHint(k *Key) string {
	if len(k.Values) > 0 {
		return ": one of " + strings.Join(k.Values, ", ")
	}
	return ""
}

// setDefault decodes a default as if it had been written in the file. A faulty
// default is a bug of this package, unless it was computed from a faulty job file.
func (l *loader) setDefault(path string, k *Key, text string, v reflect.Value) {
	sub := &loader{raw: true, file: "default of " + k.Path, opts: l.opts, job: l.job, given: map[string]yamltree.Place{}, keys: map[string]yamltree.Place{}, bad: map[string]bool{}}
	n, faults := yamltree.Parse(text, yamltree.Place{})
	if n == nil || len(faults) > 0 {
		panic(fmt.Sprintf("configs: default %s of %s: %v", text, path, faults))
	}
	sub.value(path, k.Path, k, n, v)
	if len(sub.faults) > 0 && len(l.faults) == 0 {
		panic(fmt.Sprintf("configs: default %s of %s: %v", text, path, sub.faults))
	}
}

// useless says why the key has no effect in this job, or "", and which key is the cause, if a
// single one is.
func (l *loader) useless(s scope, k *Key) (why, cause string) { return useless(s, k, l.bad) }

// useless is that of a loader with these faulty values. Conditions on them count as met.
func useless(s scope, k *Key, bad map[string]bool) (why, cause string) {
	for _, w := range k.When {
		if w.Only != nil {
			if why := w.Only(s); why != "" {
				return "has no effect: " + why, ""
			}
			continue
		}
		var actual, condition string
		if name, ok := strings.CutPrefix(w.Path, "."); ok {
			condition, cause = name, join(s.path[:strings.LastIndexByte(s.path, '.')], name)
			if bad[cause] {
				continue
			}
			actual = fieldByTag(s.parent, name).String()
		} else {
			condition, cause = w.Path, w.Path
			if bad[cause] {
				continue
			}
			v := reflect.ValueOf(s.job).Elem()
			for _, part := range strings.Split(w.Path, ".") {
				v = fieldByTag(v, part)
			}
			actual = v.String()
		}
		if actual != "" && !slices.Contains(w.In, actual) {
			return fmt.Sprintf("has no effect with %s: %s, only with %s", condition, actual, strings.Join(w.In, ", ")), cause
		}
	}
	return "", ""
}

func fieldByTag(v reflect.Value, tag string) reflect.Value {
	i := slices.Index(fieldNames(v.Type()), tag)
	if i < 0 {
		panic("configs: no key " + tag + " in " + v.Type().String())
	}
	return v.Field(i)
}

// lastIndex is the last list index in a path.
func lastIndex(path string) int {
	open, end := strings.LastIndexByte(path, '['), strings.LastIndexByte(path, ']')
	i, err := strconv.Atoi(path[open+1 : end])
	if err != nil {
		panic("configs: no index in " + path)
	}
	return i
}
