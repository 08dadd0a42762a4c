package cliargs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// testApp has commands, subcommands and flags as aibox has them.
func testApp() *cli.App {
	log := []cli.Flag{&cli.StringFlag{Name: "log-format"}, &cli.StringFlag{Name: "log-level"}}
	text := func(names ...string) []cli.Flag {
		flags := slices.Clone(log)
		for i, n := range names {
			flags = slices.Insert(flags, i, cli.Flag(&cli.StringFlag{Name: n}))
		}
		return flags
	}
	yes := func(names ...string) []cli.Flag {
		flags := slices.Clone(log)
		for i, n := range names {
			flags = slices.Insert(flags, i, cli.Flag(&cli.BoolFlag{Name: n, Usage: "a `SWITCH`"}))
		}
		return flags
	}
	return &cli.App{
		Name:  "aibox",
		Flags: append(slices.Clone(log), cli.HelpFlag),
		Commands: []*cli.Command{
			{Name: "train", Flags: text("set", "date")}, {Name: "eval", Flags: text("model-dir", "data")},
			{Name: "generate", Flags: text("rows")}, {Name: "convert", Flags: text("from", "to-format")},
			{Name: "config", Flags: log, Subcommands: []*cli.Command{
				{Name: "check", Flags: text("set", "date")}, {Name: "show", Flags: text("set")}, {Name: "init", Flags: text("model")},
			}},
			{Name: "inspect", Flags: yes("digest", "json")},
			{Name: "completion", Flags: log}, {Name: "version", Flags: log}, {Name: "help"},
		},
	}
}

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
		{"train a --set b -- --odd.yaml", "train --set b -- a --odd.yaml"},
		{"train help", "train help"}, // an argument
		{"train job.yaml --help", "train --help"},
		{"train -h job.yaml --date 2026-11-20", "train --date 2026-11-20 --help"},
		{"--help train", "train --help"},
		{"config check job.yaml --help", "config check --help"},
		{"train --help -- job.yaml", "train --help"},
		{"config -- check -- --set", "config check -- --set"},
		{"help", "--help"},
		{"h", "--help"},
		{"help train", "train --help"},
		{"help config check", "config check --help"},
		{"config help", "config --help"},
		{"config help check", "config check --help"},
		{"train train", "train train"},
		{"", ""},
	} {
		have, err := Permute(testApp(), append([]string{"aibox"}, strings.Fields(c.have)...))
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
		{"config -- chek", "there is no command `aibox config chek`. Did you mean check? See `aibox config --help`"},
		{"insp model", "there is no command `aibox insp`. Did you mean inspect? See `aibox --help`"},
		{"train --dat x", "aibox train: there is no flag --dat. Did you mean --date? See `aibox train --help`"},
		{"eval --modeldir x", "aibox eval: there is no flag --modeldir. Did you mean --model-dir? See `aibox eval --help`"},
		{"eval --model x", "aibox eval: there is no flag --model. Did you mean --model-dir? See `aibox eval --help`"},
		{"train --frobnicate=7", "aibox train: there is no flag --frobnicate. See `aibox train --help`"},
		{"train job.yaml --set", "aibox train: --set needs a value; see `aibox train --help`"},
		{"-v", "aibox: there is no flag -v. See `aibox --help`"},
		{"--log-fromat json version", "aibox: there is no flag --log-fromat. Did you mean --log-format? See `aibox --help`"},
	} {
		_, err := Permute(testApp(), append([]string{"aibox"}, strings.Fields(c.have)...))
		var usage *Error
		if !errors.As(err, &usage) || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.have, err, c.want)
		}
	}
}
