package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aibox/cmd/aibox/internal/tablecmd"
	"aibox/internal/disk"
	"aibox/internal/humanize"
	"aibox/internal/terminal"
	"aibox/reader"
	"aibox/sparsetable"
	"aibox/trainer/modeldir"
)

// onSSDs are the overrides that put a job's table on two SSDs.
var onSSDs = []string{"--set", "sparse_table.kind=ssd", "--set", "sparse_table.memory_bytes=64MiB", "--set", "sparse_table.dirs=[a, b]", "--set", "output.model_dir=ssd"}

// inTables changes to a new directory with two equal models: ssd, whose table is
// in a and b, and model, whose table is in memory.
func inTables(t *testing.T) {
	t.Helper()
	inSmallJob(t)
	trainOnSSDs(t)
	ok(t, "train", "job.yaml")
}

// trainOnSSDs makes the model ssd, whose table is in a and b, with all rows in buckets.
func trainOnSSDs(t *testing.T) {
	t.Helper()
	ok(t, append([]string{"train", "job.yaml"}, onSSDs...)...)
	ok(t, "table", "compact", "ssd", "--min-gain", "0.0001")
}

// digestOf returns the digest of the table in dir.
func digestOf(t *testing.T, dir string, others ...string) string {
	t.Helper()
	o := sparsetable.Options{Kind: sparsetable.KindIn(dir), Dir: dir, ReadOnly: true}
	if len(others) > 0 {
		o.SSD.Dirs = append([]string{dir}, others...)
	}
	tab, err := sparsetable.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	d, err := sparsetable.Digest(t.Context(), tab)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", d)
}

// placeOf returns the directory of the SSD model's table in dir.
func placeOf(t *testing.T, dir string) string {
	t.Helper()
	places, err := filepath.Glob(filepath.Join(dir, "ssd-gen-*"))
	if err != nil || len(places) != 1 {
		t.Fatal(places, err)
	}
	return places[0]
}

// TestTables uses the commands as users do.
func TestTables(t *testing.T) {
	inTables(t)
	want := ok(t, "inspect", "--digest", "model")
	if have := ok(t, "inspect", "--digest", "ssd"); have != want {
		t.Fatalf("digests %s and %s", have, want)
	}

	var r struct {
		Kind string
		Rows int64
		SSD  *sparsetable.Details
	}
	if err := json.Unmarshal([]byte(ok(t, "table", "stats", "ssd", "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Kind != "ssd" || r.SSD == nil || r.SSD.Stats.Rows != r.Rows || len(r.SSD.Directories) != 2 || r.SSD.Lifetime.Pulls == 0 ||
		r.SSD.Stats.BudgetBytes != 64<<20 {
		t.Errorf("stats %+v", r)
	}
	// The space amplification is that of the sizes beside it, and what snapshots take is told apart.
	st := &r.SSD.Stats
	if space := fmt.Sprintf("%s for %s in use: space amplification %.2f\n             %s in files that only snapshots need", humanize.Bytes(st.DiskNeededBytes), humanize.Bytes(st.DiskLiveBytes),
		float64(st.DiskNeededBytes)/float64(st.DiskLiveBytes), humanize.Bytes(st.DiskBytes-st.DiskNeededBytes)); !strings.Contains(ok(t, "table", "stats", "ssd"), space) {
		t.Errorf("stats lack %q", space)
	}
	for _, table := range []string{"ssd", "model"} {
		text := ok(t, "table", "stats", table)
		for _, part := range []string{fmt.Sprintf("%d of 5 float32 values", r.Rows), "deepfm in " + table, "snapshot"} {
			if !strings.Contains(text, part) {
				t.Errorf("stats of %s lack %q:\n%s", table, part, text)
			}
		}
		for line := range strings.Lines(text) {
			if len(line) > 81 && !strings.Contains(line, t.TempDir()[:5]) { // paths of tests are long
				t.Errorf("stats have a line of %d columns: %s", len(line), line)
			}
		}
		if text := ok(t, "table", "verify", table); !strings.Contains(text, fmt.Sprintf("no faults in %d rows", r.Rows)) {
			t.Errorf("verify %s: %s", table, text)
		}
	}

	// A value that the log has, by its field and by its key, from both tables.
	var user string
	for line := range strings.Lines(read(t, "train.tsv")) {
		user = strings.Split(line, "\t")[3]
	}
	key := reader.Key("user", []byte(user))
	a, b := ok(t, "table", "get", "ssd", "user="+user, "0"), ok(t, "table", "get", "model", "user="+user, "0")
	if a != b || !strings.Contains(a, fmt.Sprintf("user=%s, key %d", user, key)) || !strings.Contains(a, "last seen run 1") || !strings.Contains(a, "key 0 (0x0000000000000000): no row") {
		t.Errorf("get prints\n%s and\n%s", a, b)
	}
	var rows []tablecmd.RowReport
	if err := json.Unmarshal([]byte(ok(t, "table", "get", "--json", placeOf(t, "a"), "--dir", placeOf(t, "b"), fmt.Sprint(key))), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || !rows[0].Found || rows[0].Key != key || len(rows[0].Values) != 5 || rows[0].Count == 0 {
		t.Errorf("get --json: %+v", rows)
	}

	// There is nothing to mean instead of a field that there is.
	for _, name := range []string{"user=", "label=1"} {
		if o := aibox("table", "get", "ssd", name); o.code != exitUsage || strings.Contains(o.stderr, "Did you mean") || strings.Contains(o.stderr, "..") {
			t.Errorf("%s: exit %d: %s", name, o.code, o.stderr)
		}
	}

	// Compaction keeps the model, and its one snapshot.
	if text := ok(t, "table", "compact", "ssd", "--min-gain", "0.0001"); !strings.Contains(text, "space amplification") {
		t.Errorf("compact prints %s", text)
	}
	if have := ok(t, "inspect", "--digest", "ssd"); have != want {
		t.Errorf("digest %s after compaction", have)
	}
	ok(t, "eval", "--model-dir", "ssd", "--data", "eval.tsv")

	// Rows go out and come back.
	ok(t, "table", "export", "ssd", "--to", "x.parquet")
	ok(t, "table", "import", "one", "--from", "x.parquet")
	ok(t, "table", "import", "two/a", "--dir", "two/b", "--from", "x.parquet", "--memory", "64MiB")
	ok(t, "table", "import", "three", "--from", "x.parquet", "--kind", "memory")
	ok(t, "table", "export", "three", "--to", "y.parquet")
	if text := ok(t, "table", "import", "one", "--from", "y.parquet"); !strings.Contains(text, fmt.Sprintf("%d rows imported into one, which has %[1]d now", r.Rows)) {
		t.Errorf("import prints %s", text)
	}
	model := digestOf(t, "model/gen-000001/table")
	for dir, digest := range map[string]string{"one": digestOf(t, "one"), "two": digestOf(t, "two/a", "two/b"), "three": digestOf(t, "three")} {
		if digest != model {
			t.Errorf("table %s has digest %s, want %s", dir, digest, model)
		}
	}
	ok(t, "table", "verify", "one")
	ok(t, "table", "verify", "two/b/../a", "--dir", "two/b")
	if text := ok(t, "table", "compact", "one", "--drop-older", "--json"); !strings.Contains(text, `"dropped_snapshots"`) {
		t.Errorf("compact --json prints %s", text)
	}
	// Several files; the later replace the earlier.
	ok(t, "table", "import", "four", "--from", "x.parquet", "--from", "y.parquet", "--value-format", "bfloat16")
	if text := ok(t, "table", "stats", "four"); !strings.Contains(text, fmt.Sprintf("%d of 5 bfloat16 values", r.Rows)) {
		t.Errorf("16 bits: %s", text)
	}
	// 16-bit rows survive the way through float32.
	ok(t, "table", "export", "four", "--to", "z.parquet")
	ok(t, "table", "import", "five", "--from", "z.parquet", "--kind", "memory")
	if a, b := digestOf(t, "four"), digestOf(t, "five"); a != b {
		t.Errorf("16 bits: digests %s and %s", a, b)
	}
}

func TestTableMistakes(t *testing.T) {
	inTables(t)
	ok(t, "table", "export", "model", "--to", "x.parquet")
	ok(t, "table", "import", "t", "--from", "x.parquet")
	write(t, "text.parquet", "no")
	if err := os.Mkdir("empty", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"table stat", exitUsage, "Did you mean stats?"},
		{"table stats", exitUsage, "name the table"},
		{"table stats a b", exitUsage, "want one argument"},
		{"table stats --jsn ssd", exitUsage, "Did you mean --json?"},
		{"table stats ssd --memory lots", exitUsage, "not a size"},
		{"table stats ssd --memory 0", exitUsage, "want more than 0"},
		{"table stats ssd --memory 1MiB", exitUsage, "needs a budget of"},
		{"table stats ssd --dir b", exitUsage, "--dir is for a table that belongs to no model"},
		{"table stats nosuch", exitIO, "no such file"},
		{"table stats empty", exitIO, "there is no table here"},
		{"table stats a", exitIO, "there is no table here"},
		{"table stats ssd --snapshot 77", exitIO, "no such snapshot"},
		{"table stats job.yaml", exitDone, ""},
		{"table stats model/gen-000001/table --dir b", exitUsage, "has only one directory"},
		{"table verify nosuch", exitIO, "no such file"},
		{"table get ssd", exitUsage, "name keys"},
		{"table get", exitUsage, "name the table"},
		{"table get ssd x", exitUsage, "is not a key"},
		{"table get ssd 18446744073709551616", exitUsage, "is not a key"},
		{"table get ssd usr=1", exitUsage, "Did you mean user?"},
		{"table get ssd label=1", exitUsage, "the sparse fields are user, ad"},
		{"table get t user=1", exitUsage, "or the job file with --job"},
		{"table get t user=1 --job job.yaml", exitDone, ""},
		{"table compact model", exitUsage, "kind memory"},
		{"table compact ssd --min-gain 2", exitUsage, "--min-gain 2"},
		{"table export ssd", exitUsage, "--to is missing"},
		{"table export ssd --to x.csv", exitUsage, "ends in .parquet"},
		{"table import new", exitUsage, "--from is missing"},
		{"table import --from x.parquet", exitUsage, "name the directory"},
		{"table import ssd --from x.parquet", exitUsage, "only training writes its table"},
		{"table import new --from nosuch.parquet", exitIO, "not found"},
		{"table import new --from text.parquet", exitData, "not a Parquet file"},
		{"table import new --from train.tsv", exitData, "not a Parquet file"},
		{"table import new --from x.parquet --kind sdd", exitUsage, "Did you mean ssd?"},
		{"table import new --from x.parquet --memory 1MiB", exitUsage, "needs a budget of"},
		{"table import t --from x.parquet --kind memory", exitUsage, "the table in t is of kind ssd"},
		{"table import t --from x.parquet --value-format float16", exitUsage, "has float32 values"},
		{"table import job.yaml --from x.parquet", exitUsage, "is a file"},
	} {
		o := aibox(strings.Fields(c.args)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.stderr) || strings.Contains(o.stderr, "bug in aibox") {
			t.Errorf("aibox %s: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
		if c.code != exitDone && o.stdout != "" {
			t.Errorf("aibox %s: a failure writes to standard output: %.300s", c.args, o.stdout)
		}
	}
	wantOnly(t, ".", "a", "b", "empty", "eval.tsv", "job.yaml", "model", "ssd", "t", "text.parquet", "train.tsv", "x.parquet")
}

// TestTableOfJob checks that a table is found by its job with the date and the overrides with which
// it was trained.
func TestTableOfJob(t *testing.T) {
	inSmallJob(t)
	job := []string{"--date", "2026-11-20", "--set", "output.model_dir=m-{{date}}"}
	ok(t, append([]string{"train", "job.yaml", "--set", "sparse_table.kind=ssd"}, job...)...)
	for _, args := range []string{"stats", "verify", "compact", "get 7", "export --to x.parquet"} {
		name, rest, _ := strings.Cut(args, " ")
		ok(t, append(append([]string{"table", name, "job.yaml"}, strings.Fields(rest)...), job...)...)
	}
	if text := ok(t, append([]string{"table", "stats", "job.yaml"}, job...)...); !strings.Contains(text, "m-2026-11-20") {
		t.Errorf("stats print %s", text)
	}
	ok(t, "table", "import", "t", "--from", "x.parquet")
	ok(t, append([]string{"table", "get", "t", "user=1", "--job", "job.yaml"}, job...)...)
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"stats job.yaml --date 2026-11-21 --set output.model_dir=m-{{date}}", exitIO, "m-2026-11-21"},
		{"stats job.yaml --date yesterday", exitUsage, "--date"},
		{"stats job.yaml --set output.modeldir=m", exitUsage, "model_dir"},
		{"verify m-2026-11-20 --set seed=2", exitUsage, "without a job file, only timezone=NAME can be set"},
		{"get t 7 --set seed=2", exitUsage, "without a job file, only timezone=NAME can be set"},
		{"orphans . --set seed=2", exitUsage, "without a job file, only timezone=NAME can be set"},
	} {
		o := aibox(append([]string{"table"}, strings.Fields(c.args)...)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.stderr) {
			t.Errorf("table %s: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
	}
}

// TestVerifyDamage checks that verify says in which file, where, and in which slot the damage is.
func TestVerifyDamage(t *testing.T) {
	inTables(t)
	files, err := filepath.Glob(filepath.Join(placeOf(t, "b"), "*.bucket"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	data := []byte(read(t, files[0]))
	const at = 4096 // the first bucket of a file that a small job fills
	data[at+50] ^= 1
	if err := os.WriteFile(files[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	o := aibox("table", "verify", "ssd")
	if o.code != exitIO || !strings.Contains(o.stderr, "the table is damaged: 1 fault") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%s at offset %d: slot ", filepath.Join(wd, files[0]), at); strings.Count(o.stdout, "\n") != 1 || !strings.Contains(o.stdout, want) || !strings.Contains(o.stdout, "checksum") {
		t.Errorf("verify prints %q, want %q", o.stdout, want)
	}
	o = aibox("table", "verify", "ssd", "--json")
	var r struct {
		Faults int64
		List   []sparsetable.Fault `json:"fault_list"`
	}
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitIO || r.Faults != 1 || len(r.List) != 1 || r.List[0].Offset != at || r.List[0].Slot < 0 {
		t.Errorf("verify --json: exit %d, %v, %+v", o.code, err, r)
	}
	for _, args := range [][]string{{"inspect", "ssd"}, {"table", "export", "ssd", "--to", "x.parquet"}} {
		if o := aibox(args...); o.code != exitIO || !strings.Contains(o.stderr, fmt.Sprintf("is damaged at offset %d, in the bucket of slot", at)) {
			t.Errorf("aibox %v: exit %d: %s", args, o.code, o.stderr)
		}
	}
	if disk.Exists("x.parquet") {
		t.Error("a failed export leaves a file")
	}
	if err := os.RemoveAll("b"); err != nil {
		t.Fatal(err)
	}
	if o := aibox("table", "verify", "ssd"); o.code != exitIO || !strings.Contains(o.stderr, "no such file") || !strings.Contains(o.stderr, "restore these directories") {
		t.Errorf("without an SSD: exit %d: %s", o.code, o.stderr)
	}
}

// TestVerifyNamedSnapshot checks that verify reports a model whose snapshot does not exist in its
// table or is not its own.
func TestVerifyNamedSnapshot(t *testing.T) {
	inTables(t)
	for name, dirs := range map[string][]string{"ssd": {placeOf(t, "a"), placeOf(t, "b")}, "model": {"model/gen-000001/table"}} {
		o := sparsetable.Options{Kind: sparsetable.KindIn(dirs[0]), Dir: dirs[0]}
		if len(dirs) > 1 {
			o.SSD.Dirs = dirs
		}
		replace := func(old, id uint64) { // the snapshot, until it has that id
			t.Helper()
			tab, err := sparsetable.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for ; old < id; old++ {
				p, err := tab.Snapshot(t.Context(), []byte("another"))
				if err == nil {
					_, err = p.Wait()
				}
				if err = errors.Join(err, tab.DropSnapshot(old)); err != nil {
					t.Fatal(err)
				}
			}
			if err := tab.Close(); err != nil {
				t.Fatal(err)
			}
		}
		wantFault := func(reason string) {
			t.Helper()
			v := aibox("table", "verify", name)
			if v.code != exitIO || !strings.Contains(v.stderr, "the table is damaged: 1 fault") || strings.Count(v.stdout, "\n") != 1 || !strings.Contains(v.stdout, reason) {
				t.Errorf("%s: exit %d: %s%s", name, v.code, v.stdout, v.stderr)
			}
			var r struct {
				Faults int64
				List   []sparsetable.Fault `json:"fault_list"`
			}
			v = aibox("table", "verify", "--json", name)
			if err := json.Unmarshal([]byte(v.stdout), &r); err != nil || v.code != exitIO || r.Faults != 1 || len(r.List) != 1 || !strings.Contains(r.List[0].Reason, reason) {
				t.Errorf("%s --json: exit %d, %v: %+v", name, v.code, err, r)
			}
		}
		manifest := filepath.Join(name, "MODEL.json")
		var m modeldir.Manifest
		if err := json.Unmarshal([]byte(read(t, manifest)), &m); err != nil {
			t.Fatal(err)
		}
		old, other := m.TableSnapshot, m.TableSnapshot+1
		replace(old, other)
		wantFault(fmt.Sprintf("the table has no snapshot %d, which the model names", old))
		key := `"table_snapshot": `
		write(t, manifest, strings.Replace(read(t, manifest), key+fmt.Sprint(old), key+fmt.Sprint(other), 1))
		wantFault(fmt.Sprintf("snapshot %d was not saved together with", other))
		ok(t, "table", "verify", name, "--snapshot", fmt.Sprint(other)) // which is all right by itself
	}
}

// TestTableInUse checks that several commands may read a table at the same time. A reader of a
// model waits while its table is being written. A command that would write an open table does not
// wait, nor does a reader of a table that belongs to no model.
func TestTableInUse(t *testing.T) {
	inTables(t)
	dirs := []string{placeOf(t, "a"), placeOf(t, "b")}
	open := func(readOnly bool) sparsetable.Table {
		tab, err := sparsetable.Open(t.Context(), sparsetable.Options{Kind: sparsetable.KindSSD, ReadOnly: readOnly, SSD: sparsetable.SSDOptions{Dirs: dirs}})
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	tab := open(true)
	ok(t, "table", "stats", "ssd")
	ok(t, "eval", "--model-dir", "ssd", "--data", "eval.tsv")
	if o := aibox("table", "compact", "ssd"); o.code != exitLocked || !strings.Contains(o.stderr, "table is in use") {
		t.Errorf("compact beside a reader: exit %d: %s", o.code, o.stderr)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	tab = open(false)
	for _, args := range []string{"table compact ssd", "table stats " + dirs[0] + " --dir " + dirs[1]} {
		if o := aibox(strings.Fields(args)...); o.code != exitLocked || !strings.Contains(o.stderr, "table is in use") {
			t.Errorf("aibox %s beside a writer: exit %d: %s", args, o.code, o.stderr)
		}
	}
	var readers sync.WaitGroup
	waiting := make(chan struct{}, 5)
	for _, args := range []string{"table stats ssd", "table verify ssd", "table get ssd 1", "inspect ssd", "eval --model-dir ssd --data eval.tsv"} {
		readers.Go(func() {
			var stderr bytes.Buffer
			command := append([]string{"aibox"}, strings.Fields(args)...)
			code := run(t.Context(), command, io.Discard, terminal.New(io.MultiWriter(&stderr, waitingNotice(waiting)), false))
			if code != exitDone {
				t.Errorf("aibox %s: exit %d: %s", args, code, stderr.String())
			}
		})
		<-waiting // one after the other, since the library's parser shares a flag among all commands
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	readers.Wait()
	ok(t, "table", "verify", "ssd")
}

// waitingNotice receives what a command writes, and reports when the command waits for a table.
type waitingNotice chan<- struct{}

func (w waitingNotice) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("waiting until it ends")) {
		w <- struct{}{}
	}
	return len(p), nil
}

// TestInterruptedTables checks that no incomplete file and no incomplete table remains.
func TestInterruptedTables(t *testing.T) {
	inTables(t)
	ok(t, "table", "export", "model", "--to", "x.parquet")
	want := ok(t, "inspect", "--digest", "ssd")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	for _, args := range []string{
		"table stats ssd", "table get ssd 1", "table verify ssd", "table compact ssd",
		"table export ssd --to y.parquet", "table import new --from x.parquet", "table import new --kind memory --from x.parquet",
	} {
		o := aiboxContext(ctx, strings.Fields(args)...)
		if o.code != exitInterrupted || o.stderr != "aibox: interrupted\n" || o.stdout != "" {
			t.Errorf("aibox %s: exit %d: %s%s", args, o.code, o.stdout, o.stderr)
		}
	}
	wantOnly(t, ".", "a", "b", "eval.tsv", "job.yaml", "model", "ssd", "train.tsv", "x.parquet")
	if have := ok(t, "inspect", "--digest", "ssd"); have != want {
		t.Error("interrupted commands have changed the model")
	}
}

// TestInterruptedExport interrupts an export that has begun to write.
func TestInterruptedExport(t *testing.T) {
	t.Chdir(t.TempDir())
	const rows = 200_000
	l := sparsetable.Layout{ValueDim: 8}
	tab, err := sparsetable.Open(t.Context(), sparsetable.Options{Dir: "t", Layout: l})
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	row := make([]float32, l.Words())
	l.SetStats(row, sparsetable.RowStats{Count: 1})
	if _, err := tab.Import(t.Context(), rowFunc(func() (uint64, []float32, bool) { n++; return n, row, n <= rows })); err != nil {
		t.Fatal(err)
	}
	p, err := tab.Snapshot(t.Context(), nil)
	if err == nil {
		_, err = p.Wait()
	}
	if err = errors.Join(err, tab.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan outcome)
	go func() { done <- aiboxContext(ctx, "table", "export", "t", "--to", "x.parquet") }()
	for deadline := time.Now().Add(tooLong); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if temp, _ := filepath.Glob(".x.parquet.*"); len(temp) > 0 || disk.Exists("x.parquet") {
			break
		}
	}
	cancel(errInterrupted)
	if o := <-done; o.code == exitDone {
		t.Log("it was faster")
		wantOnly(t, ".", "t", "x.parquet")
	} else if o.code != exitInterrupted {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	} else {
		wantOnly(t, ".", "t")
	}
}

// rowFunc is a sparsetable.RowSource.
type rowFunc func() (uint64, []float32, bool)

func (f rowFunc) Next() (uint64, []float32, error) {
	key, row, ok := f()
	if !ok {
		return 0, nil, io.EOF
	}
	return key, row, nil
}
