package configs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// savedText is a job as a model keeps it.
func savedText(t *testing.T, j *Job) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := j.Show(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSavedJobFollowsOverrides: what follows from an overridden key of a saved job follows
// from the new value, and what somebody chose stays.
func TestSavedJobFollowsOverrides(t *testing.T) {
	saved := savedText(t, mustParse(t, smallJob, "data.null_values=[NA]", "timezone=Asia/Tokyo", "sparse_table.kind=ssd", "sparse_table.queue_depth=7"))
	parse := func(sets ...string) *Job {
		t.Helper()
		j, err := Parse("job.yaml", saved, LoadOptions{Date: "2026-11-20", Set: sets, Saved: true, Env: noEnv})
		if err != nil {
			t.Fatalf("%v: %v", sets, err)
		}
		return j
	}
	if j := parse(); j.Data.Delimiter != "," || j.SparseTable.QueueDepth != 7 || j.Name != "small" {
		t.Errorf("without overrides: %+v", j)
	}
	if j := parse("data.format=parquet"); j.Data.Header != nil || j.Data.Delimiter != "" || j.Data.NullValues != nil || j.Data.Label != "click" || len(j.Data.Columns) != 3 {
		t.Errorf("parquet: %+v", j.Data)
	}
	if j := parse("data.format=tsv"); j.Data.Delimiter != "\t" || j.Data.Quoting != "none" || !slices.Equal(j.Data.NullValues, []string{"NA"}) {
		t.Errorf("tsv: %+v", j.Data)
	}
	if j := parse("data.format=tsv", "data.delimiter=;"); j.Data.Delimiter != ";" {
		t.Errorf("tsv with a delimiter: %+v", j.Data)
	}
	if j := parse("sparse_table.kind=memory"); j.SparseTable.QueueDepth != 0 || j.zone != "Asia/Tokyo" || j.Name != "small" {
		t.Errorf("a table in memory: %+v, time zone %s, name %s", j.SparseTable, j.zone, j.Name)
	}
	if j := parse("output.model_dir=other"); j.Output.Metrics != "other/metrics.jsonl" {
		t.Errorf("another model directory: %+v", j.Output)
	}
	// An override without an effect is a mistake.
	_, err := Parse("job.yaml", saved, LoadOptions{Date: "2026-11-20", Set: []string{"data.format=parquet", "data.header=true"}, Saved: true, Env: noEnv})
	if err == nil || !strings.Contains(err.Error(), "has no effect") {
		t.Errorf("header of Parquet: %v", err)
	}
}

// TestSavedJobStaysTheSame: an override of something else changes nothing in a saved job.
func TestSavedJobStaysTheSame(t *testing.T) {
	for _, path := range []string{"criteo.yaml", "avazu-csv.yaml", "movielens-csv.yaml", "libsvm.yaml", "parquet.yaml", "hdfs-nightly.yaml", "demo.yaml"} {
		job, err := Load(path, LoadOptions{Date: "2026-11-20", Env: noEnv, Set: []string{"training.max_examples=5"}})
		if err != nil {
			t.Fatal(err)
		}
		saved := savedText(t, job)
		again, err := Parse(path, saved, LoadOptions{Date: "2026-11-20", Env: noEnv, Saved: true, Set: []string{"training.max_examples=6"}})
		if err != nil {
			t.Fatal(err)
		}
		values := func(text []byte) (lines []string) {
			for line := range strings.Lines(string(text)) {
				line, _, _ = strings.Cut(line, "# ")
				lines = append(lines, strings.TrimRight(line, " \n"))
			}
			return lines
		}
		have, want := values(savedText(t, again)), values(saved)
		i := slices.Index(want, "  max_examples: 5")
		if i < 0 {
			t.Fatalf("%s: no max_examples in %s", path, saved)
		}
		want[i] = "  max_examples: 6"
		if !slices.Equal(slices.DeleteFunc(have, func(s string) bool { return s == "" }), slices.DeleteFunc(want, func(s string) bool { return s == "" })) {
			t.Errorf("%s: have\n%s\nwant\n%s", path, strings.Join(have, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestSavedJobOfAnEarlierVersion: a key that its version did not have, where that meant something
// else than the default, stays empty, also if the job is changed; and one that it had stays what it
// was.
func TestSavedJobOfAnEarlierVersion(t *testing.T) {
	const key = "embedding_activation"
	now := savedText(t, mustParse(t, smallJob, "model={kind: aibox}"))
	var earlier []byte
	for line := range bytes.Lines(now) {
		if !bytes.Contains(line, []byte(key)) {
			earlier = append(earlier, line...)
		}
	}
	if len(earlier) == len(now) {
		t.Fatalf("%s is not part of a saved job", key)
	}
	for _, sets := range [][]string{nil, {"training.batch_size=7"}} {
		for want, text := range map[string][]byte{"": earlier, "identity": now} {
			j, err := Parse("job.yaml", text, LoadOptions{Date: "2026-11-20", Set: sets, Saved: true, Env: noEnv})
			if err != nil || j.Model.EmbeddingActivation != want {
				t.Errorf("with overrides %v, the activation of embeddings is %q, want %q (%v)", sets, j.Model.EmbeddingActivation, want, err)
			}
		}
	}
}

// TestManyColumns: what a model keeps of a job of very many columns, with all their defaults, is
// read again, and so is what config show prints.
func TestManyColumns(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const columns = 23000
	var list strings.Builder
	for i := range columns {
		fmt.Fprintf(&list, ", {name: c%d}", i)
	}
	j, err := Parse("job.yaml", []byte("data: {train: [x.csv], format: csv, columns: [{name: y, role: label}"+list.String()+"]}\nmodel: {kind: lr}\noutput: {model_dir: model}\n"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, saved := range []bool{false, true} {
		again, err := Parse("job.yaml", savedText(t, j), LoadOptions{Saved: saved})
		if err != nil {
			t.Fatalf("saved %v: %v", saved, err)
		}
		if len(again.Data.Columns) != columns+1 {
			t.Errorf("saved %v: %d columns", saved, len(again.Data.Columns))
		}
	}
}
