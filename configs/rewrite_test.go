package configs

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// suggested are what a message says to write instead: as a whole override, as a
// name, or as a key.
var suggested = regexp.MustCompile(`write --set (?:'([^']*)'|(\S+?)\))|needs quotation marks: --set '([^']*)'|did you mean "([^"]*)"|did you mean .([a-z_0-9.\[\]]+).\?`)

const suggestJob = `
data: {train: [a.tsv], format: tsv, header: true, columns: [{name: y, role: label}, {name: u, role: sparse}, {name: x, role: dense}]}
model: {kind: wide_deep, embedding_dim: 4, hidden_layers: [8]}
output: {model_dir: m}
`

// TestSuggestionsAreAccepted: whoever types what a message suggests is not told off
// again.
func TestSuggestionsAreAccepted(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"model.hidden_layers=128", "model.hidden_layers=[128]"},
		{"model.hidden_layers='128'", "model.hidden_layers=[128]"},
		{"model.hidden_layers=128, 64", "model.hidden_layers=[128, 64]"},
		{"model.hidden_layers=0", ""}, // out of range
		{"model.hidden_layers=big", ""},
		{"data.train=a.tsv", "data.train=[a.tsv]"},
		{"data.train=a.tsv,b.tsv", "data.train=[a.tsv, b.tsv]"},
		{"data.train=logs/{a,b}.tsv", `data.train=["logs/{a,b}.tsv"]`},
		{"data.train=2026", `data.train=["2026"]`},
		{"data.columns=y,u", ""},
		{"data.columns[2].transform=log1p", "data.columns[2].transform=[log1p]"},
		{"data.columns[2].transform=clip", ""},
		{"data.columns[2].transform[0]=log1", "log1p"},
		{"data.header=yes", "data.header=true"},
		{"data.header=0", "data.header=false"},
		{"data.header=maybe", ""},
		{"output.model_dir=3", `output.model_dir="3"`},
		{"output.model_dir=true", `output.model_dir="true"`},
		{"output.model_dir={a}", `output.model_dir="{a}"`},
		{"optimizer.dense=adagrad", "optimizer.dense.kind=adagrad"},
		{"optimizer.dense=best", ""},
		{"model.kind=widedeep", "wide_deep"},
		{"data.format=TSV", "tsv"},
		{"data.columns[1].role=sprase", "sparse"},
		{"data.group_by=U", "u"},
		{"training.epoch=2", "epochs"},
		{"epochs=2", "training.epochs"},
		{"transform=[log1p]", "data.columns[0].transform"},
	} {
		var faults FaultsError
		if _, err := Parse("job.yaml", []byte(suggestJob), LoadOptions{Set: []string{c.set}}); !errors.As(err, &faults) {
			t.Errorf("%s: %v", c.set, err)
			continue
		}
		have := ""
		if m := suggested.FindStringSubmatch(faults[0].Message); m != nil {
			have = strings.Join(m[1:], "")
		}
		if have != c.want {
			t.Errorf("%s: suggests %q, want %q: %s", c.set, have, c.want, faults[0].Message)
			continue
		}
		key, value, _ := strings.Cut(c.set, "=")
		again := have
		switch {
		case have == "":
			continue
		case strings.Contains(have, "="):
		case strings.HasPrefix(faults[0].Message, "unknown key"):
			if again = have + "=" + value; !strings.Contains(have, ".") && strings.Contains(key, ".") {
				again = key[:strings.LastIndex(key, ".")+1] + again
			}
		default:
			again = key + "=" + have
		}
		if strings.Contains(again, "[0].transform") {
			again = strings.Replace(again, "[0]", "[2]", 1) // which column is for the user to say
		}
		if _, err := Parse("job.yaml", []byte(suggestJob), LoadOptions{Set: []string{again}}); err != nil {
			t.Errorf("%s: suggests %s, which is refused: %v", c.set, again, err)
		}
	}
}

// TestSuggestionsInFiles: in the file a suggestion is YAML alone.
func TestSuggestionsInFiles(t *testing.T) {
	for have, want := range map[string]string{
		"hidden_layers: 128":                           "(write [128])",
		"hidden_layers: [8]\noptimizer: {dense: adam}": "(write {kind: adam})",
	} {
		job := strings.Replace(suggestJob, "hidden_layers: [8]}", strings.Replace(have, "\n", "}\n", 1), 1)
		if !strings.Contains(have, "\n") {
			job = strings.Replace(job, "128", "128}", 1)
		}
		if _, err := Parse("job.yaml", []byte(job), LoadOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", have, err, want)
		}
	}
}
