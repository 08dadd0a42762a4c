package configs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// checkParse asserts what must hold of any input: faults with positions, or a
// job that config show prints so that it loads again.
func checkParse(t rapid.TB, text []byte, sets ...string) {
	t.Helper()
	j, err := Parse("job.yaml", text, LoadOptions{Date: "2026-11-20", Env: noEnv, Set: sets})
	if err == nil {
		checkRoundTrip(t, j)
		return
	}
	var faults FaultsError
	if !errors.As(err, &faults) || len(faults) == 0 || err.Error() == "" {
		t.Fatalf("not a FaultsError: %v", err)
	}
	// A carriage return alone ends a line too, says YAML.
	lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 1
	for i, f := range faults {
		if f.File == "job.yaml" && (f.Line < 1 || f.Column < 1 || f.Line > lines+1) {
			t.Errorf("fault %d out of the file, which has %d lines: %v", i, lines, f)
		}
	}
}

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(smallJob))
	f.Add([]byte("a\r\r\rb: \"\\d\"\r\n"))
	f.Add([]byte("a: &x [*x]\nb: {<<: *x, ? [c] : d}\n"))
	f.Add([]byte("data: {train: ['{{date -1d \"06\"}}', \"${A:-b}\"], columns: [{transform: [{clip: {}}]}]}\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<13 {
			t.Skip("nothing new in long texts")
		}
		checkParse(t, text)
	})
}

func FuzzSet(f *testing.F) {
	for _, s := range []string{"model.kind=fm", "data.columns[3]={name: x}", "a[0][1].b=[1,", "=", "data.train[0]={{date}}", "data=", "x-a.b=*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, set string) {
		if len(set) > 1<<10 {
			t.Skip("nothing new in long texts")
		}
		checkParse(t, []byte(smallJob), set)
	})
}

// TestDamagedJobFiles deletes and doubles lines and bytes of the shipped files.
func TestDamagedJobFiles(t *testing.T) {
	paths, err := filepath.Glob("*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text, err := os.ReadFile(rapid.SampledFrom(paths).Draw(rt, "file"))
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(rt, "damages") {
			at := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
			n := min(rapid.IntRange(1, 40).Draw(rt, "length"), len(text)-at)
			switch rapid.IntRange(0, 2).Draw(rt, "damage") {
			case 0:
				text = append(text[:at:at], text[at+n:]...)
			case 1:
				text = append(text[:at+n:at+n], text[at:]...)
			default:
				text = append(append(text[:at:at], rapid.SampledFrom([]string{"{", "]", "\n", ":", "&a ", "*a", "- ", "\t", "'", "{{", "${", "0", "!!str "}).Draw(rt, "insert")...), text[at:]...)
			}
			if len(text) == 0 {
				return
			}
		}
		checkParse(t, text)
	})
}
