package trainer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/disk"
	"aibox/internal/errkind"
)

// notMounted has /etc/fstab say, during a test, that a directory is a mount point.
func notMounted(t *testing.T, dir string) {
	t.Helper()
	before := disk.Fstab
	t.Cleanup(func() { disk.Fstab = before })
	disk.Fstab = filepath.Join(t.TempDir(), "fstab")
	line := fmt.Sprintf("UUID=1 %s xfs nofail 0 2\n", strings.ReplaceAll(disk.RealDir(dir), " ", `\040`))
	if err := os.WriteFile(disk.Fstab, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNotMounted: where the file system of output.model_dir or of output.remote is not mounted, no
// job begins with a new model there, and none is published, although both directories exist.
func TestNotMounted(t *testing.T) {
	at := t.TempDir()
	j := job(t, "fm", "training.warm_start=latest", "output.model_dir="+at+"/disk/model", "output.remote=file://"+at+"/nfs/remote")
	if err := os.MkdirAll(at+"/nfs/remote", 0o755); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		_, err := Train(t.Context(), j, quiet)
		if errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "which is in /etc/fstab, is not mounted") || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Mkdir(at+"/disk", 0o755); err != nil {
		t.Fatal(err)
	}
	notMounted(t, at+"/disk")
	refused("model directory")
	if left, err := os.ReadDir(at + "/disk"); err != nil || len(left) > 0 {
		t.Errorf("beneath the mount point there is %v, %v", left, err)
	}
	notMounted(t, at+"/nfs")
	refused("output.remote")
	notMounted(t, at+"/elsewhere")
	if s := train(t, j); s.NotPublished != "" {
		t.Fatal(s.NotPublished)
	}
	if err := os.Rename(at+"/nfs/remote", at+"/away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at+"/nfs/remote", 0o755); err != nil {
		t.Fatal(err)
	}
	notMounted(t, at+"/nfs")
	if s := train(t, j); !strings.Contains(s.NotPublished, "mount its file system") {
		t.Errorf("published: %q", s.NotPublished)
	}
	if left, err := os.ReadDir(at + "/nfs/remote"); err != nil || len(left) > 0 {
		t.Errorf("beneath the mount point there is %v, %v", left, err)
	}
}
