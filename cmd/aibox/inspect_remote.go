package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/internal/humanize"
	"aibox/trainer/generations"
	"aibox/trainer/remote"
)

// remoteModels splits the name of a remote directory, or of one of its generations; ok: it is one.
func remoteModels(name string) (uri string, number int, ok bool) {
	if remote.IsLocal(name) { // it may end like the name of a generation
		return name, 0, true
	}
	uri, number = remote.SplitURI(name)
	return uri, number, isRemote(uri)
}

// isRemote reports whether a name is that of a remote directory, and not of a model directory.
func isRemote(name string) bool { return strings.Contains(name, "://") || remote.IsLocal(name) }

// inspectRemote lists the models of a remote directory, or one of them, and verifies every file of them.
func inspectRemote(c *cli.Context, job *configs.Job, uri string, number int) error {
	if c.Bool("digest") {
		return cliargs.Errorf("%s: --digest is for a model directory; `aibox generations --json %s` has the digests that were published", cliargs.CommandPath(c), uri)
	}
	v, err := generations.VerifyRemote(c.Context, job, uri, number, cmdline.NewLogger(c))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = cmdline.PrintJSON(c.App.Writer, v)
	} else {
		err = printVerified(c, v)
	}
	if err != nil {
		return err
	}
	return v.Err()
}

func printVerified(c *cli.Context, v *generations.Verified) error {
	if len(v.Generations) > 0 {
		if err := printRemoteGenerations(c.App.Writer, v.Generations, v.TotalBytes); err != nil {
			return err
		}
	}
	text := ""
	for _, f := range v.Faults {
		text += f.String() + "\n"
	}
	switch {
	case len(v.Faults) > 0:
	case len(v.Generations) == 0:
		text = v.Remote + " has no models\n"
	default:
		text = fmt.Sprintf("%s verified, no faults\n", humanize.Count(int64(v.Files), "file"))
	}
	return cmdline.WriteLines(c.App.Writer, text)
}
