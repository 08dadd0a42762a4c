package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/terminal"
	"aibox/reader/rowschema"
)

// TestScripts lets the shells that are installed parse their completion scripts.
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
	for _, name := range cmdline.Formats {
		if _, err := rowschema.ParseFormat(name); err != nil {
			t.Error(err)
		}
	}
}

// TestNamesUnique checks that no command has a flag twice. The suggestions and cliargs.Permute look
// flags up by name and rely on that.
func TestNamesUnique(t *testing.T) {
	app := newApp(io.Discard, terminal.New(io.Discard, false))
	for _, c := range app.Commands {
		seen := map[string]bool{}
		for _, f := range c.Flags {
			for _, n := range f.Names() {
				if seen[n] {
					t.Errorf("%s has --%s twice", c.Name, n)
				}
				seen[n] = true
			}
		}
	}
}

// TestCompletions checks that flags with few possible values complete them.
func TestCompletions(t *testing.T) {
	for words, want := range map[string]string{
		"config init --model dc": "dcn", "convert --from a.csv --to-format p": "parquet", "completion z": "zsh", "--log-format j": "json", "tr": "train",
	} {
		if have := ok(t, append([]string{"__complete"}, strings.Fields(words)...)...); !strings.HasPrefix(have, want) {
			t.Errorf("%s: %s, want %s", words, have, want)
		}
	}
}
