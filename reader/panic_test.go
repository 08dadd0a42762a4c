package reader

import (
	"errors"
	"testing"

	"aibox/internal/panics"
	"aibox/reader/rowschema"
)

// TestPanicsEndReading checks that a panic of the planner, a worker or a decompressor ends reading
// with an error, and does not look like the end of the data.
func TestPanicsEndReading(t *testing.T) {
	plain := write(t, t.TempDir(), "plain.tsv", criteoLines(50))
	gz := gzFiles(t, 1, criteoLines(50))[0]
	for name, c := range map[string]struct {
		path     string
		sabotage func(o *Options, files []*inputFile) []*inputFile
	}{
		"planner":      {plain, func(_ *Options, files []*inputFile) []*inputFile { return append(files, nil) }},
		"worker":       {plain, func(_ *Options, files []*inputFile) []*inputFile { files[0].cells = nil; return files }},
		"decompressor": {gz, func(o *Options, files []*inputFile) []*inputFile { o.ChunkBytes = -1; return files }},
	} {
		o, err := testOptions(rowschema.CriteoSchema(), c.path).withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		p, err := compile(&o)
		if err != nil {
			t.Fatal(err)
		}
		files, _, err := openFiles(t.Context(), &o, p)
		if err != nil {
			t.Fatal(err)
		}
		s := newStream(t.Context(), &o, p, c.sabotage(&o, files))
		for err == nil {
			_, err = s.next(t.Context())
		}
		var caught *panics.Error
		if !errors.As(err, &caught) {
			t.Errorf("%s: %v", name, err)
		}
		_ = s.close()
	}
}
