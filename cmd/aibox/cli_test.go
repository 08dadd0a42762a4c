package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/internal/cliargs"
	"aibox/internal/terminal"
)

// TestUsage runs command lines that end before any work is done.
func TestUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "job.yaml", smallJob)
	write(t, "typo.yaml", strings.Replace(smallJob, "kind: deepfm", "kind: depfm", 1))
	write(t, "empty.yaml", "")
	write(t, "binary.yaml", "\x00\xff\xfe")
	for _, c := range []struct {
		args   string
		code   int
		stdout string // part of it
		stderr string // part of it
	}{
		{"", exitDone, "COMMANDS:", ""},
		{"--help", exitDone, "130  interrupted", ""},
		{"--version", exitDone, "aibox " + version, ""},
		{"version", exitDone, "kernels", ""},
		{"version --log-format=yaml", exitUsage, "", "want text or json"},
		{"--log-level loud version", exitUsage, "", "want debug, info, warn or error"},
		{"--log-level wran version", exitUsage, "", "Did you mean warn?"},
		{"version x", exitUsage, "", `unexpected argument "x"`},
		{"help config check", exitDone, "aibox config check", ""},
		{"config", exitDone, "COMMANDS:", ""},
		{"config chek", exitUsage, "", "Did you mean check?"},
		{"trian", exitUsage, "", "Did you mean train?"},
		{"train", exitUsage, "", "name the job file"},
		{"train a b", exitUsage, "", "want one argument, the job file, but there are 2: a b"},
		{"train nosuch.yaml", exitIO, "", "nosuch.yaml: no such file"},
		{"train .", exitIO, "", "is a directory"},
		{"train empty.yaml", exitJob, "", "data.train: is missing"},
		{"train binary.yaml", exitJob, "", "binary.yaml:1:"},
		{"train job.yaml", exitIO, "", "eval.tsv: not found"},
		{"config check job.yaml", exitDone, "job.yaml: no faults", ""},
		{"config check typo.yaml", exitJob, "", `typo.yaml:7:9: model.kind: "depfm" is not allowed: did you mean "deepfm"?`},
		{"config check job.yaml --set model.knd=fm", exitUsage, "", "did you mean `kind`?"},
		{"config check job.yaml --set model", exitUsage, "", "key=value"},
		{"config check job.yaml --set data.train=[a.tsv,b.tsv]", exitDone, "no faults", ""},
		{"config show job.yaml --set data.train=[a.tsv,b.tsv]", exitDone, "train: [a.tsv, b.tsv]", ""},
		{"config check job.yaml --date tomorrow", exitUsage, "", `"tomorrow" is not a date`},
		{"train job.yaml --date=", exitUsage, "", "aibox train: --date is empty"},
		{"config show job.yaml --date=", exitUsage, "", "--date is empty"},
		{"tune job.yaml --output=", exitUsage, "", "--output is empty"},
		{"tune job.yaml --over l2 --epochs 2", exitUsage, "", "--epochs 2: --over does not include epochs"},
		{"tune job.yaml --set training={epochs:4,early_stopping:{}} --epochs 2", exitUsage, "", "--epochs 2: the job has training.early_stopping"},
		{`config show job.yaml --set data.train=["logs/{{date}}.tsv"] --date 2026-11-20`, exitDone, "logs/2026-11-20.tsv", ""},
		{"config init --model dlmr", exitUsage, "", "Did you mean dlrm?"},
		{"config init --format cvs", exitUsage, "", "Did you mean csv?"},
		{"config init x", exitUsage, "", "unexpected argument"},
		{"eval", exitUsage, "", "--model-dir and --data are missing"},
		{"eval --data= --model-dir m", exitUsage, "", "--data is empty"},
		{"eval model --data x", exitUsage, "", `unexpected argument "model"`},
		{"eval --model-dir nosuch --data x", exitIO, "", "no model here"},
		{"predict", exitUsage, "", "--model-dir, --data and --output are missing"},
		{"restore --to m", exitUsage, "", "--from is missing; see `aibox restore --help`, or name the job file"},
		{"predict --model-dir m --data x", exitUsage, "", "--output is missing"},
		{"inspect", exitUsage, "", "name the model directory"},
		{"inspect nosuch", exitIO, "", "no model here"},
		{"eval --model-dir hdfs://nn/models@3 --data x", exitIO, "", "`aibox restore --from hdfs://nn/models --to DIR`"},
		{"train job.yaml --wait 2", exitUsage, "", "--wait 2: want a duration, such as 90m"},
		{"inspect job.yaml", exitIO, "", "not a directory"},
		{"generate job.yaml --rows 1e6", exitUsage, "", "--rows 1e6: want a whole number"},
		{"generate job.yaml --rows -1", exitUsage, "", "want 0 or more"},
		{"generate job.yaml --json=maybe", exitUsage, "", "--json maybe: want true or false"},
		{"generate job.yaml --day 1", exitUsage, "", "need --output"},
		{"generate job.yaml --output x.tsv --day -1", exitUsage, "", "--day -1"},
		{"generate job.yaml --output x.parquet", exitUsage, "", "data.format is tsv"},
		{"generate job.yaml --output x.tsv --eval-rows 5", exitUsage, "", "exclude each other"},
		{"convert --to x.csv", exitUsage, "", "--from is missing"},
		{"convert --from a.foo --to b.csv", exitUsage, "", "give --from-format"},
		{"convert --from a.csv --from b.tsv --to c.csv", exitUsage, "", "must have the same format"},
		{"convert --from a.csv --to b.csv --to c.csv", exitUsage, "", "give it once, or twice with --split"},
		{"convert --from a.csv --to b.csv --split 0.5", exitUsage, "", "--to is needed twice"},
		{"convert --from a.csv --to b.csv --to c.csv --split 80", exitUsage, "", "want a share between 0 and 1"},
		{"convert --from a.csv --to b.csv --to-format parket", exitUsage, "", "Did you mean parquet?"},
		{"convert --from a.csv --to b.csv --on x", exitUsage, "", "need --join"},
		{"convert --from a.csv --to b.csv --join s.csv", exitUsage, "", "needs --on"},
		{"convert --from a.csv --to b.csv --memory lots", exitUsage, "", "not a size"},
		{"convert --from a.csv --to b.csv --memory -1", exitUsage, "", "want more than 0"},
		{"convert --from a.csv --to b.csv --max-bad-rows -2", exitUsage, "", "want 0 or more, or -1"},
		{"convert --from a.csv --to b.csv --max-lost-fraction NaN", exitUsage, "", "want a share from 0 to 1"},
		{"convert --from a.csv --to b.csv --no-header", exitUsage, "", "--no-header"},
		{"convert --from a.csv --to b.csv --set a=b", exitUsage, "", "without a job file"},
		{"convert --from a.csv --to b.csv --limit x", exitUsage, "", "--limit x: want a whole number"},
		{"convert --from a.csv --to b.csv", exitIO, "", "a.csv: not found"},
		{"completion tcsh", exitUsage, "", "no script for"},
		{"completion", exitUsage, "", "bash, zsh or fish"},
	} {
		o := aibox(strings.Fields(c.args)...)
		if o.code != c.code || !strings.Contains(o.stdout, c.stdout) || !strings.Contains(o.stderr, c.stderr) {
			t.Errorf("aibox %s: exit %d, want %d\nstdout: %.300s\nstderr: %s", c.args, o.code, c.code, o.stdout, o.stderr)
		}
		if c.code != exitDone && o.stdout != "" {
			t.Errorf("aibox %s: a failure writes to standard output: %.300s", c.args, o.stdout)
		}
		if strings.Contains(o.stderr, "bug in aibox") || strings.Contains(o.stderr, "aibox: aibox") {
			t.Errorf("aibox %s: %s", c.args, o.stderr)
		}
		if c.code == exitDone {
			continue
		}
		j := aibox(append([]string{"--log-format", "json"}, strings.Fields(c.args)...)...)
		if !strings.Contains(c.args, "--log-format") {
			wantJSONLines(t, j.stderr)
		}
	}
	wantOnly(t, ".", "binary.yaml", "empty.yaml", "job.yaml", "model", "typo.yaml")
	wantOnly(t, "model", "LOCK", "summary-failed.json") // of the training without data
}

// TestEmptyTexts checks that an empty argument or flag, which a script passes if a variable is not
// set, is an error of the command line.
func TestEmptyTexts(t *testing.T) {
	for _, args := range [][]string{
		{"train", ""}, {"config", "check", ""}, {"inspect", ""}, {"rollback", ""}, {"diff", "a", ""}, {"completion", ""}, {"table", "stats", ""},
		{"table", "get", "", "1"}, {"table", "get", "model", ""}, {"table", "orphans", ""}, {"train", "job.yaml", "--date", ""}, {"train", "job.yaml", "--set", ""},
		{"eval", "--model-dir", "model", "--data", ""}, {"eval", "--model-dir", "", "--data", "x"}, {"table", "orphans", "d", "--model", ""}, {"restore", "--from", "r", "--to", "m", "--dirs", ""},
	} {
		if o := aibox(args...); o.code != exitUsage || !strings.Contains(o.stderr, " is empty; ") || o.stdout != "" {
			t.Errorf("%q: exit %d: %s", args, o.code, o.stderr)
		}
	}
}

// TestHelp checks that the help of every command says what it does, with examples that its own
// parser accepts.
func TestHelp(t *testing.T) {
	app := newApp(io.Discard, terminal.New(io.Discard, false))
	var visit func(path string, c *cli.Command)
	visit = func(path string, c *cli.Command) {
		path += " " + c.Name
		o := aibox(append(strings.Fields(path)[1:], "--help")...)
		if with := aibox(append(strings.Fields(path)[1:], "--help", "job.yaml")...); len(c.Subcommands) == 0 && c.Name != "help" && with != o {
			t.Errorf("%s --help job.yaml: exit %d: %s%s", path, with.code, with.stdout, with.stderr)
		}
		if o.code != exitDone || c.Name != "help" && !strings.Contains(o.stdout, path+" - "+c.Usage) {
			t.Errorf("%s --help: exit %d: %s%s", path, o.code, o.stdout, o.stderr)
		}
		for line := range strings.Lines(o.stdout) {
			if strings.Contains(line, "%!") {
				t.Errorf("%s --help: %s", path, line)
			}
		}
		for _, s := range c.Subcommands {
			visit(path, s)
		}
		if len(c.Subcommands) > 0 || c.Name == "version" || c.Name == "help" {
			return
		}
		if !strings.Contains(c.Description, "Examples:\n\n  ") {
			t.Errorf("%s has no examples", path)
		}
		for _, e := range examples(c.Description) {
			if _, err := cliargs.Permute(newApp(io.Discard, terminal.New(io.Discard, false)), e); err != nil {
				t.Errorf("example %v: %v", e, err)
			}
		}
	}
	for _, c := range app.Commands {
		visit("aibox", c)
	}
	for _, e := range examples(app.Description) {
		if _, err := cliargs.Permute(app, e); err != nil {
			t.Errorf("example %v: %v", e, err)
		}
	}
}

// examples returns the command lines in a description, split into words.
func examples(description string) [][]string {
	var out [][]string
	for line := range strings.Lines(strings.ReplaceAll(description, "\\\n", " ")) {
		line, _, _ = strings.Cut(line, " > ")
		line, _, _ = strings.Cut(line, " #")
		if words := strings.Fields(line); strings.HasPrefix(line, "  aibox ") {
			out = append(out, words)
		}
	}
	return out
}

func TestShippedJobFiles(t *testing.T) {
	files, err := filepath.Glob("../../configs/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d job files, %v", len(files), err)
	}
	for _, f := range files {
		ok(t, "config", "check", f, "--date", "2026-11-20")
		shown := ok(t, "config", "show", f, "--date", "2026-11-20")
		// What is shown is a job file again, of the same job.
		again := filepath.Join(t.TempDir(), "shown.yaml")
		write(t, again, shown)
		ok(t, "config", "check", again, "--date", "2026-11-20")
	}
}

func TestInitJobFiles(t *testing.T) {
	dir := t.TempDir()
	for _, format := range cmdline.Formats {
		for _, model := range []string{"dlrm", "lr"} {
			f := filepath.Join(dir, model+format+".yaml")
			write(t, f, ok(t, "config", "init", "--model", model, "--format", format))
			ok(t, "config", "check", f)
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	t.Chdir(t.TempDir())
	write(t, "job.yaml", smallJob)
	if err := os.Chmod("job.yaml", 0); err != nil {
		t.Fatal(err)
	}
	if o := aibox("train", "job.yaml"); o.code != exitIO || !strings.Contains(o.stderr, "permission denied") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}
