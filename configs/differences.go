package configs

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
)

// Differences returns the paths of the keys in which two jobs differ, sorted. Keys
// without effect, and how a value was written, do not count.
func (j *Job) Differences(other *Job) ([]string, error) {
	a, err := j.values()
	if err != nil {
		return nil, err
	}
	b, err := other.values()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range slices.Sorted(maps.Keys(a)) {
		if text, ok := b[p]; !ok || text != a[p] {
			paths = append(paths, p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// values returns the job's values as text, by path. It prints the job and reads it back
// first, so that all jobs with the same values have the same ones.
func (j *Job) values() (map[string]string, error) {
	var shown bytes.Buffer
	if err := j.Show(&shown); err != nil {
		return nil, err
	}
	same, err := Parse(j.file, shown.Bytes(), LoadOptions{Saved: true})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	walk(same, "", "", reflect.ValueOf(same).Elem(), func(s scope, k *Key, v reflect.Value) {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			return
		}
		v = reflect.Indirect(v)
		list := v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && v.Type().Elem() != reflect.TypeOf(Transform{})
		if v.Kind() != reflect.Struct && !list {
			values[s.path] = flowValue(v)
		}
	})
	return values, nil
}
