package yamltree

import (
	"errors"
	"strings"
)

// Edit writes the value, which is YAML, to a path of a text that was parsed to n. All other lines
// stay unchanged, comments included. It fails if it does not know how to write the value there, for
// example in place of an alias.
func Edit(text string, n *Node, path, value string) (string, error) {
	steps, err := parsePath(path)
	if err != nil {
		return "", err
	}
	if n == nil {
		return text + nested(steps, value) + "\n", nil
	}
	e := editor{text: text}
	for i, s := range steps {
		last := i == len(steps)-1
		switch {
		case s.key == "" && n.Kind == List && s.index < len(n.Items):
			n = n.Items[s.index]
			if last {
				return e.replace(e.offset(n.Place), n, value)
			}
		case s.key != "" && n.Kind == Mapping:
			entry := n.Find(s.key)
			if entry == nil {
				return e.insert(n, i == 0, nested(steps[i:], value))
			}
			after := e.offset(entry.Place)
			if colon := strings.IndexByte(text[after:], ':'); colon >= 0 {
				after += colon + 1
			}
			if last {
				return e.replace(after, entry.Value, value)
			}
			if n = entry.Value; n.IsNull() {
				return e.splice(after, after, " {"+nested(steps[i+1:], value)+"}"), nil
			}
		default:
			return "", errors.New("the file has something else there")
		}
	}
	return "", errNotThere
}

var errNotThere = errors.New("its place in the file was not found")

// nested returns a value below keys, on one line: a: {b: value}.
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
func (e *editor) offset(p Place) int {
	at := 0
	for range p.Line - 1 {
		end := strings.IndexByte(e.text[at:], '\n')
		if end < 0 {
			return len(e.text)
		}
		at += end + 1
	}
	column := 1
	for i := range e.text[at:] { // columns are characters
		if column == p.Column {
			return at + i
		}
		column++
	}
	return len(e.text)
}

// replace puts a value in the place of n, which begins at from or behind it.
func (e *editor) replace(from int, n *Node, value string) (string, error) {
	start, end, err := e.extent(n)
	switch {
	case err != nil:
		return "", err
	case n.IsNull() && n.Text == "":
		return e.splice(from, from, " "+value), nil
	case n.Kind == List && e.text[start] != '[': // a list with a line for each item
		return e.splice(from, end, " "+value), nil
	}
	return e.splice(start, end, value), nil
}

// extent returns where the text of a value begins and ends.
func (e *editor) extent(n *Node) (start, end int, err error) {
	start = e.offset(n.Place)
	rest := e.text[start:]
	switch {
	case n.IsNull() && n.Text == "":
		return start, start, nil
	case n.Kind == List && strings.HasPrefix(rest, "["):
		end := flowEnd(rest)
		if end < 0 {
			return 0, 0, errNotThere
		}
		return start, start + end, nil
	case n.Kind == List && len(n.Items) > 0:
		_, end, err := e.extent(n.Items[len(n.Items)-1])
		return start, end, err
	case n.Kind == Scalar && !n.Quoted && strings.HasPrefix(rest, n.Text):
		return start, start + len(n.Text), nil
	case n.Kind == Scalar && n.Quoted && len(rest) > len(n.Text)+1 && rest[1:len(n.Text)+1] == n.Text && rest[len(n.Text)+1] == rest[0]:
		return start, start + len(n.Text) + 2, nil
	}
	return 0, 0, errNotThere
}

// flowEnd returns the end, after its closing bracket, of the list at the beginning of text, which
// is YAML; -1: it contains a comment, which would be lost.
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
func (e *editor) insert(n *Node, top bool, entry string) (string, error) {
	switch {
	case n.Flow:
		at := e.offset(n.Place)
		if at == len(e.text) || e.text[at] != '{' {
			return "", errNotThere
		}
		if len(n.Entries) > 0 {
			entry += ", "
		}
		return e.splice(at+1, at+1, entry), nil
	case top:
		return strings.TrimRight(e.text, "\n") + "\n" + entry + "\n", nil
	case len(n.Entries) == 0:
		return "", errNotThere
	}
	indent := strings.Repeat(" ", n.Entries[0].Column-1)
	for _, other := range n.Entries {
		v := other.Value
		if v.Kind != Scalar || v.Quoted || v.IsNull() || v.Line != other.Line {
			continue
		}
		at := e.offset(v.Place)
		if end := strings.IndexByte(e.text[at:], '\n'); end >= 0 {
			at += end + 1
			return e.splice(at, at, indent+entry+"\n"), nil
		}
	}
	at := e.offset(n.Entries[0].Place)
	return e.splice(at, at, entry+"\n"+indent), nil
}
