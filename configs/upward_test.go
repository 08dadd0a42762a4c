package configs

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUpwardFromLink: in paths of job files and of the command line, ".." after a symbolic link
// goes up from where that leads, as it does for the system.
func TestUpwardFromLink(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"far/deep/er", "dir"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "far/deep", "dir/link": "../link", "...": "far/deep"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"link/../m":            "far/m",
		"link//..//m":          "far//m",
		"link/er/../../m/":     "far/m/",
		"dir/link/../a/../m":   "far/a/../m",
		"link/..":              "far",
		wd + "/link/../m@3":    wd + "/far/m@3",
		"link/../../link/../m": "far/m",
		".../../m":             "far/m",
		"link/..m":             "link/..m",
		"dir/../m":             "dir/../m",
		"../m":                 "../m",
		"/../m":                "/../m",
		"none/../m":            "none/../m",
		"hdfs://link/../m":     "hdfs://link/../m",
	} {
		if got := followUpward(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	job := `
name: link/../job
data: {train: ["link/../{{date}}.tsv"], format: tsv, columns: [{name: y, role: label}, {name: x}]}
model: {kind: lr}
output: {model_dir: "link/../{{date}}"}
`
	if err := os.WriteFile("job.yaml", []byte(job), 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := Load("job.yaml", LoadOptions{Date: "2026-11-20"})
	if err != nil {
		t.Fatal(err)
	}
	next := ""
	for next = range j.EarlierModelDirs() {
		break
	}
	arg, err := j.Expand("--to", "link/../{{date}}")
	got := []string{j.Name, j.Data.Train[0], j.Output.ModelDir, next, arg}
	want := []string{"link/../job", "far/2026-11-20.tsv", "far/2026-11-20", "far/2026-11-19", "far/2026-11-20"}
	for i := range want {
		if filepath.Clean(got[i]) != filepath.Clean(want[i]) || err != nil {
			t.Errorf("%s, want %s, %v", got[i], want[i], err)
		}
	}
}
