package main

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPermute(t *testing.T) {
	for _, c := range []struct{ have, want string }{
		{"train job.yaml", "train job.yaml"},
		{"train job.yaml --date 2026-11-20", "train --date 2026-11-20 job.yaml"},
		{"train job.yaml --date=2026-11-20 --set a.b=c", "train --date=2026-11-20 --set a.b=c job.yaml"},
		{"--log-format json train job.yaml --log-level warn", "--log-format json train --log-level warn job.yaml"},
		{"inspect model --digest --json", "inspect --digest --json model"},
		{"generate job.yaml --rows -1", "generate --rows -1 job.yaml"},
		{"config check job.yaml --set x=y", "config check --set x=y job.yaml"},
		{"train -set a=b job.yaml", "train -set a=b job.yaml"},
		{"train --date 2026-11-20 -- --odd.yaml --set", "train --date 2026-11-20 -- --odd.yaml --set"},
		{"train -", "train -"},
		{"train help", "train help"}, // an argument
		{"train job.yaml --help", "train --help job.yaml"},
		{"help", "--help"},
		{"h", "--help"},
		{"help train", "train --help"},
		{"help config check", "config check --help"},
		{"config help", "config --help"},
		{"config help check", "config check --help"},
		{"train train", "train train"},
		{"", ""},
	} {
		have, err := permute(newApp(io.Discard, newConsole(io.Discard, false)), append([]string{"aibox"}, strings.Fields(c.have)...))
		if err != nil {
			t.Errorf("%s: %v", c.have, err)
			continue
		}
		if got := strings.Join(have[1:], " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.have, got, c.want)
		}
	}
}

func TestPermuteFaults(t *testing.T) {
	for _, c := range []struct{ have, want string }{
		{"trian job.yaml", "there is no command `aibox trian`. Did you mean train? See `aibox --help`"},
		{"frobnicate", "there is no command `aibox frobnicate`. See `aibox --help`"},
		{"help frobnicate", "there is no command `aibox frobnicate`. See `aibox --help`"},
		{"config chek", "there is no command `aibox config chek`. Did you mean check? See `aibox config --help`"},
		{"insp model", "there is no command `aibox insp`. Did you mean inspect? See `aibox --help`"},
		{"train --dat x", "aibox train: there is no flag --dat. Did you mean --date? See `aibox train --help`"},
		{"eval --modeldir x", "aibox eval: there is no flag --modeldir. Did you mean --model-dir? See `aibox eval --help`"},
		{"eval --model x", "aibox eval: there is no flag --model. Did you mean --model-dir? See `aibox eval --help`"},
		{"train --frobnicate=7", "aibox train: there is no flag --frobnicate. See `aibox train --help`"},
		{"train job.yaml --set", "aibox train: --set needs a value; see `aibox train --help`"},
		{"--log-fromat json version", "aibox: there is no flag --log-fromat. Did you mean --log-format? See `aibox --help`"},
	} {
		_, err := permute(newApp(io.Discard, newConsole(io.Discard, false)), append([]string{"aibox"}, strings.Fields(c.have)...))
		var usage *usageError
		if !errors.As(err, &usage) || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.have, err, c.want)
		}
	}
}

// TestNamesUnique guards the suggestions and permute, which look flags up by
// name: no command may have a flag twice.
func TestNamesUnique(t *testing.T) {
	app := newApp(io.Discard, newConsole(io.Discard, false))
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
