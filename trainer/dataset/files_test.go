package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aibox/reader/source"
)

// TestWarningsOfFiles checks the warnings about files that overlapping patterns name twice, files
// that are both training and evaluation data, and files that may be truncated.
func TestWarningsOfFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.tsv", "b.tsv", "c.tsv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"none.tsv", "none.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		train, eval []string
		want        []string
	}{
		{[]string{"a.tsv", "b.tsv"}, []string{"c.tsv"}, nil},
		{[]string{"a.tsv", "none.tsv", "none.gz"}, []string{"c.tsv", "none.gz"}, []string{
			"data.eval has 1 file of data.train, such as " + dir + "/none.gz: on examples that it was trained on, a model looks better than it is",
			"data.train has 1 compressed file of 0 bytes, such as " + dir + "/none.gz, which count as empty; but even empty text has some bytes when it is compressed: were these files written and copied completely?",
			"data.eval has 1 compressed file of 0 bytes, such as " + dir + "/none.gz, which count as empty; but even empty text has some bytes when it is compressed: were these files written and copied completely?",
		}},
		{[]string{"[a-c].tsv", "b.tsv"}, []string{"c.tsv", "c.tsv"}, []string{
			"data.train names 1 file more than once, such as " + dir + "/b.tsv: their examples are trained on each time",
			"data.eval has 2 files of data.train, such as " + dir + "/c.tsv: on examples that it was trained on, a model looks better than it is",
		}},
	} {
		list := func(names []string) *source.Listing {
			var uris []string
			for _, name := range names {
				uris = append(uris, filepath.Join(dir, name))
			}
			l, err := new(source.Sources).List(t.Context(), uris)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		if got := (Files{list(c.train), list(c.eval)}).Warnings(); !slices.Equal(got, c.want) {
			t.Errorf("%v and %v: the warnings are %q, want %q", c.train, c.eval, got, c.want)
		}
	}
}

// TestFilesDiffer checks that a run that reads other files than an earlier one has another hash,
// and says under which key the files differ. In another time zone the files are the same.
func TestFilesDiffer(t *testing.T) {
	modified := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	files := func(sizes ...int64) *source.Listing {
		l := new(source.Listing)
		for _, size := range sizes {
			l.Files = append(l.Files, source.File{URI: "a", Size: size, ModTime: modified})
		}
		return l
	}
	before := Files{Train: files(1, 2), Eval: files(3)}
	modified = modified.In(time.FixedZone("", 3600))
	for _, c := range []struct {
		now  Files
		want string
	}{
		{Files{Train: files(1, 2), Eval: files(3)}, ""},
		{Files{Train: files(1, 3), Eval: files(3)}, "data.train: "},
		{Files{Train: files(1, 2)}, "data.eval: "},
	} {
		got := strings.Join(c.now.Differences(before), "; ")
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || (c.now.Hash() == before.Hash()) != (got == "") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
