package yamltree

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxAliased bounds the number of nodes that aliases expand to, which grows exponentially with
// aliases of aliases. The number of other nodes is bounded by the length of the text.
const maxAliased = 1 << 17

// builder turns the library's syntax tree into nodes.
type builder struct {
	origin  Place // set and order of every node
	anchors map[string]ast.Node
	open    map[string]bool // anchors being resolved: an alias inside is a loop
	aliased int             // nodes that aliases stand for
	faults  []Fault
	full    bool // maxAliased reached and reported
}

// Parse parses one YAML document, all of whose nodes get the override of origin. The root is
// nil when there is none or when the syntax is wrong.
func Parse(text string, origin Place) (root *Node, faults []Fault) {
	b := &builder{origin: origin, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	f, err := parseYAML(text)
	if err != nil {
		var syntax *yaml.SyntaxError
		at := Place{Line: 1, Column: 1}
		message := err.Error()
		if errors.As(err, &syntax) {
			message = syntax.Message
			if t := syntax.Token; t != nil && t.Position != nil {
				at.Line, at.Column = t.Position.Line, t.Position.Column
			}
		}
		line := ""
		if lines := strings.Split(text, "\n"); at.Line <= len(lines) {
			line = lines[max(at.Line, 1)-1]
		}
		switch {
		case strings.Contains(line, "{{"):
			message += "; a text that begins with {{ needs quotation marks, as does one with {{ in a [list] or a {mapping}"
		case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
			message += "; the line is indented with a tab, but YAML allows only spaces"
		}
		b.fault(at, "this is not YAML: "+message)
		return nil, b.faults
	}
	var body ast.Node
	for _, d := range f.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType || d.Body.Type() == ast.DirectiveType { // such as %YAML 1.2
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
			f, err = nil, fmt.Errorf("the parser failed (%v)", r)
		}
	}()
	return parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
}

func (b *builder) fault(at Place, message string) {
	at.Set, at.Order = b.origin.Set, b.origin.Order
	b.faults = append(b.faults, Fault{Place: at, Message: message})
}

// at is the position of the first character of n.
func (b *builder) at(n ast.Node) Place {
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
	if t != nil && t.Position != nil && p.Set == "" {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	return p
}

func (b *builder) node(n ast.Node) *Node {
	if len(b.open) > 0 {
		b.aliased++
	}
	out := &Node{}
	if n == nil {
		out.Place = b.origin
		return out
	}
	out.Place = b.at(n)
	if b.aliased > maxAliased {
		if !b.full {
			b.full = true
			b.fault(out.Place, fmt.Sprintf("aliases expand to more than %d values", maxAliased))
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
			inner.Quoted = true
		}
		return inner
	case *ast.MappingNode:
		out.Kind, out.Flow = Mapping, n.IsFlowStyle
		b.entries(out, n.Values)
	case *ast.MappingValueNode:
		out.Kind = Mapping
		b.entries(out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.Kind = List
		for _, v := range n.Values {
			out.Items = append(out.Items, b.node(v))
		}
	case *ast.LiteralNode:
		out.Quoted = true
		if n.Value != nil {
			out.Text = n.Value.Value
		}
	case *ast.StringNode:
		out.Text = n.Value
		out.Quoted = n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
	case *ast.NullNode:
		if t := n.GetToken(); t != nil && t.Type == token.NullType {
			out.Text = t.Value // null, NULL or ~, as it was written
		}
	default: // numbers, true and false: as they were written
		if t := n.GetToken(); t != nil {
			out.Text = t.Value
		}
	}
	return out
}

func (b *builder) entries(out *Node, values []*ast.MappingValueNode) {
	var merged []*Node
	for _, v := range values {
		if v.Key == nil {
			continue
		}
		if v.Key.IsMergeKey() {
			m := b.node(v.Value)
			if m.Kind == List {
				merged = append(merged, m.Items...)
			} else {
				merged = append(merged, m)
			}
			continue
		}
		e := Entry{Place: b.at(v.Key), Key: name(v.Key)}
		e.Value = b.node(v.Value)
		if e.Value.IsNull() {
			e.Value.Place = e.Place // nothing was written: the key is the place
		}
		out.Entries = append(out.Entries, e)
	}
	if merged == nil {
		return
	}
	// A merged key does not override one that is written in the mapping itself.
	has := map[string]bool{}
	for _, e := range out.Entries {
		has[e.Key] = true
	}
	for _, m := range merged {
		if m.Kind != Mapping {
			b.fault(m.Place, "<< merges mappings, but this is "+m.Describe())
			continue
		}
		for _, e := range m.Entries {
			if !has[e.Key] {
				has[e.Key] = true
				out.Entries = append(out.Entries, e)
			}
		}
	}
}

func (b *builder) alias(n *ast.AliasNode) *Node {
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
	return &Node{Place: at}
}

// name is the text of a key, an anchor or an alias.
func name(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.MappingKeyNode: // ? key
		return name(n.Value)
	}
	if t := n.GetToken(); t != nil {
		return strings.TrimSpace(t.Value)
	}
	return ""
}
