package yamltree

import (
	"fmt"
	"strings"
	"testing"

	"aibox/internal/testseed"
)

// print writes a tree in one line, with the places of its nodes if they are asked for.
func print(n *Node, places bool) string {
	at := ""
	if places {
		at = fmt.Sprintf("@%d:%d%s ", n.Line, n.Column, n.Set)
	}
	var parts []string
	switch n.Kind {
	case Scalar:
		return fmt.Sprintf("%s%q", at, n.Text)
	case List:
		for _, item := range n.Items {
			parts = append(parts, print(item, places))
		}
		return at + "[" + strings.Join(parts, ", ") + "]"
	}
	for _, e := range n.Entries {
		parts = append(parts, e.Key+": "+print(e.Value, places))
	}
	return at + "{" + strings.Join(parts, ", ") + "}"
}

func parse(t *testing.T, text string) *Node {
	t.Helper()
	root, faults := Parse(text, Place{})
	if len(faults) > 0 {
		t.Fatalf("%q: %v", text, faults)
	}
	return root
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1e-3\nb:\n  - \"x\"\n  - y\n":                                 `@1:1 {a: @1:4 "1e-3", b: @3:3 [@3:5 "x", @4:5 "y"]}`,
		"a: &n {b: 1}\nc: *n\nd: {<<: *n, e: 2}\nf: {<<: *n, b: 3}\n":     `@1:1 {a: @1:7 {b: @1:11 "1"}, c: @1:7 {b: @1:11 "1"}, d: @3:4 {e: @3:16 "2", b: @1:11 "1"}, f: @4:4 {b: @4:16 "3"}}`,
		"a: &n {b: 1}\nc: {<<: [*n, {b: 2, d: 3}, {d: 4, a: 5}], a: 0}\n": `@1:1 {a: @1:7 {b: @1:11 "1"}, c: @2:4 {a: @2:46 "0", b: @1:11 "1", d: @2:24 "3"}}`,
		"a:\nb: ~\n": `@1:1 {a: @1:1 "", b: @2:1 "~"}`,
	} {
		if have := print(parse(t, text), true); have != want {
			t.Errorf("%q:\n%s, want\n%s", text, have, want)
		}
	}
	for text, want := range map[string]string{
		"a: [":            "1:4 this is not YAML",
		"a: *b":           "1:4 *b refers to no anchor",
		"a: &b [1, *b]":   "1:11 *b refers to itself",
		"a: 1\n---\nb: 2": "3:1 a second YAML document",
	} {
		_, faults := Parse(text, Place{})
		if len(faults) != 1 || !strings.HasPrefix(fmt.Sprintf("%d:%d %s", faults[0].Line, faults[0].Column, faults[0].Message), want) {
			t.Errorf("%q: %v, want %s", text, faults, want)
		}
	}
}

// TestEditIsSet: a text with a value written into it is the tree with the value put into it.
func TestEditIsSet(t *testing.T) {
	const text = "a: 1 # one\nb:\n  c: \"x\"\n  d: [1, 2]\n  e:\n    - {f: g}\n    - h\n"
	for set, want := range map[string]string{
		"a=2":             `{a: "2", b: {c: "x", d: ["1", "2"], e: [{f: "g"}, "h"]}}`,
		"b.c=y":           `{a: "1", b: {c: "y", d: ["1", "2"], e: [{f: "g"}, "h"]}}`,
		"b.d=[3]":         `{a: "1", b: {c: "x", d: ["3"], e: [{f: "g"}, "h"]}}`,
		"b.d[1]=3":        `{a: "1", b: {c: "x", d: ["1", "3"], e: [{f: "g"}, "h"]}}`,
		"b.e[0].f={i: 1}": `{a: "1", b: {c: "x", d: ["1", "2"], e: [{f: {i: "1"}}, "h"]}}`,
		"j.k=[1, 2]":      `{a: "1", b: {c: "x", d: ["1", "2"], e: [{f: "g"}, "h"]}, j: {k: ["1", "2"]}}`,
	} {
		root, faults := Set(parse(t, text), []string{set})
		if len(faults) > 0 || print(root, false) != want {
			t.Errorf("%s: %s, %v, want\n%s", set, print(root, false), faults, want)
		}
		path, value, _ := strings.Cut(set, "=")
		edited, err := Edit(text, parse(t, text), path, value)
		if err != nil || print(parse(t, edited), false) != want || !strings.Contains(edited, " # one\n") {
			t.Errorf("%s: %v\n%s", set, err, edited)
		}
	}
	for set, want := range map[string]string{
		"b.e[3]=1": "there is no index [3]", "a.b=1": "needs a mapping, but this is \"3\"", "a[0]=1": "needs a list",
		"a": "an override is written key=value", ".=1": "is not a key path", "a[x]=1": "an index is a number", "a=[": "this is not YAML",
	} {
		_, faults := Set(parse(t, text), []string{"a=3", set})
		if len(faults) != 1 || !strings.Contains(faults[0].Message, want) || faults[0].Set != "--set "+set || faults[0].Order != 2 {
			t.Errorf("%s: %+v, want %s", set, faults, want)
		}
	}
}

// TestTextIsReadBack: what Text writes is one scalar of that text, also within a list.
func TestTextIsReadBack(t *testing.T) {
	random := testseed.Rand(t)
	letters := []rune("ab1-.:/ #'\"\\{}[],&*!|>%@`~\n\tä世")
	for range 2000 {
		runes := make([]rune, random.IntN(8))
		for i := range runes {
			runes[i] = letters[random.IntN(len(letters))]
		}
		text := string(runes)
		n := parse(t, "a: ["+Text(text)+", 1]").Entries[0].Value
		if item := n.Items[0]; len(n.Items) != 2 || item.Text != text || item.IsNull() || !item.Quoted && LooksLikeOther(item.Text) {
			t.Errorf("%q is written as %s and read as %s", text, Text(text), print(n, false))
		}
	}
}
