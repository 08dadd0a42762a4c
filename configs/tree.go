package configs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// place is where a node was written.
type place struct {
	line, column int
	set          string // the override it came from; empty for the file
	order        int    // rank of that override, from 1
}

type nodeKind int

const (
	scalarNode nodeKind = iota
	mapNode
	listNode
)

// node is a YAML value with its position. Anchors, aliases and merge keys are
// resolved; tags are gone. What a scalar means is decided by the key it is
// for, not by YAML: 1e-3 is a number under learning_rate.
type node struct {
	place
	kind    nodeKind
	text    string // of a scalar
	quoted  bool   // the scalar is in quotation marks or a block: it is text, whatever it looks like
	flow    bool   // mapping in braces
	entries []entry
	items   []*node
}

// entry is one key of a mapping.
type entry struct {
	place
	key   string
	value *node
}

func (n *node) find(key string) *entry {
	for i := range n.entries {
		if n.entries[i].key == key {
			return &n.entries[i]
		}
	}
	return nil
}

// isNull reports whether a value was left out: there is nothing after the colon, or
// null.
func (n *node) isNull() bool {
	return n.kind == scalarNode && !n.quoted && (n.text == "" || n.text == "~" || strings.EqualFold(n.text, "null"))
}

// describe says what a user wrote, for messages.
func (n *node) describe() string {
	switch {
	case n.kind == mapNode:
		return "a mapping"
	case n.kind == listNode:
		return "a list"
	case n.isNull():
		return "nothing"
	}
	return quote(n.text)
}

// maxNodes bounds the number of nodes, which aliases of aliases multiply.
const maxNodes = 1 << 17

// treeBuilder turns the library's syntax tree into nodes.
type treeBuilder struct {
	origin  place // set and order of every node
	anchors map[string]ast.Node
	open    map[string]bool // anchors being resolved: an alias inside is a loop
	nodes   int
	faults  []Fault
	file    string
	full    bool // maxNodes reached and reported
}

// parseTree parses one YAML document. The node is nil when there is none or
// when the syntax is wrong.
func parseTree(file, text string, origin place) (root *node, faults []Fault) {
	b := &treeBuilder{origin: origin, file: file, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	f, err := parseYAML(text)
	if err != nil {
		var syntax *yaml.SyntaxError
		at := place{line: 1, column: 1}
		message := err.Error()
		if errors.As(err, &syntax) {
			message = syntax.Message
			if t := syntax.Token; t != nil && t.Position != nil {
				at.line, at.column = t.Position.Line, t.Position.Column
			}
		}
		if lines := strings.Split(text, "\n"); at.line <= len(lines) && strings.Contains(lines[max(at.line, 1)-1], "{{") {
			message += "; a text that begins with {{ needs quotation marks, as does one with {{ in a [list] or a {mapping}"
		}
		b.fault(at, "this is not YAML: "+message)
		return nil, b.faults
	}
	var body ast.Node
	for _, d := range f.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			b.fault(b.at(d.Body), "a second YAML document begins here: a job file holds one")
			break
		}
		body = d.Body
	}
	if body == nil {
		return nil, b.faults
	}
	return b.node(body), b.faults
}

// parseYAML turns panics of the YAML library into errors: a text that makes it
// panic is not a job file.
func parseYAML(text string) (f *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("the parser gave up (%v)", r)
		}
	}()
	return parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
}

func (b *treeBuilder) fault(at place, message string) {
	f := Fault{File: b.file, Line: at.line, Column: at.column, Message: message, order: b.origin.order}
	if b.origin.set != "" {
		f.File, f.Line, f.Column = b.origin.set, 0, 0
	}
	b.faults = append(b.faults, f)
}

// at is the position of the first character of n.
func (b *treeBuilder) at(n ast.Node) place {
	p := b.origin
	t := n.GetToken()
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			t = n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		t = n.Key.GetToken()
	}
	if t != nil && t.Position != nil && p.set == "" {
		p.line, p.column = t.Position.Line, t.Position.Column
	}
	return p
}

func (b *treeBuilder) node(n ast.Node) *node {
	b.nodes++
	out := &node{}
	if n == nil {
		out.place = b.origin
		return out
	}
	out.place = b.at(n)
	if b.nodes > maxNodes {
		if !b.full {
			b.full = true
			b.fault(out.place, fmt.Sprintf("there are more than %d values, including those of aliases", maxNodes))
		}
		return out
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		b.anchors[name(n.Name)] = n.Value
		return b.node(n.Value)
	case *ast.AliasNode:
		return b.alias(n)
	case *ast.TagNode:
		inner := b.node(n.Value)
		if n.Start != nil && n.Start.Value == "!!str" {
			inner.quoted = true
		}
		return inner
	case *ast.MappingNode:
		out.kind, out.flow = mapNode, n.IsFlowStyle
		b.entries(out, n.Values)
	case *ast.MappingValueNode:
		out.kind = mapNode
		b.entries(out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.kind = listNode
		for _, v := range n.Values {
			out.items = append(out.items, b.node(v))
		}
	case *ast.LiteralNode:
		out.quoted = true
		if n.Value != nil {
			out.text = n.Value.Value
		}
	case *ast.StringNode:
		out.text = n.Value
		out.quoted = n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
	case *ast.NullNode:
		if t := n.GetToken(); t != nil && t.Type == token.NullType {
			out.text = t.Value // null, NULL or ~, as it was written
		}
	default: // numbers, true and false: as they were written
		if t := n.GetToken(); t != nil {
			out.text = t.Value
		}
	}
	return out
}

func (b *treeBuilder) entries(out *node, values []*ast.MappingValueNode) {
	var merged []*node
	for _, v := range values {
		if v.Key == nil {
			continue
		}
		if v.Key.IsMergeKey() {
			m := b.node(v.Value)
			if m.kind == listNode {
				merged = append(merged, m.items...)
			} else {
				merged = append(merged, m)
			}
			continue
		}
		e := entry{place: b.at(v.Key), key: name(v.Key)}
		e.value = b.node(v.Value)
		if e.value.isNull() {
			e.value.place = e.place // nothing was written: the key is the place
		}
		out.entries = append(out.entries, e)
	}
	// A merged key does not override one that is written in the mapping itself.
	for _, m := range merged {
		if m.kind != mapNode {
			b.fault(m.place, "<< merges mappings, but this is "+m.describe())
			continue
		}
		for _, e := range m.entries {
			if out.find(e.key) == nil {
				out.entries = append(out.entries, e)
			}
		}
	}
}

func (b *treeBuilder) alias(n *ast.AliasNode) *node {
	id := name(n.Value)
	target, ok := b.anchors[id]
	at := b.at(n)
	switch {
	case !ok:
		b.fault(at, fmt.Sprintf("*%s refers to no anchor before it; a text that begins with * needs quotation marks", id))
	case b.open[id]:
		b.fault(at, fmt.Sprintf("*%s refers to itself", id))
	default:
		b.open[id] = true
		out := b.node(target)
		delete(b.open, id)
		return out
	}
	return &node{place: at}
}

// name is the text of a key, an anchor or an alias.
func name(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	if t := n.GetToken(); t != nil {
		return strings.TrimSpace(t.Value)
	}
	return ""
}
