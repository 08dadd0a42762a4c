package login

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCachePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "primary"), []byte("tktAbc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/a":                   "/a",
		"FILE:/a:b":            "/a:b",
		"DIR:" + dir:           dir + "/tktAbc",
		"DIR:/none":            "/none/tkt",
		"DIR::/run/tktX":       "/run/tktX",
		"KEYRING:persistent:0": "",
		"KCM:":                 "",
		"MEMORY:x":             "",
	} {
		if got, err := cachePath(name); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}
