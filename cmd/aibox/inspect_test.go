package main

import (
	"fmt"
	"strings"
	"testing"

	"aibox/trainer/inference"
)

// TestInspectWrapsNames checks that the lines about a model with many fields are not too long for a
// terminal.
func TestInspectWrapsNames(t *testing.T) {
	in := &inference.Inspection{Dense: []string{"price"}}
	for i := range 100 {
		in.Fields = append(in.Fields, fmt.Sprintf("field%d", i))
	}
	var b strings.Builder
	if err := printInspection(&b, in); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(in.Fields, "price") {
		if !strings.Contains(b.String(), " "+name) {
			t.Errorf("%s is not shown", name)
		}
	}
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "field") && len(line) > 80 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	if !strings.Contains(b.String(), "100: field0 field1 ") || !strings.Contains(b.String(), "1: price\n") {
		t.Error(b.String())
	}
}
