package trainer

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aibox/internal/disk"
	"aibox/internal/diskfault"
)

// TestReportsCannotBeReplaced checks nights that cannot delete a report of an earlier night, for
// example because another user has trained that night. They must make their models, delete old ones
// and publish. Later the reports are again those of the model.
func TestReportsCannotBeReplaced(t *testing.T) {
	remote := t.TempDir()
	m := newMachine(t, "file://"+remote, "output.tensorboard=AT/model/tensorboard")
	m.night("2026-11-21")
	model := filepath.Join(m.at, "model")
	diskfault.Inject(func(operation, path string) error {
		if operation == "remove" && path == filepath.Join(model, "tensorboard") {
			return syscall.EACCES
		}
		return nil
	})
	t.Cleanup(func() { diskfault.Inject(nil) })
	for i, date := range []string{"2026-11-22", "2026-11-23", "2026-11-24"} {
		if s := m.night(date); s.NotPublished != "" || s.Generation != i+2 {
			t.Errorf("%s: generation %d, published: %q", date, s.Generation, s.NotPublished)
		}
	}
	m.said("not all reports in " + model + " are those of this model")
	if left := entriesOf(t, filepath.Join(model, "gen-*")); strings.Count(left, "gen-") != 2 {
		t.Errorf("%s are kept, want 2", left)
	}
	diskfault.Inject(nil)
	m.night("2026-11-25")
	if !disk.SameTree(filepath.Join(model, "gen-000005", "reports", "tensorboard"), filepath.Join(model, "tensorboard")) {
		t.Errorf("the reports at the top are not those of the model: %s; %s", entriesOf(t, filepath.Join(model, "*")), entriesOf(t, filepath.Join(model, "gen-000005", "*", "*")))
	}
	if _, err := os.Stat(filepath.Join(model, "tensorboard.tmp")); err == nil {
		t.Error("a temporary file is left")
	}
}
