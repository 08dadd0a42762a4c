package yamltree

import (
	"slices"
	"strings"

	"aibox/internal/nearest"
)

// Place is where a node was written.
type Place struct {
	Line, Column int
	Set          string // the override it came from; empty for the file
	Order        int    // rank of that override, from 1
}

// Kind tells what a node is.
type Kind int

// The kinds of nodes.
const (
	Scalar Kind = iota
	Mapping
	List
)

// Node is a YAML value with its position. Anchors, aliases and merge keys are
// resolved; tags are gone. What a scalar means is decided by the key it is
// for, not by YAML: 1e-3 is a number under learning_rate.
type Node struct {
	Place
	Kind    Kind
	Text    string // of a scalar
	Quoted  bool   // the scalar is in quotation marks or a block: it is text, whatever it looks like
	Flow    bool   // mapping in braces
	Entries []Entry
	Items   []*Node
}

// Entry is one key of a mapping.
type Entry struct {
	Place
	Key   string
	Value *Node
}

// Find returns the entry of a mapping with this key, or nil.
func (n *Node) Find(key string) *Entry {
	for i := range n.Entries {
		if n.Entries[i].Key == key {
			return &n.Entries[i]
		}
	}
	return nil
}

// Remove deletes a key from a tree of mappings.
func (n *Node) Remove(keys []string) {
	for i, key := range keys {
		e := n.Find(key)
		if e == nil {
			return
		}
		if i == len(keys)-1 {
			n.Entries = slices.DeleteFunc(n.Entries, func(e Entry) bool { return e.Key == key })
			return
		}
		n = e.Value
	}
}

// IsNull reports whether a value was left out: there is nothing after the colon, or
// null.
func (n *Node) IsNull() bool {
	return n.Kind == Scalar && !n.Quoted && (n.Text == "" || n.Text == "~" || strings.EqualFold(n.Text, "null"))
}

// Describe says what a user wrote, for messages.
func (n *Node) Describe() string {
	switch {
	case n.Kind == Mapping:
		return "a mapping"
	case n.Kind == List:
		return "a list"
	case n.IsNull():
		return "nothing"
	}
	return nearest.Quote(n.Text)
}

// Fault is what is wrong with a text or an override.
type Fault struct {
	Place
	Path    string // the key, where an override is at fault
	Message string
}
