package rowschema

import (
	"fmt"
	"strings"
	"testing"
)

// TestIndicesSuffice checks that LibSVM has indices for 2,048 columns, and that one more is an
// error that says so. In LibFFM it is not.
func TestIndicesSuffice(t *testing.T) {
	s := Schema{Format: FormatLibSVM, Columns: []Column{{Name: "y", Role: RoleLabel}}}
	for i := range 2048 {
		s.Columns = append(s.Columns, Column{Name: fmt.Sprint(i), Role: RoleSparse})
	}
	got, err := WithIndices(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	s.Columns = append(s.Columns, Column{Name: "more", Role: RoleDense})
	if _, err := WithIndices(s); err == nil || !strings.Contains(err.Error(), "indices for 2048 dense and sparse columns") {
		t.Errorf("2,049 columns: %v", err)
	}
	s.Format = FormatLibFFM
	if _, err := WithIndices(s); err != nil {
		t.Error(err)
	}
}
