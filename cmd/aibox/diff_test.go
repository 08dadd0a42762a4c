package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"aibox/trainer/modeldiff"
)

// TestDiff compares two nights of a model, with and without the data that show to which field each
// row belongs.
func TestDiff(t *testing.T) {
	inNightlyJob(t)
	text := ok(t, "diff", "model@1", "model@2", "--top", "3")
	for _, want := range []string{"  user\n", "  ad\n", "  all\n", "Rows that moved farthest:", "  ad=0000"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	var d modeldiff.Difference
	decode := func(args ...string) {
		t.Helper()
		d = modeldiff.Difference{}
		if err := json.Unmarshal([]byte(ok(t, append([]string{"diff", "--json"}, args...)...)), &d); err != nil {
			t.Fatal(err)
		}
	}
	decode("model@1", "model@2", "--memory", "8KiB")
	if d.SameDigest || d.Total.Moved == 0 || d.Total.Before == 0 || len(d.Fields) != 3 || d.Fields[0].Moved+d.Fields[1].Moved != d.Total.Moved || len(d.Moved) != 10 {
		t.Errorf("%+v", d.Report)
	}
	farthest, moved := d.Moved[0], d.Total.Moved
	// The name that the report gives a row is the one by which the row is found.
	if out := ok(t, "table", "get", "model@2", farthest.Field+"="+farthest.Value, "--json"); !strings.Contains(out, `"found": true`) {
		t.Errorf("%s=%s: %s", farthest.Field, farthest.Value, out)
	}
	decode("model@2", "model")
	if !d.SameDigest || d.Total.Moved != 0 || len(d.Moved) > 0 {
		t.Errorf("%+v", d.Report)
	}

	// A log of one line names few rows.
	lines := strings.SplitAfterN(read(t, "train.tsv"), "\n", 3)
	write(t, "one.tsv", lines[0]+lines[1])
	decode("model@1", "model@2", "--data", "one.tsv")
	if unknown := d.Fields[2]; d.Fields[0].After != 1 || unknown.After < d.Total.After-4 || d.Total.Moved != moved {
		t.Errorf("%+v", d.Fields)
	}
	decode("model@1", "model@2", "--examples", "1")
	if d.Fields[0].After != 1 {
		t.Errorf("%+v", d.Fields)
	}

	// As many values that mean something else are not compared.
	ok(t, "train", "job.yaml", "--set", "training.warm_start=''", "--set", "output.model_dir=other", "--set", "model.kind=dcn", "--set", "model.embedding_dim=5")
	if text := ok(t, "diff", "model@2", "other"); !strings.Contains(text, "The rows of model@2 consist of a linear weight and an embedding of 4, those of other of an embedding of 5, so none is counted as moved.") {
		t.Error(text)
	}
	decode("model@2", "other")
	if d.Comparable || d.Total.Moved != 0 || d.RowBefore == d.RowAfter || len(d.Moved) > 0 {
		t.Errorf("%+v", d)
	}

	// Without the data of training, rows are not told apart.
	if err := os.Remove("train.tsv"); err != nil {
		t.Fatal(err)
	}
	decode("model@1", "model@2")
	if len(d.Fields) > 0 || d.Total.Moved != moved || d.Moved[0].Key != farthest.Key || d.Moved[0].Value != "" {
		t.Errorf("%+v", d.Report)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"model@1", exitUsage, "want two arguments"},
		{"model@1 model@9", exitIO, "no generation 9"},
		{"model@1 elsewhere", exitIO, "elsewhere"},
		{"model@1 model@2 --data train.tsv", exitIO, "train.tsv"},
		{"model@1 model@2 --data job.yaml", exitData, "job.yaml"},
		{"model@1 model@2 --top -1", exitUsage, "--top -1"},
		{"model@1 model@2 --memory 0", exitUsage, "--memory"},
		{"model@1 model@2 --memory 1", exitUsage, "--memory 1: want 4KiB or more"},
		{"model@1 model@2 --memory many", exitUsage, "--memory"},
	} {
		if o := aibox(append([]string{"diff"}, strings.Fields(c.args)...)...); o.code != c.code || !strings.Contains(o.stderr, c.want) {
			t.Errorf("aibox diff %s: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
	}
}
