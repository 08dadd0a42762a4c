package main

import (
	"os"
	"strings"
	"testing"

	"aibox/internal/disk"
)

// TestColumnsThatAreNotThere checks that a mistyped name in --columns is bad usage, which is found
// before the data are read, in every format, and that the error suggests the nearest name.
func TestColumnsThatAreNotThere(t *testing.T) {
	for _, format := range []string{"tsv", "csv", "parquet", "libffm"} {
		t.Run(format, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "job.yaml", strings.NewReplacer("tsv", format).Replace(smallJob))
			ok(t, "generate", "job.yaml")
			ok(t, "train", "job.yaml")
			predict := func(columns string) outcome {
				return aibox("predict", "--model-dir", "model", "--data", "eval."+format, "--output", "p.csv", "--columns", columns)
			}
			for columns, want := range map[string]string{
				"nope":      `no column "nope"`,
				"user,uesr": `Did you mean "user" instead of "uesr"?`,
				"user,user": `column "user" is named twice`,
				"user,":     "empty name",
				"label":     `column "label" is always written`,
			} {
				if format == "libffm" && !strings.Contains(columns, "nope") {
					continue // its columns are not text
				}
				o := predict(columns)
				if o.code != exitUsage || !strings.Contains(o.stderr, want) || disk.Exists("p.csv") {
					t.Errorf("--columns %s: exit %d, want %d and %q: %s", columns, o.code, exitUsage, want, o.stderr)
				}
			}
			o := aibox("predict", "--model-dir", "model", "--data", "eval."+format, "--output", "p.parquet", "--columns", "nope")
			if o.code != exitUsage || disk.Exists("p.parquet") {
				t.Errorf("to Parquet: exit %d: %s", o.code, o.stderr)
			}
		})
	}
	// A column that the model needs is no slip in --columns.
	inSmallJob(t)
	ok(t, "train", "job.yaml")
	write(t, "other.tsv", strings.Replace(read(t, "eval.tsv"), "user", "usr", 1))
	if o := aibox("predict", "--model-dir", "model", "--data", "other.tsv", "--output", "p.csv", "--columns", "ad"); o.code != exitData || !strings.Contains(o.stderr, `Did you mean "usr" instead of "user"?`) {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}

// TestColumnWithAComma checks that predict and convert pass a column through whose name has a
// comma.
func TestColumnWithAComma(t *testing.T) {
	inSmallJob(t)
	ok(t, "train", "job.yaml")
	header, rows, _ := strings.Cut(read(t, "eval.tsv"), "\n")
	write(t, "more.tsv", strings.Join(append(strings.Split(header, "\t"), "city, state"), "\t")+"\n"+strings.ReplaceAll(rows, "\n", "\tBonn, NW\n"))
	ok(t, "predict", "--model-dir", "model", "--data", "more.tsv", "--output", "p.csv", "--columns", `user,"city, state"`)
	if lines := strings.Split(read(t, "p.csv"), "\n"); !strings.HasPrefix(lines[0], `user,"city, state",`) || !strings.Contains(lines[1], `,"Bonn, NW",`) {
		t.Errorf("%q", lines[:2])
	}
	ok(t, "convert", "--from", "more.tsv", "--to", "c.csv", "--columns", `user,"place, old=city, state"`)
	if text := read(t, "c.csv"); !strings.HasPrefix(text, `user,"place, old"`+"\n") {
		t.Errorf("%.80q", text)
	}
}

// TestJoinADirectory checks that --join accepts a directory whose files have meaningless names,
// with the columns that the names of its subdirectories give.
func TestJoinADirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "rows.csv", "day,id\n2026-11-21,b\n2026-11-20,a\n")
	for dt, rows := range map[string]string{"2026-11-20": "id,n\na,1\n", "2026-11-21": "id,n\nb,2\n"} {
		if err := os.MkdirAll("side/dt="+dt, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, "side/dt="+dt+"/000000_0", rows)
	}
	args := []string{"convert", "--from", "rows.csv", "--join", "side", "--on", "id", "--columns", "id,n,dt", "--to", "out.csv"}
	if o := aibox(args...); o.code != exitUsage || !strings.Contains(o.stderr, "--join-format") {
		t.Errorf("without --join-format: exit %d: %s", o.code, o.stderr)
	}
	if o := aibox(append(args, "--join-format", "libsvm")...); o.code != exitUsage || !strings.Contains(o.stderr, "csv, tsv or parquet") {
		t.Errorf("with --join-format libsvm: exit %d: %s", o.code, o.stderr)
	}
	ok(t, append(args, "--join-format", "csv")...)
	if got, want := read(t, "out.csv"), "id,n,dt\nb,2,2026-11-21\na,1,2026-11-20\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
