package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"aibox/configs/internal/yamltree"
)

// Instead returns what a user must write at a place to get value: YAML if the place is in the file,
// and a whole flag, quoted for the shell, if it is an override. A suggestion must be accepted
// without another message.
func Instead(path string, at yamltree.Place, value string) string {
	if at.Set == "" {
		return value
	}
	return "--set '" + strings.ReplaceAll(path+"="+value, "'", `'\''`) + "'"
}

// asList returns the list, in YAML, that a single value probably stands for, or "" if k does not
// accept its items.
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
		case customOf(elem) != nil:
			if !slices.Contains(customOf(elem).Bare(), item) { // others need options
				return ""
			}
		case elem.Kind() == reflect.String:
			if len(k.Values) > 0 && !slices.Contains(k.Values, item) {
				return ""
			}
			item = yamltree.Text(item)
		case elem.Kind() == reflect.Int || elem.Kind() == reflect.Int64:
			if x, err := strconv.ParseInt(item, 10, 64); err != nil || !k.rng.contains(float64(x)) {
				return ""
			}
		case elem.Kind() == reflect.Float64:
			if _, err := yamltree.ParseFloat(item); err != nil {
				return ""
			}
		default:
			return ""
		}
		items[i] = item
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// asBool returns true or false, whichever text probably means, or "" if it means neither.
func asBool(text string) string {
	switch strings.ToLower(text) {
	case "yes", "on", "1", "y", "t", "true":
		return "true"
	case "no", "off", "0", "n", "f", "false":
		return "false"
	}
	return ""
}

// meantKind is the end of the message about a word where a mapping is expected. If
// the word is a kind that the mapping may have, as in "dense: adam", it suggests
// "dense: {kind: adam}"; otherwise it is "".
func (d *Decoder) meantKind(path string, k *Key, n *yamltree.Node) string {
	kind := d.table.Find(join(k.Path, "kind"))
	if kind == nil || n.Kind != yamltree.Scalar || !slices.Contains(kind.Values, n.Text) {
		return ""
	}
	if n.Set == "" {
		return " (write {kind: " + n.Text + "})"
	}
	return " (write --set " + join(path, "kind") + "=" + n.Text + ")"
}
