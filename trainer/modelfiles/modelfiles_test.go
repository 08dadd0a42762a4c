package modelfiles

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aibox/sparsetable"
)

// TestOfRun checks that the files of a held snapshot do not change although the run deletes them
// and continues to write.
func TestOfRun(t *testing.T) {
	gen, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "log")
	table, err := sparsetable.Open(t.Context(), sparsetable.Options{Kind: sparsetable.KindMemory, Dir: filepath.Join(gen, Table), Layout: sparsetable.Layout{ValueDim: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	dense, report := filepath.Join(gen, "dense-1"), filepath.Join(gen, Reports, Quarantine)
	if err := errors.Join(os.Mkdir(filepath.Join(gen, Reports), 0o755), os.WriteFile(dense, []byte("tensors"), 0o644),
		os.WriteFile(report, []byte("row\n"), 0o644), os.WriteFile(elsewhere, []byte("one\ntwo\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	files, err := OfRun(gen, []string{"dense-1", "dense-1"}, table, nil, []RunReport{{report, 4}, {elsewhere, 4}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(dense), os.WriteFile(elsewhere, []byte("one\ntwo\nthree\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, f := range files.Files {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(io.NewSectionReader(in, 0, f.Bytes))
		if err := errors.Join(err, in.Close()); err != nil || have[f.Name] != "" || f.Private != (f.Name == "reports/quarantine.jsonl") {
			t.Errorf("%+v, %v", f, err)
		}
		have[f.Name] = string(data)
	}
	want := map[string]string{"dense-1": "tensors", "reports/quarantine.jsonl": "row\n", "outside/log": "one\n"}
	if !maps.Equal(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
	if err := files.Close(); err != nil {
		t.Error(err)
	}
	if _, err := OfRun(gen, nil, table, nil, []RunReport{{elsewhere, 100}}); err == nil {
		t.Error("a report is shorter than its snapshot says")
	}
}

// TestIndexFiles checks that a list names the files beside it, and that a file that is no list is
// itself an index.
func TestIndexFiles(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string][]string{
		"table/pages-a-0\ntable/pages-a-1\n": {filepath.Join(dir, "table-pages-a-0"), filepath.Join(dir, "table-pages-a-1")},
		"an index":                           {filepath.Join(dir, "index")},
		"table/pages-a-0\n../x\n":            nil,
		"table/pages-a-0\ntable/../x\n":      nil,
	} {
		at := filepath.Join(dir, "index")
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if have, err := IndexFiles(at); !slices.Equal(have, want) || errors.Is(err, ErrName) != (want == nil) {
			t.Errorf("%q: %q, %v, want %q", text, have, err, want)
		}
	}
}
