package humanize

import (
	"os/exec"
	"testing"
)

// TestShellWord: a shell reads each word as the path that it stands for.
func TestShellWord(t *testing.T) {
	for _, path := range []string{
		"/mnt/ssd0/model-gen-000001-52fa", "", "/a b/c", "it's", "''", "$HOME/`x`", "a\nb", "~/x", "*?[a]{b,c}", `back\slash"`, "!x", "a=b", "#a", "a;b|c&d",
	} {
		out, err := exec.Command("sh", "-c", "printf %s "+ShellWord(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%q: %s is read as %q (%v)", path, ShellWord(path), out, err)
		}
	}
	if word := ShellWord("/mnt/ssd0/a.b-c_d"); word != "/mnt/ssd0/a.b-c_d" {
		t.Errorf("quotation marks that are not needed: %s", word)
	}
}
