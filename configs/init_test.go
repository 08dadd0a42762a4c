package configs

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestInitLoadsForEveryModelAndFormat(t *testing.T) {
	for _, model := range ModelKinds {
		for _, format := range table.Find("data.format").Values {
			var b bytes.Buffer
			if err := Init(&b, model, format); err != nil {
				t.Fatal(err)
			}
			j, err := Parse("new.yaml", b.Bytes(), LoadOptions{Env: noEnv})
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", model, format, err, b.String())
				continue
			}
			if j.Model.Kind != model || j.Data.Format != format || len(j.Data.Eval) == 0 {
				t.Errorf("%s, %s: %+v", model, format, j)
			}
			checkRoundTrip(t, j)
			// With every commented key switched on, which only spells out
			// defaults, it is the same job, apart from early stopping.
			full := regexp.MustCompile(`(?m)^( *)#((?:  )*[a-z_0-9]+:.*)$`).ReplaceAllString(b.String(), "$1$2")
			full = strings.Replace(full, "epochs: 1", "epochs: 2", 1)
			if format == "criteo" {
				full = strings.Replace(full, "[{name: C1, role: ignore}]", "[]", 1)
			}
			k, err := Parse("new.yaml", []byte(full), LoadOptions{Env: noEnv})
			if err != nil {
				t.Errorf("%s, %s, all keys: %v\n%s", model, format, err, full)
				continue
			}
			if k.Training.EarlyStopping == nil || k.Data.MaxBadRows != -1 || !k.given["pipeline.chunk_bytes"] || !k.given["data.max_bad_rows"] || !k.given["data.hdfs.timeout_ms"] {
				t.Errorf("%s, %s: not all keys were there:\n%s", model, format, full)
			}
		}
	}
}

func TestInitSuggestsNames(t *testing.T) {
	for _, c := range []struct{ model, format, want string }{
		{"dlmr", "criteo", `"dlmr" is not a model: did you mean "dlrm"?`},
		{"dlrm", "CSV", `"CSV" is not a format: did you mean "csv"?`},
		{"transformer", "csv", "allowed: aibox, dlrm"},
	} {
		if err := Init(&bytes.Buffer{}, c.model, c.format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.model, c.format, err, c.want)
		}
	}
}

// TestModelDirOfTheReadme: the commands of README.md find the model that a new job
// file makes.
func TestModelDirOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range ModelKinds {
		var b strings.Builder
		if err := Init(&b, model, "criteo"); err != nil {
			t.Fatal(err)
		}
		job, err := Parse("job.yaml", []byte(b.String()), LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := "aibox eval    --model-dir " + job.Output.ModelDir + " "; !strings.Contains(string(readme), want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
}

// TestInitWrapsComments: a template stays on one line, and the lines of an item of a list
// are indented to its text.
func TestInitWrapsComments(t *testing.T) {
	var b bytes.Buffer
	if err := Init(&b, "aibox", "csv"); err != nil {
		t.Fatal(err)
	}
	inItem := false
	for line := range strings.Lines(b.String()) {
		if strings.Count(line, "{{") != strings.Count(line, "}}") {
			t.Errorf("a template is broken: %s", line)
		}
		text, comment := strings.CutPrefix(strings.TrimLeft(line, " "), "# ")
		switch {
		case !comment:
			inItem = false
		case strings.HasPrefix(text, "- "):
			inItem = true
		case inItem && !strings.HasPrefix(text, "  "):
			t.Errorf("a line of an item is not indented: %s", line)
		}
	}
}
