package tablecmd

import (
	"os"
	"testing"
)

// TestImportLeavesOthers checks that an import that failed to make its table does not delete what
// another process has begun to make in the same directory.
func TestImportLeavesOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	undo, err := undoMaking([]string{"table", "empty"})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"table/other", "empty"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := undo(false); err != nil || !exists("table/other") || exists("empty") {
		t.Errorf("what another process has made: %v; an empty directory: %v; %v", exists("table/other"), exists("empty"), err)
	}
}
