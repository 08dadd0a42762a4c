package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aibox/trainer/generations"
	"aibox/trainer/inference"
)

// nightlyJob makes smallJob a nightly job: each run starts from the newest model.
var nightlyJob = strings.NewReplacer("name: small", "name: nightly-{{date}}", "  batch_size: 64", "  batch_size: 64\n  warm_start: latest").Replace(smallJob)

// inNightlyJob changes to a new directory with job.yaml, its data and the models of two
// nights.
func inNightlyJob(t *testing.T, set ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "job.yaml", nightlyJob)
	ok(t, "generate", "job.yaml")
	for _, s := range set {
		if dir, ok := strings.CutPrefix(s, "output.remote="); ok {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, date := range []string{"2026-11-19", "2026-11-20"} {
		args := []string{"train", "job.yaml", "--date", date}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		ok(t, args...)
	}
}

// states returns the generations of model, the newest first, in the form "2 published of 2026-11-20
// from 1".
func states(t *testing.T) []string {
	t.Helper()
	var all []generations.Generation
	if err := json.Unmarshal([]byte(ok(t, "generations", "model", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, g := range all {
		if g.Bytes == 0 || g.State != generations.Damaged && g.State != generations.Unfinished && (g.Eval == nil || g.Steps == 0 || g.SavedAt == "") {
			t.Errorf("%+v", g)
		}
		text := strings.Join([]string{"", string(g.State), g.Night, g.StartedFrom}, " ")
		out = append(out, string(rune('0'+g.Generation))+text)
	}
	return out
}

func wantStates(t *testing.T, want ...string) {
	t.Helper()
	if have := states(t); strings.Join(have, ", ") != strings.Join(want, ", ") {
		t.Errorf("generations:\n%s, want\n%s", strings.Join(have, ", "), strings.Join(want, ", "))
	}
}

// TestGenerations lists, reads and publishes generations, as a user does who goes back by a night.
func TestGenerations(t *testing.T) {
	inNightlyJob(t)
	wantStates(t, "2 published 2026-11-20 model@1", "1 kept 2026-11-19 ")
	text := ok(t, "generations", "model")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "generation  state") || !strings.HasPrefix(lines[1], "2 ") || !strings.Contains(lines[1], "published") || !strings.Contains(lines[1], "2026-11-20") || !strings.Contains(lines[2], "  new  ") {
		t.Errorf("printed:\n%s", text)
	}
	digest := map[string]string{}
	for _, name := range []string{"model", "model@1", "model@2", "model/gen-000001", "model/gen-000002/"} {
		digest[name] = ok(t, "inspect", "--digest", name)
	}
	if digest["model"] != digest["model@2"] || digest["model"] == digest["model@1"] || digest["model/gen-000001"] != digest["model@1"] || digest["model/gen-000002/"] != digest["model@2"] {
		t.Errorf("digests: %v", digest)
	}
	// Every command that reads a model takes the name of a generation.
	for _, args := range []string{
		"eval --model-dir model@1 --data eval.tsv", "predict --model-dir model@1 --data eval.tsv --output scores.csv",
		"inspect model@1", "inspect model/gen-000001", "table stats model@1", "table stats model/gen-000001", "table verify model@1", "table get model@1 user=1", "table export model@1 --to rows.parquet",
		"train job.yaml --date 2026-11-21 --set training.warm_start=model@1 --set output.model_dir=other",
	} {
		out := ok(t, strings.Fields(args)...)
		if name := args[strings.LastIndexByte(args, ' ')+1:]; (strings.HasPrefix(args, "inspect") || strings.HasPrefix(args, "table stats")) && !strings.Contains(out, name) {
			t.Errorf("%s does not say which generation:\n%s", args, out)
		}
	}
	var e inference.Evaluation
	if err := json.Unmarshal([]byte(ok(t, "eval", "--model-dir", "model@1", "--data", "eval.tsv", "--json")), &e); err != nil || e.ModelDir != "model@1" || e.Digest != strings.TrimSpace(digest["model@1"]) {
		t.Errorf("%+v, %v", e, err)
	}
	// Back, and on from there.
	if out := ok(t, "rollback", "model"); out != "generation 1 is the model of model now; it was generation 2\n" {
		t.Errorf("%q", out)
	}
	if have := ok(t, "inspect", "--digest", "model"); have != digest["model@1"] {
		t.Errorf("the model has digest %s, want that of the night before", have)
	}
	if s := summaryOf(t, "model"); s.Digest != strings.TrimSpace(digest["model@1"]) {
		t.Errorf("the summary is of %s", s.Digest)
	}
	wantStates(t, "2 kept 2026-11-20 model@1", "1 published 2026-11-19 ")
	if out := ok(t, "rollback", "model", "--to", "1"); !strings.Contains(out, "already") {
		t.Errorf("%q", out)
	}
	if out := ok(t, "rollback", "model", "--to", "2", "--json"); !strings.Contains(out, `"published_before": 1`) || !strings.Contains(out, `"published": 2`) {
		t.Errorf("%s", out)
	}
	ok(t, "rollback", "model")
	ok(t, "train", "job.yaml", "--date", "2026-11-20")
	wantStates(t, "3 published 2026-11-20 model@1", "1 kept 2026-11-19 ")
	if have := ok(t, "inspect", "--digest", "model"); have != digest["model@2"] {
		t.Errorf("the night, trained again, has digest %s, want %s", have, digest["model@2"])
	}

	if err := os.Mkdir("empty", 0o755); err != nil { // as a remote directory before the first night
		t.Fatal(err)
	}
	if out := ok(t, "generations", absolute(t, "empty")); !strings.HasSuffix(out, "/empty has no models\n") {
		t.Errorf("%q", out)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"generations", exitUsage, "name the model directory"},
		{"generations nosuch", exitIO, "no model here"},
		{"generations job.yaml", exitIO, "not a directory"},
		{"generations " + absolute(t, "nosuch"), exitIO, "nosuch: it does not exist: mount its file system"},
		{"generations " + absolute(t, "job.yaml"), exitIO, "job.yaml: it is a file; name a directory"},
		{"generations empty", exitIO, "empty: no model here: it has neither a model that a job has made, nor one that was published to it"},
		{"generations model@1", exitUsage, "name the directory"},
		{"rollback", exitUsage, "name the model directory"},
		{"rollback nosuch", exitIO, "no model here"},
		{"rollback model@1", exitUsage, "`aibox rollback model --to 1`"},
		{"rollback model --to 2", exitIO, "it has no generation 2; it has 1 and 3 (published)"},
		{"rollback model --to 0", exitUsage, "want the number of a generation"},
		{"rollback model --to x", exitUsage, "--to x"},
		{"inspect model@2", exitIO, "it has no generation 2; it has 1 and 3 (published)"},
		{"eval --model-dir model@9 --data eval.tsv", exitIO, "it has no generation 9"},
		{"table stats model@9", exitIO, "it has no generation 9"},
		{"table stats job.yaml@1", exitUsage, "job.yaml is a file"},
		{"train job.yaml --date 2026-11-21 --set training.warm_start=model@9", exitIO, "it has no generation 9"},
		{"train job.yaml --date 2026-11-21 --set training.warm_start=model", exitUsage, `as in "model@3"`},
		{"train job.yaml --date 2026-11-21 --set output.keep_generations=0", exitUsage, "keep_generations"},
	} {
		if o := aibox(strings.Fields(c.args)...); o.code != c.code || !strings.Contains(o.stderr, c.want) {
			t.Errorf("aibox %s: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
	}
	wantStates(t, "3 published 2026-11-20 model@1", "1 kept 2026-11-19 ")

	// A generation that is damaged is not published.
	write(t, "model/gen-000001/job.yaml", "name: other\n")
	if o := aibox("rollback", "model"); o.code != exitIO || !strings.Contains(o.stderr, "it was changed after it was saved") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	write(t, "model/gen-000001/MODEL.json", "{")
	wantStates(t, "3 published 2026-11-20 model@1", "1 damaged  ")
	if o := aibox("rollback", "model", "--to", "1"); o.code != exitIO || !strings.Contains(o.stderr, "damaged") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	// What MODEL.json said is in the generation, too.
	for what, spoil := range map[string]func() error{
		"missing": func() error { return os.Remove("model/MODEL.json") },
		"damaged": func() error { return os.WriteFile("model/MODEL.json", []byte("garbage"), 0o644) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		wantStates(t, "3 kept 2026-11-20 model@1", "1 damaged  ")
		for _, args := range []string{"train job.yaml", "inspect model", "eval --model-dir model --data eval.tsv", "diff model model@3", "publish model --to far", "table stats model"} {
			if o := aibox(strings.Fields(args)...); o.code != exitIO || !strings.Contains(o.stderr, "it has 1 and 3: `aibox rollback model --to 3`") {
				t.Errorf("%s: aibox %s: exit %d: %s", what, args, o.code, o.stderr)
			}
		}
		ok(t, "rollback", "model", "--to", "3")
	}
	if have := ok(t, "inspect", "--digest", "model"); have != digest["model@2"] {
		t.Errorf("the model has digest %s", have)
	}
}

// TestCompactOfAGeneration checks that the table of a generation that is not published can be
// compacted like that of the model, and read afterwards, also after it was published.
func TestCompactOfAGeneration(t *testing.T) {
	inNightlyJob(t, "sparse_table={kind: ssd, memory_bytes: 16MiB, dirs: [a, b]}", "output.keep_generations=3")
	want := ok(t, "inspect", "--digest", "model@1")
	ok(t, "table", "compact", "model@1", "--min-gain", "0.0001")
	for range 2 {
		if have := ok(t, "inspect", "--digest", "model@1"); have != want {
			t.Errorf("digest %s, want %s", have, want)
		}
		ok(t, "table", "compact", "model", "--min-gain", "0.0001")
		ok(t, "rollback", "model", "--to", "1")
	}
	if have := ok(t, "inspect", "--digest", "model"); have != want {
		t.Errorf("digest %s, want %s", have, want)
	}
	if out := ok(t, "table", "orphans", "a", "b", "--model", "model@2"); !strings.Contains(out, "every table belongs to a model") {
		t.Errorf("orphans: %s", out)
	}
	// The model directory is moved: its generations keep their tables.
	if err := os.Rename("model", "moved"); err != nil {
		t.Fatal(err)
	}
	if have := ok(t, "inspect", "--digest", "moved@1"); have != want {
		t.Errorf("digest %s, want %s", have, want)
	}
	if left, err := filepath.Glob("a/*"); err != nil || len(left) != 2 {
		t.Errorf("tables: %v, %v", left, err)
	}
}

// TestRemoteGenerationsShowRows checks that priority saves are shown separately from snapshots, and
// with the run to which they belong.
func TestRemoteGenerationsShowRows(t *testing.T) {
	run := strings.Repeat("0123456789abcdef", 4)
	var out strings.Builder
	err := printRemoteGenerations(&out, []generations.Remote{
		{Generation: 3, State: generations.Published, Job: "ctr", Steps: 9, Bytes: 2048, OwnBytes: 1024},
		{State: generations.Resumable, Job: "ctr", Run: run, Steps: 20, Bytes: 2048, OwnBytes: 1024},
		{State: generations.PriorityRows, Job: "ctr", Run: run, Steps: 24, Rows: 77, Bytes: 3072, OwnBytes: 3072},
	}, 5120)
	lines := strings.Split(out.String(), "\n")
	if err != nil || len(lines) != 6 {
		t.Fatalf("%q, %v", lines, err)
	}
	for i, want := range [][]string{
		{"generation", "state", "job", "steps", "rows", "run"},
		{"3", "published", "ctr", "9"},
		{"resumable", "ctr", "20", "2.0 KiB", "01234567"},
		{"rows", "ctr", "24", "77", "3.0 KiB", "01234567"},
		{"in all: 5.0 KiB"},
	} {
		for _, text := range want {
			if !strings.Contains(lines[i], text) {
				t.Errorf("line %d is %q, without %q", i, lines[i], text)
			}
		}
	}
}
