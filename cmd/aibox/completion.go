package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"
)

// shells are those that completion has a script for, in the order of scripts.
var shells = []string{"bash", "zsh", "fish"}

var completionScripts = []string{
	`# bash completion for aibox; load with: source <(aibox completion bash)
_aibox() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o bashdefault -o default -F _aibox aibox
`,
	`#compdef aibox
# zsh completion for aibox; load with: source <(aibox completion zsh)
_aibox() {
  local -a lines
  lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -z "${lines[1]}" ]]; then
    _files
    return
  fi
  lines=("${(@)lines//:/\\:}")
  lines=("${(@)lines/$'\t'/:}")
  _describe 'aibox' lines
}
if [[ "${funcstack[1]}" == _aibox ]]; then
  _aibox
else
  compdef _aibox aibox
fi
`,
	`# fish completion for aibox; load with: aibox completion fish | source
function __aibox_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c aibox -f -a '(__aibox_complete)'
`,
}

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
			shell, err := oneArgument(c, "the shell: bash, zsh or fish")
			if err != nil {
				return err
			}
			i := slices.Index(shells, shell)
			if i < 0 {
				return usageErrorf("aibox completion: there is no script for %q, only for bash, zsh and fish.%s", shell, didYouMean("", shell, shells))
			}
			_, err = fmt.Fprint(c.App.Writer, completionScripts[i])
			return err
		},
	}
}
