package listing

import (
	"slices"
	"strings"
	"testing"
)

func TestExpandBraces(t *testing.T) {
	got, err := expandBraces("a{b,c{d,e},}f{1,2}")
	want := []string{"abf1", "abf2", "acdf1", "acdf2", "acef1", "acef2", "af1", "af2"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := expandBraces(strings.Repeat("{0,1}", 20)); err == nil {
		t.Error("2^20 alternatives accepted")
	}
}
