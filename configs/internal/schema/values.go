package schema

import "reflect"

// Values returns the values of a struct as text, by path.
func (t *Table) Values(root any) map[string]string {
	values := map[string]string{}
	t.walk(root, func(s Scope, k *Key, v reflect.Value) {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			return
		}
		v = reflect.Indirect(v)
		if v.Kind() != reflect.Struct && !isListOfStructs(v.Type()) {
			values[s.Path] = flowValue(v)
		}
	})
	return values
}
