package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

const bashCompletion = `# bash completion for aibox; load with: source <(aibox completion bash)
_aibox() {
  local cur words
  cur="${COMP_WORDS[COMP_CWORD]}"
  words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
  if [[ "$cur" == -* ]]; then words+=("$cur"); fi
  mapfile -t COMPREPLY < <(compgen -W "$(aibox "${words[@]}" --generate-bash-completion 2>/dev/null | cut -d: -f1)" -- "$cur")
  return 0
}
complete -o bashdefault -o default -F _aibox aibox
`

const zshCompletion = `#compdef aibox
# zsh completion for aibox; load with: source <(aibox completion zsh)
_aibox() {
  local -a opts
  local cur=${words[-1]}
  if [[ "$cur" == -* ]]; then
    opts=("${(@f)$(${words[@]:0:#words[@]-1} ${cur} --generate-bash-completion 2>/dev/null)}")
  else
    opts=("${(@f)$(${words[@]:0:#words[@]-1} --generate-bash-completion 2>/dev/null)}")
  fi
  if [[ -n "${opts[1]}" ]]; then _describe 'values' opts; else _files; fi
}
compdef _aibox aibox
`

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: `Example:

  source <(aibox completion bash)`,
		Action: func(c *cli.Context) error {
			shell := c.Args().First()
			script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion}[shell]
			if shell == "fish" {
				var err error
				if script, err = c.App.ToFishCompletion(); err != nil {
					return err
				}
			}
			if script == "" || c.NArg() != 1 {
				return usageErrorf("aibox completion: want one of bash, zsh, fish")
			}
			_, err := fmt.Fprint(c.App.Writer, script)
			return err
		},
	}
}
