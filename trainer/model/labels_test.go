package model

import (
	"slices"
	"testing"
)

// TestPairNames: the products of an interaction have names of their own, also where a field is
// called as the bottom network might be or has a dot in its name, and the same ones in whatever
// order the fields come.
func TestPairNames(t *testing.T) {
	s := Spec{Kind: KindDLRM, Fields: []string{"dense", "item", "user", "item·user", "bottom"}, Dense: []string{"age"}}
	names := s.pairNames()
	slices.Sort(names)
	if n := len(names); n != 6*5/2 || len(slices.Compact(slices.Clone(names))) != n {
		t.Errorf("of 6 vectors there are the products %q", names)
	}
	slices.Reverse(s.Fields)
	other := s.pairNames()
	slices.Sort(other)
	if !slices.Equal(names, other) {
		t.Errorf("in another order of fields there are %q, not %q", other, names)
	}
}
