package clicklog

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/internal/errkind"
	"aibox/internal/generate"
	"aibox/reader"
	"aibox/reader/rowschema"
	"aibox/reader/source"
)

func generator(t *testing.T) *generate.Generator {
	t.Helper()
	g, err := generate.New(generate.Config{
		Seed: 5, DenseColumns: 2, BaseRate: 0.25, LinearStrength: 1, InteractionStrength: 0.5, LatentDim: 2, DriftPerDay: 0.1, MissingRate: 0.1,
		Fields: []generate.Field{{Name: "a", Cardinality: 1e9, Skew: 1.1}, {Name: "b", Cardinality: 50, Skew: 0.5, MaxValues: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func schema(format reader.Format) reader.Schema {
	s := reader.Schema{Format: format, Header: true, Columns: []reader.Column{
		{Name: "label", Role: reader.RoleLabel},
		{Name: "x", Role: reader.RoleDense}, {Name: "y", Role: reader.RoleDense},
		{Name: "a", Role: reader.RoleSparse}, {Name: "b", Role: reader.RoleSparse, Separator: "|"},
		{Name: "unused", Role: reader.RoleIgnore},
	}}
	if format == reader.FormatLibSVM || format == reader.FormatLibFFM {
		s.Header = false
		s.Columns = s.Columns[1:5] // as in a job: the label is no column
	}
	return s
}

func sources(t *testing.T) *source.Sources {
	s := source.New(source.Options{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newWriter(t *testing.T, format reader.Format, threads int) *Writer {
	t.Helper()
	w, err := New(generator(t), sources(t), schema(format), threads)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// read sums up what a reader finds in a file.
func read(t *testing.T, uri string, s reader.Schema) (examples, positives, features int64) {
	t.Helper()
	s, err := rowschema.WithIndices(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := reader.Open(context.Background(), reader.Options{
		Sources: sources(t), URIs: []string{uri}, Schema: s, BatchSize: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		p, err := r.Next(context.Background())
		if err != nil {
			break
		}
		for i := range p.Batches {
			features += int64(p.Batches[i].Features())
		}
	}
	c := r.Counts()
	if c.BadRows != 0 {
		t.Errorf("%s: %d bad rows: %+v", uri, c.BadRows, c.Bad)
	}
	return c.Examples, c.Positives, features
}

// TestEveryFormatHoldsTheSameLog writes one log in every format and reads it
// back.
func TestEveryFormatHoldsTheSameLog(t *testing.T) {
	dir := t.TempDir()
	var want [3]int64
	for i, name := range []string{"log.csv", "log.tsv.gz", "log.libsvm.zst", "log.libffm", "log.parquet"} {
		format := []reader.Format{reader.FormatCSV, reader.FormatTSV, reader.FormatLibSVM, reader.FormatLibFFM, reader.FormatParquet}[i]
		meter := generate.NewMeter()
		path := filepath.Join(dir, name)
		if err := newWriter(t, format, 0).Write(context.Background(), path, []Part{{Day: 1, First: 10, Count: 1234}}, meter, nil); err != nil {
			t.Fatal(err)
		}
		var got [3]int64
		got[0], got[1], got[2] = read(t, path, schema(format))
		if i == 0 {
			want = got
			if truth := meter.Truth(); truth.Examples != got[0] || truth.Positives != got[1] || got[0] != 1234 {
				t.Errorf("read %v, the meter saw %d with %d positives", got, truth.Examples, truth.Positives)
			}
		} else if got != want {
			t.Errorf("%s: examples, positives, features %v, in CSV %v", name, got, want)
		}
	}
}

// TestIndicesAreTheValues: in a range as large as the field no two values fall
// together, with a separator in the schema or without, as in a job.
func TestIndicesAreTheValues(t *testing.T) {
	g, err := generate.New(generate.Config{
		Seed: 5, BaseRate: 0.5, LatentDim: 1,
		Fields: []generate.Field{{Name: "a", Cardinality: 40}, {Name: "b", Cardinality: 60, MaxValues: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := reader.Schema{Format: reader.FormatLibSVM, Columns: []reader.Column{
		{Name: "a", Role: reader.RoleSparse, IndexRange: [2]int64{1, 40}, HasIndexRange: true},
		{Name: "b", Role: reader.RoleSparse, IndexRange: [2]int64{41, 100}, HasIndexRange: true},
	}}
	w, err := New(g, sources(t), s, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log.libsvm")
	if err := w.Write(context.Background(), path, []Part{{Count: 3000}}, generate.NewMeter(), nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen, longest := map[string]bool{}, 0
	for line := range strings.Lines(string(data)) {
		tokens := strings.Fields(line)
		longest = max(longest, len(tokens))
		for _, token := range tokens[1:] {
			seen[token] = true
		}
	}
	if len(seen) != 100 || !seen["1:1"] || !seen["100:1"] || longest != 5 {
		t.Errorf("%d features, want 100; the longest line has %d tokens, want 5", len(seen), longest)
	}
}

// TestBytesDependOnNothingButTheJob cuts a log into files and draws it with
// other numbers of threads.
func TestBytesDependOnNothingButTheJob(t *testing.T) {
	write := func(threads int, files ...string) string {
		dir := t.TempDir()
		plan := Plan{TrainRows: 5000, EvalRows: 500, Days: 3, Eval: []string{filepath.Join(dir, "eval.tsv")}}
		for _, f := range files {
			plan.Train = append(plan.Train, filepath.Join(dir, f))
		}
		if _, err := newWriter(t, reader.FormatTSV, threads).WriteJob(context.Background(), plan, func(string, int64) {}); err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for i, f := range append(plan.Train, plan.Eval...) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && i < len(plan.Train) { // headers but the first
				data = data[bytes.IndexByte(data, '\n')+1:]
			}
			all.Write(data)
		}
		return all.String()
	}
	want := write(1, "one")
	if got := write(4, "one"); got != want {
		t.Error("four threads write other bytes than one")
	}
	if got := write(2, "a", "b", "c"); got != want {
		t.Error("three files hold other rows than one")
	}
	if n := strings.Count(want, "\n"); n != 5000+500+2 {
		t.Errorf("%d lines", n)
	}
}

func TestEvaluationIsOfTheSameModel(t *testing.T) {
	dir := t.TempDir()
	results, err := newWriter(t, reader.FormatCSV, 0).WriteJob(context.Background(), Plan{
		Train: []string{dir + "/train.csv"}, Eval: []string{dir + "/eval.csv"}, TrainRows: 20000, EvalRows: 10000, Days: 1,
	}, func(string, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	a, b := results[0].Truth, results[1].Truth
	if d := float64(a.AUC - b.AUC); math.Abs(d) > 0.02 {
		t.Errorf("AUC of the true probabilities %v and %v", a.AUC, b.AUC)
	}
}

func TestColumnsMustAgree(t *testing.T) {
	for what, change := range map[string]func(*reader.Schema){
		"dense":     func(s *reader.Schema) { s.Columns[1].Role = reader.RoleIgnore },
		"fields":    func(s *reader.Schema) { s.Columns[3].Role = reader.RoleIgnore },
		"separator": func(s *reader.Schema) { s.Columns[4].Separator = "" },
		"threshold": func(s *reader.Schema) { s.Label = reader.LabelRule{Column: "label", Op: ">=", Value: 1} },
	} {
		s := schema(reader.FormatCSV)
		change(&s)
		if _, err := New(generator(t), sources(t), s, 0); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPatternsAreNoFilesToWrite(t *testing.T) {
	train := filepath.Join(t.TempDir(), "train.csv")
	_, err := newWriter(t, reader.FormatCSV, 0).WriteJob(context.Background(), Plan{Train: []string{train}, Eval: []string{"*.csv"}, TrainRows: 1, EvalRows: 1, Days: 1}, func(string, int64) {})
	if kind, _ := errkind.Find(err); kind != errkind.Job || !strings.Contains(err.Error(), "pattern") {
		t.Error(err)
	}
	if _, err := os.Stat(train); !os.IsNotExist(err) {
		t.Errorf("a file was written before the pattern was found (%v)", err)
	}
}
