package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnmounted: a path lies beneath a mount point that nothing is mounted at.
func TestUnmounted(t *testing.T) {
	dir := RealDir(t.TempDir())
	defer func(a, b string) { Fstab, mountinfo = a, b }(Fstab, mountinfo)
	Fstab, mountinfo = filepath.Join(dir, "fstab"), filepath.Join(dir, "mountinfo")
	at := func(text string) []byte { return []byte(strings.ReplaceAll(text, "DIR", dir)) }
	if got := unmounted(dir); got != "" {
		t.Errorf("without a table of file systems, %s is not mounted", got)
	}
	for path, text := range map[string]string{
		Fstab: `# <file system> <mount point> <type> <options>
UUID=1 / ext4 defaults 0 1
UUID=2 DIR/ssd0/ xfs nofail 0 2

UUID=3	DIR/ssd1	xfs	nofail 0 2
UUID=4 DIR/with\040space ext4 nofail
UUID=5 DIR/ssd0/inner ext4 nofail
UUID=6 none swap sw 0 0
`,
		mountinfo: `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
31 22 8:33 / DIR/ssd1/byhand rw,relatime shared:9 - xfs /dev/sdc1 rw
30 22 8:17 / DIR/ssd0 rw,relatime shared:9 - xfs /dev/sdb1 rw
`,
	} {
		if err := os.WriteFile(path, at(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ssd0", "ssd1", "with space"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "ssd1"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"nowhere": filepath.Join(dir, "ssd1", "gone"), "relative": "nowhere", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"ssd1/byhand": "", "ssd1/byhand/a": "", "ssd1/byhand2": "ssd1", "nowhere": "ssd1", "relative/a": "ssd1", "loop/a": "",
		"": "", "elsewhere/a": "", "ssd0": "", "ssd0/a/b": "", "ssd0/inner": "ssd0/inner", "ssd0/inner2": "",
		"ssd1": "ssd1", "ssd1/a/b": "ssd1", "with space/a": "with space", "link/a/b": "ssd1", "link": "ssd1", "ssd10": "",
	} {
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got := unmounted(filepath.Join(dir, path)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if err := os.Remove(mountinfo); err != nil {
		t.Fatal(err)
	}
	if got := unmounted(filepath.Join(dir, "ssd1")); got != "" {
		t.Errorf("where it is not known what is mounted, %s is not", got)
	}
}
