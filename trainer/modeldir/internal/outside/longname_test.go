package outside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/disk"
	"aibox/internal/errkind"
)

// TestLongName checks that the table of a model directory with the longest name that fits can be
// made, and that a longer name is refused before a generation records directories that cannot be
// made or deleted.
func TestLongName(t *testing.T) {
	ssd := t.TempDir()
	for length, fits := range map[int]bool{235: true, 236: false, 255: false} {
		model := filepath.Join(t.TempDir(), strings.Repeat("m", length))
		gen := filepath.Join(model, "gen-000001")
		if err := os.MkdirAll(gen, 0o755); err != nil {
			t.Fatal(err)
		}
		r := models.NewRun(model, "gen-000001")
		_, err := r.Place([]string{ssd})
		if (err == nil) != fits || !fits && (errkind.Of(t.Context(), err) != errkind.Job || !strings.Contains(err.Error(), ssd) || !disk.Gone(filepath.Join(gen, PlacesName))) {
			t.Errorf("%d bytes: %v", length, err)
		}
		r.Close()
	}
}
