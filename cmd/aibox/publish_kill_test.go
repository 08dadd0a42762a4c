package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aibox/trainer/transfer"
)

// TestPublishKilled kills the program while it publishes the first model, at each operation on disk
// after it has recorded where models are published. If the remote directory then has the model and
// is not mounted afterwards, nothing may be published into the directory beneath the mount point.
// If it is mounted, the same command publishes the model, whatever was recorded.
func TestPublishKilled(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml")
	command := []string{"publish", "model", "--to", "far"}
	all := operations(t, command...)
	note := filepath.Join("model", transfer.ReportName)
	noted := slices.Index(all, "create "+note)
	committed := slices.Index(all, "sync directory far/generations")
	if noted < 0 || committed < 0 {
		t.Fatalf("the operations are others: %q", all)
	}
	for k := min(noted, committed) + 1; k <= len(all); k++ {
		for _, left := range []string{"far", note} {
			if err := os.RemoveAll(left); err != nil {
				t.Fatal(err)
			}
		}
		killAtOperation(t, k, command...)
		models, err := filepath.Glob("far/generations/*.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename("far", "mounted"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir("far", 0o755); err != nil {
			t.Fatal(err)
		}
		if o := aibox(command...); len(models) > 0 && (o.code != 4 || !strings.Contains(o.stderr, "it had models, but has none now")) {
			t.Errorf("killed before %q: published beneath the mount point: exit %d\n%s", all[k-1], o.code, o.stderr)
		}
		if err := os.RemoveAll("far"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename("mounted", "far"); err != nil {
			t.Fatal(err)
		}
		ok(t, command...)
		if got := remoteGenerationsOf(t, absolute(t, "far")); len(got) != 1 {
			t.Errorf("killed before %q: %+v", all[k-1], got)
		}
	}
}
