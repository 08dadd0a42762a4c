package rowtext

import (
	"strings"
	"testing"
)

// TestCutWeight checks that the weight comes after the last separator, whatever the separator's
// length, and that there is no weight without a separator.
func TestCutWeight(t *testing.T) {
	for _, value := range []string{"", "a", ":", "a:", ":1", "a:1", "a:b:1", "a::1", "a:::", "a:b", "::"} {
		for _, separator := range []string{"", ":", "::", ":b", "abcdefghijkl"} {
			want, weight, weighted := value, "", false
			if i := strings.LastIndex(value, separator); i >= 0 && separator != "" {
				want, weight, weighted = value[:i], value[i+len(separator):], true
			}
			got, w, ok := CutWeight([]byte(value), separator)
			if string(got) != want || string(w) != weight || ok != weighted {
				t.Errorf("CutWeight(%q, %q) = %q, %q, %v", value, separator, got, w, ok)
			}
		}
	}
}
