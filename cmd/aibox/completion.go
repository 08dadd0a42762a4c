package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"aibox/cmd/aibox/internal/cmdline"
	"aibox/cmd/aibox/internal/tablecmd"
	"aibox/configs"
	"aibox/internal/cliargs"
	"aibox/sparsetable"
)

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: `Examples:

  source <(aibox completion bash)             # this shell; or in ~/.bashrc
  aibox completion zsh > ~/.zfunc/_aibox      # a directory of zsh's fpath
  aibox completion fish > ~/.config/fish/completions/aibox.fish`,
		Action: func(c *cli.Context) error {
			shell, err := cliargs.OneArgument(c, "the shell: bash, zsh or fish")
			if err != nil {
				return err
			}
			i := slices.Index(cliargs.Shells, shell)
			if i < 0 {
				return cliargs.Errorf("aibox completion: there is no script for %q, only for bash, zsh and fish.%s", shell, cliargs.DidYouMean("", shell, cliargs.Shells))
			}
			_, err = fmt.Fprint(c.App.Writer, cliargs.Scripts[i])
			return err
		},
	}
}

// completions returns the values that the shell offers for a flag, or for a command's
// argument; none if too many are possible.
func completions(name string) []string {
	switch name {
	case cmdline.LogFormatFlag:
		return cmdline.LogFormats
	case cmdline.LogLevelFlag:
		return cmdline.LogLevels
	case "completion":
		return cliargs.Shells
	case "model":
		return configs.ModelKinds
	case "kind":
		return tablecmd.Kinds
	case "value-format":
		return sparsetable.ValueFormats()
	case "format", "from-format", "to-format":
		return cmdline.Formats
	}
	return nil
}
