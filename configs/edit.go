package configs

import (
	"errors"
	"fmt"
	"strings"
)

// Edited is the text of a job file with the overrides opts.Set written into it: loading
// it gives the job that loading text with the overrides gives. All other lines stay as they
// are, comments included. It fails where the overrides are at fault, and where it does not know
// how to write one into this file, such as a value that the file has as an alias.
func Edited(name string, text []byte, opts LoadOptions) ([]byte, error) {
	want, err := Parse(name, text, opts)
	if err != nil {
		return nil, err
	}
	sets := opts.Set
	opts.Set = nil
	edited := strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n")
	for _, set := range sets {
		path, value, _ := strings.Cut(set, "=") // it has both, or Parse had failed
		if edited, err = editOne(edited, strings.TrimSpace(path), strings.TrimSpace(value)); err != nil {
			return nil, fmt.Errorf("%s cannot be written into %s: %w", set, name, err)
		}
	}
	got, err := Parse(name, []byte(edited), opts)
	if err != nil {
		return nil, fmt.Errorf("overrides cannot be written into %s: %w", name, err)
	}
	differing, err := want.Differences(got)
	if err == nil && len(differing) > 0 {
		err = fmt.Errorf("overrides cannot be written into %s: %s would have other values than with --set", name, strings.Join(differing, ", "))
	}
	return []byte(edited), err
}

// editOne writes one override into the text of a job file.
func editOne(text, path, value string) (string, error) {
	steps, err := parsePath(path)
	if err != nil {
		return "", err
	}
	n, faults := parseTree("", text, place{})
	if len(faults) > 0 {
		return "", FaultsError(faults)
	}
	if n == nil {
		return text + nested(steps, value) + "\n", nil
	}
	e := editor{text: text}
	for i, s := range steps {
		last := i == len(steps)-1
		switch {
		case s.key == "" && n.kind == listNode && s.index < len(n.items):
			n = n.items[s.index]
			if last {
				return e.replace(e.offset(n.place), n, value)
			}
		case s.key != "" && n.kind == mapNode:
			entry := n.find(s.key)
			if entry == nil {
				return e.insert(n, i == 0, nested(steps[i:], value))
			}
			after := e.offset(entry.place)
			if colon := strings.IndexByte(text[after:], ':'); colon >= 0 {
				after += colon + 1
			}
			if last {
				return e.replace(after, entry.value, value)
			}
			if n = entry.value; n.isNull() {
				return e.splice(after, after, " {"+nested(steps[i+1:], value)+"}"), nil
			}
		default:
			return "", errors.New("the file has something else there")
		}
	}
	return "", errNotThere
}

var errNotThere = errors.New("its place in the file was not found")

// nested is a value below keys, in one line: a: {b: value}.
func nested(steps []step, value string) string {
	text := steps[len(steps)-1].key + ": " + value
	for i := len(steps) - 2; i >= 0; i-- {
		text = steps[i].key + ": {" + text + "}"
	}
	return text
}

// editor changes the text of a job file at places of its tree.
type editor struct{ text string }

func (e *editor) splice(from, to int, text string) string { return e.text[:from] + text + e.text[to:] }

// offset is where a place is in the text; the text's length if it has no such place.
func (e *editor) offset(p place) int {
	at := 0
	for range p.line - 1 {
		end := strings.IndexByte(e.text[at:], '\n')
		if end < 0 {
			return len(e.text)
		}
		at += end + 1
	}
	column := 1
	for i := range e.text[at:] { // columns are characters
		if column == p.column {
			return at + i
		}
		column++
	}
	return len(e.text)
}

// replace puts a value in the place of n, which begins at from or behind it.
func (e *editor) replace(from int, n *node, value string) (string, error) {
	start, end, err := e.extent(n)
	switch {
	case err != nil:
		return "", err
	case n.isNull() && n.text == "":
		return e.splice(from, from, " "+value), nil
	case n.kind == listNode && e.text[start] != '[': // a list with a line for each item
		return e.splice(from, end, " "+value), nil
	}
	return e.splice(start, end, value), nil
}

// extent is where the text of a value begins and ends.
func (e *editor) extent(n *node) (start, end int, err error) {
	start = e.offset(n.place)
	rest := e.text[start:]
	switch {
	case n.isNull() && n.text == "":
		return start, start, nil
	case n.kind == listNode && strings.HasPrefix(rest, "["):
		end := flowEnd(rest)
		if end < 0 {
			return 0, 0, errNotThere
		}
		return start, start + end, nil
	case n.kind == listNode && len(n.items) > 0:
		_, end, err := e.extent(n.items[len(n.items)-1])
		return start, end, err
	case n.kind == scalarNode && !n.quoted && strings.HasPrefix(rest, n.text):
		return start, start + len(n.text), nil
	case n.kind == scalarNode && n.quoted && len(rest) > len(n.text)+1 && rest[1:len(n.text)+1] == n.text && rest[len(n.text)+1] == rest[0]:
		return start, start + len(n.text) + 2, nil
	}
	return 0, 0, errNotThere
}

// flowEnd is where the list ends with which text, which is YAML, begins: behind its closing bracket; -1: it has
// a comment, which would be lost with it.
func flowEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		starts := strings.IndexByte("[{,: \t\n", text[max(i-1, 0)]) >= 0 // an item, or a comment, may begin here
		switch c := text[i]; {
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case c == '#' && starts:
			return -1
		case (c == '"' || c == '\'') && starts:
			escape := "\\"
			if c == '\'' {
				escape = "''"
			}
			for i++; i < len(text) && (text[i] != c || strings.HasPrefix(text[i:], escape)); i++ {
				if strings.HasPrefix(text[i:], escape) {
					i++
				}
			}
		}
	}
	return -1
}

// insert adds the entry, a line, to a mapping: at the end of the file, or after an entry
// of one line, or before the first one.
func (e *editor) insert(n *node, top bool, entry string) (string, error) {
	switch {
	case n.flow:
		at := e.offset(n.place)
		if at == len(e.text) || e.text[at] != '{' {
			return "", errNotThere
		}
		if len(n.entries) > 0 {
			entry += ", "
		}
		return e.splice(at+1, at+1, entry), nil
	case top:
		return strings.TrimRight(e.text, "\n") + "\n" + entry + "\n", nil
	case len(n.entries) == 0:
		return "", errNotThere
	}
	indent := strings.Repeat(" ", n.entries[0].column-1)
	for _, other := range n.entries {
		v := other.value
		if v.kind != scalarNode || v.quoted || v.isNull() || v.line != other.line {
			continue
		}
		at := e.offset(v.place)
		if end := strings.IndexByte(e.text[at:], '\n'); end >= 0 {
			at += end + 1
			return e.splice(at, at, indent+entry+"\n"), nil
		}
	}
	at := e.offset(n.entries[0].place)
	return e.splice(at, at, entry+"\n"+indent), nil
}
