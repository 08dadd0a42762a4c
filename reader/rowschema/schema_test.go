package rowschema

import (
	"fmt"
	"strings"
	"testing"
)

// TestIndicatorNames checks that a column with the name of an indicator is refused.
func TestIndicatorNames(t *testing.T) {
	s := Schema{Format: FormatCSV, Columns: []Column{{Name: "a", Role: RoleDense, Indicator: true}, {Name: "a.missing", Role: RoleIgnore}}}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", "a.missing")) {
		t.Errorf("%v", err)
	}
	s.Columns[0].Indicator = false
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
