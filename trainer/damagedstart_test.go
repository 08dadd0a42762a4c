package trainer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/errkind"
)

// TestDamagedStart checks the error of a night that starts from a model with a damaged file of its
// table: it names the file of that model, since the night's own link to the file is deleted, and
// says what to do. Doing that must lead to the model of an undisturbed night.
func TestDamagedStart(t *testing.T) {
	remote := "file://" + t.TempDir() + "/remote"
	want := newMachine(t, "")
	m := newMachine(t, remote)
	set := onSSD("sparse_table.dirs=[AT/a, AT/b]")
	for _, home := range []*machine{want, m} {
		home.night("2026-11-21", set...)
	}
	files, err := filepath.Glob(filepath.Join(m.at, "a", "*-gen-000001-*", "*.delta"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(files[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := m.job("2026-11-22", set...)
	if err != nil {
		t.Fatal(err)
	}
	dir := j.Output.ModelDir
	_, err = m.train("2026-11-22", set...)
	if err == nil || errkind.Of(t.Context(), err) != errkind.IO {
		t.Fatalf("%v", err)
	}
	for _, text := range []string{"where it is " + files[0], dir + "@1", "move " + dir + " away"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v\ndoes not say %q", err, text)
		}
	}
	if err := os.Rename(dir, dir+".damaged"); err != nil {
		t.Fatal(err)
	}
	got, as := m.night("2026-11-22", set...), want.night("2026-11-22", set...)
	if got.Digest != as.Digest {
		t.Errorf("%s, want %s", got.Digest, as.Digest)
	}
}

// TestDamagedManifestAtStart checks a machine without models whose remote directory may have a model
// of an earlier night, but with a damaged manifest. The night must end with an error that says what
// to do, rather than begin with a new model, whether or not there are models of later nights. Doing
// that must lead to a new model.
func TestDamagedManifestAtStart(t *testing.T) {
	for _, dates := range [][]string{{"2026-11-21"}, {"2026-11-21", "2026-11-23"}} {
		uri := t.TempDir() + "/remote"
		before := newMachine(t, uri)
		for _, date := range dates {
			before.night(date)
		}
		manifests, err := filepath.Glob(filepath.Join(uri, "generations", "*.json"))
		if err != nil || len(manifests) != len(dates) {
			t.Fatal(manifests, err)
		}
		if err := os.Truncate(manifests[0], 100); err != nil {
			t.Fatal(err)
		}
		m := newMachine(t, uri)
		_, err = m.train("2026-11-22")
		if err == nil || errkind.Of(t.Context(), err) != errkind.IO || !strings.Contains(err.Error(), "delete the damaged files if the job is to begin with a new model") || !strings.Contains(err.Error(), manifests[0]) {
			t.Fatalf("nights %v are there: %v", dates, err)
		}
		if err := os.Remove(manifests[0]); err != nil {
			t.Fatal(err)
		}
		if s := m.night("2026-11-22"); s.WarmStart != "" || s.Published == nil {
			t.Errorf("nights %v are there: started from %q, published %+v", dates, s.WarmStart, s.Published)
		}
	}
}

// TestStartLacksFile checks the error of a night that starts from a model in whose directory a file
// of the table is missing, or whose catalog is damaged, while output.remote does not have the
// model: it names the model and says what to do.
func TestStartLacksFile(t *testing.T) {
	for pattern, damage := range map[string]func(string) error{
		"*.delta":       os.Remove,
		"catalog/*.sst": func(path string) error { return os.Truncate(path, 9) },
	} {
		m := newMachine(t, "")
		set := onSSD()
		m.night("2026-11-21", set...)
		j, err := m.job("2026-11-22", set...)
		if err != nil {
			t.Fatal(err)
		}
		dir := j.Output.ModelDir
		files, err := filepath.Glob(filepath.Join(dir, "gen-000001", "table", pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if err := damage(file); err != nil {
				t.Fatal(err)
			}
		}
		_, err = m.train("2026-11-22", set...)
		if err == nil || errkind.Of(t.Context(), err) != errkind.IO {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, text := range []string{"model " + dir + "@1", "`aibox generations " + dir + "` lists"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v\ndoes not say %q", pattern, err, text)
			}
		}
	}
}
