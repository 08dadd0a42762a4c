package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConvertTakesTheJobsWord checks that convert learns the format of its input from the job file
// if the file's name does not show it, and that there is no header, as for a table of Hive.
func TestConvertTakesTheJobsWord(t *testing.T) {
	t.Chdir(t.TempDir())
	part := filepath.Join("clicks", "dt=2026-11-20", "000000_0")
	if err := os.MkdirAll(filepath.Dir(part), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		part: "0\tshoes\n1\t\\N\n",
		"job.yaml": `data:
  train: [clicks]
  format: tsv
  header: false
  columns: [{name: y, role: label}, {name: query}, {name: dt}]
model: {kind: lr}
output: {model_dir: model}
`,
		"named.tsv": "query\ty\nshoes\t0\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--from", "clicks"}, "y,query,dt\n0,shoes,2026-11-20\n1,,2026-11-20\n"},
		{[]string{"--from", "clicks", "--from-format", "tsv"}, "y,query,dt\n0,shoes,2026-11-20\n1,,2026-11-20\n"},
		{[]string{"--from", "named.tsv", "--no-header=false"}, "query,y\nshoes,0\n"},
	} {
		ok(t, append([]string{"convert", "--job", "job.yaml", "--to", "out.csv"}, c.args...)...)
		if got := read(t, "out.csv"); got != c.want {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}

// TestConvertSaysWhatTheJobMisreads checks the warning about output that the job would read
// differently.
func TestConvertSaysWhatTheJobMisreads(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"in.csv": "1;\"shoes\"\n",
		"job.yaml": `data:
  train: [in.csv]
  format: csv
  header: false
  delimiter: ";"
  quoting: none
  columns: [{name: y, role: label}, {name: query}]
model: {kind: lr}
output: {model_dir: model}
`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const note = "the default of header and delimiter and quoting"
	if out := ok(t, "convert", "--job", "job.yaml", "--from", "in.csv", "--to", "out.csv"); !strings.Contains(out, note) {
		t.Errorf("%s", out)
	}
	if got, want := read(t, "out.csv"), "y,query\n1,\"\"\"shoes\"\"\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if out := ok(t, "convert", "--job", "job.yaml", "--from", "in.csv", "--to", "out.tsv"); strings.Contains(out, note) {
		t.Errorf("%s", out)
	}
}

// TestConvertReadsLinesAsLongAsTheJobs checks that convert reads every file that the job reads,
// with lines of the same length.
func TestConvertReadsLinesAsLongAsTheJobs(t *testing.T) {
	t.Chdir(t.TempDir())
	long := "y,query\n1," + strings.Repeat("x", 1<<20) + "\n"
	for name, text := range map[string]string{
		"long.csv": long,
		"job.yaml": `data:
  train: [long.csv]
  format: csv
  max_line_bytes: 2MiB
  columns: [{name: y, role: label}, {name: query}]
model: {kind: lr}
output: {model_dir: model}
`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, "convert", "--job", "job.yaml", "--from", "long.csv", "--to", "out.csv")
	if read(t, "out.csv") != long {
		t.Error("the row is another one")
	}
	if o := aibox("convert", "--from", "long.csv", "--to", "out.csv"); o.code != exitData || !strings.Contains(o.stderr, "data.max_line_bytes") {
		t.Errorf("%+v; it should say how to read the file", o)
	}
}

// TestConvertDecompressesAsTheJob checks that files whose names do not show their compression are
// decompressed as the job does it, and that files of another format are not.
func TestConvertDecompressesAsTheJob(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "y,query\n1,shoes\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	write(t, "part-0", packed.String())
	write(t, "plain.tsv", strings.ReplaceAll(text, ",", "\t"))
	write(t, "job.yaml", `data:
  train: [part-0]
  format: csv
  compression: gzip
  columns: [{name: y, role: label}, {name: query}]
model: {kind: lr}
output: {model_dir: model}
`)
	for _, from := range []string{"part-0", "plain.tsv"} {
		ok(t, "convert", "--job", "job.yaml", "--from", from, "--to", "out.csv")
		if got := read(t, "out.csv"); got != text {
			t.Errorf("%s: %q, want %q", from, got, text)
		}
	}
}

// TestConvertHidesCells: with a job that wants no text of rows in the log, convert shows none, of rows that
// cannot be read and of those that cannot be written.
func TestConvertHidesCells(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in.csv", "y,n,c\n1,2,a\njane,3,a\n1,jane,a\n")
	for rows, shown := range map[string]bool{"0": false, "9": true} {
		write(t, "job.yaml", `data:
  train: [in.csv]
  format: csv
  quarantine_rows: `+rows+`
  columns: [{name: y, role: label}, {name: n, role: dense}, {name: c, role: sparse}]
model: {kind: lr}
output: {model_dir: model}
`)
		o := aibox("convert", "--json", "--job", "job.yaml", "--from", "in.csv", "--to", "out.libsvm", "--max-bad-rows", "9")
		if o.code != 0 || !strings.Contains(o.stdout, "example") || strings.Contains(o.stdout+o.stderr, "jane") != shown {
			t.Errorf("%s rows: %+v", rows, o)
		}
	}
}
