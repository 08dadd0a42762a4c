package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun runs packages with tests that pass, are skipped, fail and do not compile.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m\n\ngo 1.26\n")
	write("good/a_test.go", `package good

import "testing"

func TestGood(t *testing.T) { t.Log("nobody sees this") }
func TestA(t *testing.T)    { t.Skip("SKIP: no Java: run install.sh") }
func TestB(t *testing.T)    { t.Run("sub", func(t *testing.T) { t.Skip("SKIP: no Java: run install.sh") }) }
func TestC(t *testing.T)    { t.Skipf("root may read\neverything") }
`)
	write("bad/a_test.go", "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(\"this is wrong\") }\n")
	t.Chdir(dir)
	var out strings.Builder
	if code := run([]string{"./good"}, &out); code != 0 {
		t.Errorf("exit %d: %s", code, out.String())
	}
	for _, want := range []string{"ok  \tm/good", "Skipped tests, and why:\n    2  SKIP: no Java: run install.sh\n       m/good TestA, m/good TestB/sub\n    1  root may read everything\n       m/good TestC\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q: %s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "nobody sees") {
		t.Errorf("more than go test prints: %s", out.String())
	}
	out.Reset()
	if code := run([]string{"./..."}, &out); code != 1 {
		t.Errorf("a failed test: exit %d", code)
	}
	for _, want := range []string{"--- FAIL: TestBad", "this is wrong", "FAIL\tm/bad", "ok  \tm/good", "\nFAIL\n", "no Java"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q: %s", want, out.String())
		}
	}
	write("broken/a_test.go", "package broken\n\nfunc x() { y() }\n")
	out.Reset()
	if code := run([]string{"./broken"}, &out); code != 1 || !strings.Contains(out.String(), "undefined: y") || !strings.Contains(out.String(), "FAIL\tm/broken [build failed]") {
		t.Errorf("a package that does not compile: exit %d: %s", code, out.String())
	}
}
