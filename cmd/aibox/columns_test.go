package main

import (
	"strings"
	"testing"
)

// TestColumnsThatAreNotThere: a slip in --columns is bad usage, found before the
// data are read, in every format, and the nearest name is told.
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
				"user,user": `column "user" is to be passed through twice`,
				"user,":     "empty name",
				"label":     `column "label" is always written`,
			} {
				if format == "libffm" && !strings.Contains(columns, "nope") {
					continue // its columns are not text
				}
				o := predict(columns)
				if o.code != exitUsage || !strings.Contains(o.stderr, want) || exists("p.csv") {
					t.Errorf("--columns %s: exit %d, want %d and %q: %s", columns, o.code, exitUsage, want, o.stderr)
				}
			}
			o := aibox("predict", "--model-dir", "model", "--data", "eval."+format, "--output", "p.parquet", "--columns", "nope")
			if o.code != exitUsage || exists("p.parquet") {
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
