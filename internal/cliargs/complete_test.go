package cliargs

import (
	"bytes"
	"strings"
	"testing"
)

// testValues are those of flags and arguments that have few.
func testValues(name string) []string {
	switch name {
	case "model":
		return []string{"aibox", "dlrm", "dcn", "dcn_v2"}
	case "to-format":
		return []string{"csv", "parquet"}
	case "log-format":
		return []string{"text", "json"}
	case "log-level":
		return []string{"debug", "info", "warn", "error"}
	case "completion":
		return Shells
	}
	return nil
}

func completions(words ...string) string {
	var out bytes.Buffer
	Complete(&out, testApp(), words, testValues)
	var names []string
	for line := range strings.Lines(out.String()) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestComplete(t *testing.T) {
	for _, c := range []struct{ words, want string }{
		{"tr", "train"},
		{"con", "convert config"},
		{"config ", "check show init"},
		{"config c", "check"},
		{"help con", "convert config"},
		{"help config ", "check show init"},
		{"completion ", "bash zsh fish"},
		{"train --", "--set --date --log-format --log-level --help"},
		{"train job.yaml --d", "--date"},
		{"train job.yaml ", ""},
		{"train ", ""}, // files
		{"eval --model-dir ", ""},
		{"config init --model dc", "dcn dcn_v2"},
		{"config init --model = dc", "dcn dcn_v2"},
		{"config init --model=dc", "--model=dcn --model=dcn_v2"},
		{"eval --model-dir=m", ""}, // files
		{"config init --model =", "aibox dlrm dcn dcn_v2"},
		{"convert --from a.csv --to-format p", "parquet"},
		{"--log-format j", "json"},
		{"train --log-level ", "debug info warn error"},
		{"nosuch ", ""},
		{"__co", ""},
	} {
		if have := completions(strings.Split(c.words, " ")...); have != c.want {
			t.Errorf("%q: %s, want %s", c.words, have, c.want)
		}
	}
}
