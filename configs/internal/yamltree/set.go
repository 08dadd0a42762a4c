package yamltree

import (
	"fmt"
	"strconv"
	"strings"
)

// step is one part of a path: a key, or an index into a list.
type step struct {
	key   string
	index int // used when key is empty
}

// parsePath splits a path such as data.columns[2].role.
func parsePath(path string) ([]step, error) {
	var steps []step
	for part := range strings.SplitSeq(path, ".") {
		key, rest, _ := strings.Cut(part, "[")
		if key == "" {
			return nil, fmt.Errorf("%q is not a key path such as training.batch_size or data.columns[2].role", path)
		}
		steps = append(steps, step{key: key})
		if len(key) == len(part) {
			continue
		}
		for index := range strings.SplitSeq(rest, "[") {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || i < 0 || !strings.HasSuffix(index, "]") {
				return nil, fmt.Errorf("%q is not a key path: an index is a number in brackets, as in data.columns[2].role", path)
			}
			steps = append(steps, step{index: i})
		}
	}
	return steps, nil
}

// Set applies the overrides to the tree, in order, and returns its root.
// Each override is "path=value", where the value is YAML. A list index may be one
// past the end, which appends an item.
func Set(root *Node, sets []string) (*Node, []Fault) {
	var faults []Fault
	for i, s := range sets {
		origin := Place{Set: "--set " + s, Order: i + 1}
		fail := func(path, message string) {
			faults = append(faults, Fault{Place: origin, Path: path, Message: message})
		}
		path, text, found := strings.Cut(s, "=")
		path = strings.TrimSpace(path)
		if !found {
			fail("", "an override is written key=value, such as --set training.batch_size=512")
			continue
		}
		steps, err := parsePath(path)
		if err != nil {
			fail("", err.Error())
			continue
		}
		value, valueFaults := parseSetValue(text, origin)
		if len(valueFaults) > 0 {
			faults = append(faults, valueFaults...)
			continue
		}
		if root == nil {
			root = &Node{Place: origin, Kind: Mapping}
		}
		if message := put(root, steps, value, origin); message != "" {
			fail(path, message)
		}
	}
	return root, faults
}

func parseSetValue(text string, origin Place) (*Node, []Fault) {
	trimmed := strings.TrimSpace(text)
	// A template is text, although YAML would take {{date}} for a mapping, and
	// * for an alias.
	if strings.HasPrefix(trimmed, "{{") || strings.HasPrefix(trimmed, "*") {
		return &Node{Place: origin, Text: trimmed, Quoted: true}, nil
	}
	// YAML folds line ends within quotation marks into spaces and drops the white
	// space around them. Here line ends and tabs that the shell passes on stay.
	if trimmed == "" && strings.ContainsAny(text, "\t\r\n") {
		return &Node{Place: origin, Text: text, Quoted: true}, nil
	}
	if n := len(trimmed) - 1; n > 0 && strings.ContainsAny(trimmed, "\r\n") {
		switch inside := trimmed[1:n]; {
		case trimmed[0] == '"' && trimmed[n] == '"':
			text = strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(trimmed)
		case trimmed[0] == '\'' && trimmed[n] == '\'' && !strings.Contains(inside, "'"):
			return &Node{Place: origin, Text: inside, Quoted: true}, nil
		}
	}
	value, faults := Parse(text, origin)
	if value == nil && len(faults) == 0 {
		value = &Node{Place: origin}
	}
	return value, faults
}

// put stores value at the end of steps below n, creating mappings on the way.
// It returns what is wrong, if anything is.
func put(n *Node, steps []step, value *Node, origin Place) string {
	for i, s := range steps {
		last := i == len(steps)-1
		if s.key == "" {
			if n.IsNull() {
				n.Kind = List
			}
			if n.Kind != List {
				return fmt.Sprintf("an index [%d] needs a list, but this is %s", s.index, n.Describe())
			}
			if s.index > len(n.Items) {
				return fmt.Sprintf("there is no index [%d]: the list in the job file has length %d, and [%d] appends an item", s.index, len(n.Items), len(n.Items))
			}
			if s.index == len(n.Items) {
				n.Items = append(n.Items, &Node{Place: origin})
			}
			if last {
				n.Items[s.index] = value
				return ""
			}
			n = n.Items[s.index]
			continue
		}
		if n.IsNull() {
			n.Kind = Mapping
		}
		if n.Kind != Mapping {
			return fmt.Sprintf("a key %q needs a mapping, but this is %s", s.key, n.Describe())
		}
		e := n.Find(s.key)
		if e == nil {
			n.Entries = append(n.Entries, Entry{Place: origin, Key: s.key, Value: &Node{Place: origin}})
			e = &n.Entries[len(n.Entries)-1]
		}
		if last {
			e.Place, e.Value = origin, value
			return ""
		}
		n = e.Value
	}
	return ""
}
