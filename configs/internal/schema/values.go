package schema

import "reflect"

// Values returns the values of a struct as text, by path, of the keys that have an effect.
func (t *Table) Values(root any) map[string]string {
	values := map[string]string{}
	t.walk(root, func(s Scope, k *Key, v reflect.Value) {
		if why, _ := useless(s, k, nil); why != "" || v.Kind() == reflect.Pointer && v.IsNil() {
			return
		}
		v = reflect.Indirect(v)
		if v.Kind() != reflect.Struct && !isListOfStructs(v.Type()) {
			values[s.Path] = flowValue(v)
		}
	})
	return values
}
