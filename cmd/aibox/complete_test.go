package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"

	"aibox/reader"
)

func completions(words ...string) string {
	var out bytes.Buffer
	complete(&out, newApp(io.Discard, newConsole(io.Discard, false)), words)
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
		{"config init --model =", "aibox dlrm wide_deep deepfm dcn dcn_v2 fm lr"},
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

// TestScripts lets the shells that are there read their scripts.
func TestScripts(t *testing.T) {
	for _, c := range []struct {
		shell string
		args  []string
	}{{"bash", []string{"-n"}}, {"zsh", []string{"-n"}}, {"fish", []string{"--no-execute"}}} {
		script := ok(t, "completion", c.shell)
		if _, err := exec.LookPath(c.shell); err != nil {
			t.Logf("%s is not installed: its script is not checked", c.shell)
			continue
		}
		cmd := exec.Command(c.shell, c.args...)
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", c.shell, err, out)
		}
	}
}

// TestBashCompletes runs the script as bash does.
func TestBashCompletes(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	script := ok(t, "completion", "bash") + `
COMP_WORDS=("$SELF" config init --model dc); COMP_CWORD=4; _aibox; echo "${COMPREPLY[*]}"
COMP_WORDS=("$SELF" train job.yaml --d); COMP_CWORD=3; _aibox; echo "${COMPREPLY[*]}"
COMP_WORDS=("$SELF" eval --model-dir ""); COMP_CWORD=3; _aibox; echo "${COMPREPLY[*]}"
`
	cmd := exec.Command("bash", "--norc", "-c", script)
	cmd.Env = append(cmd.Environ(), childVariable+"=1", "SELF="+self(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if have, want := string(out), "dcn\ndcn_v2\n--date\n\n"; strings.ReplaceAll(have, " ", "\n") != want {
		t.Errorf("bash completes %q, want %q", have, want)
	}
}

func TestFormatsAreTheReaders(t *testing.T) {
	for _, name := range formats {
		if _, err := reader.ParseFormat(name); err != nil {
			t.Error(err)
		}
	}
}
