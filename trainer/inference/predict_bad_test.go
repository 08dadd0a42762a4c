package inference_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/configs"
	"aibox/reader"
	"aibox/trainer/inference"
	"aibox/trainer/internal/testjobs"
)

// TestPredictLeavesNoRowOut: a bad row ends predicting, or has an empty prediction,
// and the other rows have those that they have without it.
func TestPredictLeavesNoRowOut(t *testing.T) {
	j := testjobs.Job(t, "lr")
	train(t, j)
	l := testjobs.Load(t, j.Output.ModelDir)
	lines := fileLines(t, j.Data.Eval[0])
	dir := t.TempDir()
	predict := func(name string, rows []string, keep bool) (*inference.Prediction, []string, error) {
		in, out := filepath.Join(dir, name), filepath.Join(dir, name+".csv")
		if err := os.WriteFile(in, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := l.Predict(t.Context(), inference.PredictOptions{Data: []string{in}, Output: out, Columns: []string{"item"}, KeepBadRows: keep})
		if err != nil {
			if _, gone := os.Stat(out); !errors.Is(gone, os.ErrNotExist) {
				t.Errorf("%s: there is an output after a failure", name)
			}
			return nil, nil, err
		}
		return p, fileLines(t, out), nil
	}
	_, want, err := predict("good.tsv", lines, false)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[int]string{}
	for i, line := range map[int]string{5: "0\tx" + lines[5][1:], 77: "1\t2", 500: strings.Replace(lines[500], "\t", "\tx", 1)} {
		lines[i], bad[i] = line, line
	}
	var past *reader.BadRowsError
	if _, _, err := predict("bad.tsv", lines, false); !errors.As(err, &past) || !strings.Contains(err.Error(), "--keep-bad-rows") {
		t.Errorf("%v", err)
	}
	p, got, err := predict("kept.tsv", lines, true)
	if err != nil {
		t.Fatal(err)
	}
	if p.Unscored != int64(len(bad)) || p.Examples != int64(len(want)-1-len(bad)) || len(got) != len(want) || p.Rows.Bad != int64(len(bad)) {
		t.Errorf("%+v, %d lines, want %d", p, len(got), len(want))
	}
	for i := range got {
		_, isBad := bad[i]
		if isBad && (!strings.HasSuffix(got[i], ",,") || i == 500 && got[i][:4] != want[i][:4]) || !isBad && got[i] != want[i] {
			t.Errorf("line %d: %q, without bad rows %q", i, got[i], want[i])
		}
	}
}

// TestPredictKeepsAnyNumberOfBadRows checks that most rows of a short file may be bad, but that a
// file without any good row is refused as no data of this model.
func TestPredictKeepsAnyNumberOfBadRows(t *testing.T) {
	j := testjobs.Job(t, "lr")
	train(t, j)
	l := testjobs.Load(t, j.Output.ModelDir)
	dir := t.TempDir()
	header, rows := fileLines(t, j.Data.Eval[0])[0], fileLines(t, j.Data.Eval[0])[1:3]
	for name, c := range map[string]struct {
		lines []string
		good  int64
	}{
		"mostly bad": {[]string{header, "x", rows[0], "1\t2", "y", "z\t"}, 1},
		"all bad":    {[]string{header, "x", "1\t2"}, 0},
	} {
		in, out := filepath.Join(dir, name), filepath.Join(dir, name+".csv")
		if err := os.WriteFile(in, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := l.Predict(t.Context(), inference.PredictOptions{Data: []string{in}, Output: out, KeepBadRows: true})
		if c.good == 0 {
			if !errors.Is(err, reader.ErrNoExamples) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || p.Examples != c.good || p.Unscored != int64(len(c.lines)-1)-c.good || len(fileLines(t, out)) != len(c.lines) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// fileLines are the lines of a file, without their ends.
func fileLines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// TestPredictOfCutData: a file whose end is missing ends predicting too. With
// --keep-bad-rows, the job's limit on losses decides, and the loss is reported.
func TestPredictOfCutData(t *testing.T) {
	j := testjobs.Job(t, "lr")
	train(t, j)
	cut := testjobs.Gzip(t, j.Data.Eval[0], func(size int) int { return size / 2 })
	out := filepath.Join(t.TempDir(), "scores.csv")
	o := inference.PredictOptions{Data: []string{cut}, Output: out}
	var lost *reader.LostDataError
	for _, o.KeepBadRows = range []bool{false, true} {
		if _, err := testjobs.Load(t, j.Output.ModelDir).Predict(t.Context(), o); !errors.As(err, &lost) || !strings.Contains(err.Error(), cut) {
			t.Errorf("keep %v: %v", o.KeepBadRows, err)
		}
	}
	l, err := inference.Load(t.Context(), j.Output.ModelDir, configs.LoadOptions{Set: []string{"data.max_lost_fraction=1"}}, testjobs.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if p, err := l.Predict(t.Context(), o); err != nil || len(p.Rows.Lost) != 1 || p.Rows.Lost[0].URI != cut || p.Examples == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestInputWithoutBytes: the log warns of compressed files of 0 bytes, which count as empty: rows
// of them may be lost.
func TestInputWithoutBytes(t *testing.T) {
	j := testjobs.Job(t, "lr")
	train(t, j)
	none := filepath.Join(t.TempDir(), "none.tsv.gz")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l, err := inference.Load(t.Context(), j.Output.ModelDir, configs.LoadOptions{}, inference.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data := []string{j.Data.Eval[0], none}
	if _, err := l.Evaluate(t.Context(), data); err != nil || strings.Count(log.String(), none) != 1 {
		t.Errorf("%v, %s", err, &log)
	}
	o := inference.PredictOptions{Data: data, Output: filepath.Join(t.TempDir(), "scores.csv")}
	if _, err := l.Predict(t.Context(), o); err != nil || strings.Count(log.String(), none) != 2 {
		t.Errorf("%v, %s", err, &log)
	}
}
