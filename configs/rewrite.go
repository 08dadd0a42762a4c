package configs

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// written is how value is written in the place of n: as YAML in the file, and as a
// whole flag, quoted for the shell, where n came from an override. Whoever does as
// a message says must not get the next one.
func written(path string, n *node, value string) string {
	if n.place.set == "" {
		return value
	}
	return "--set '" + strings.ReplaceAll(path+"="+value, "'", `'\''`) + "'"
}

// asList is the list that was probably meant by a single value, in YAML; "" where
// that is no list of what k takes.
func asList(elem reflect.Type, k *Key, text string) string {
	items := []string{text}
	if !strings.ContainsAny(text, "{[") { // else the comma may be part of a pattern
		items = strings.Split(text, ",")
	}
	for i, item := range items {
		item = strings.TrimSpace(item)
		switch {
		case item == "":
			return ""
		case elem == reflect.TypeOf(Transform{}):
			if item != "log1p" && item != "standardize" { // others need options
				return ""
			}
		case elem.Kind() == reflect.String:
			if len(k.Values) > 0 && !slices.Contains(k.Values, item) {
				return ""
			}
			item = yamlText(item)
		case elem.Kind() == reflect.Int || elem.Kind() == reflect.Int64:
			if x, err := strconv.ParseInt(item, 10, 64); err != nil || !k.rng.contains(float64(x)) {
				return ""
			}
		case elem.Kind() == reflect.Float64:
			if _, err := strconv.ParseFloat(cleanNumber(item), 64); err != nil {
				return ""
			}
		default:
			return ""
		}
		items[i] = item
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// asBool is the word that was probably meant where true or false is wanted.
func asBool(text string) string {
	switch strings.ToLower(text) {
	case "yes", "on", "1", "y", "t", "true":
		return "true"
	case "no", "off", "0", "n", "f", "false":
		return "false"
	}
	return ""
}

// meantKind ends the message about a word where a mapping is wanted, if the word is
// a kind that the mapping has: dense: adam is dense: {kind: adam}.
func meantKind(path string, k *Key, n *node) string {
	kind := keyIndex[join(k.Path, "kind")]
	if kind == nil || n.kind != scalarNode || !slices.Contains(kind.Values, n.text) {
		return ""
	}
	if n.place.set == "" {
		return " (write {kind: " + n.text + "})"
	}
	return " (write --set " + join(path, "kind") + "=" + n.text + ")"
}
