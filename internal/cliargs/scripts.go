package cliargs

// Shells are those that have a completion script, in the order of Scripts.
var Shells = []string{"bash", "zsh", "fish"}

// Scripts let the shells complete command lines of aibox.
var Scripts = []string{
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
    [[ $PREFIX == -*=* ]] && compset -P '*='
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
        set -l flag (string match -r -- '^-[^=]*=' $words[-1])
        for path in (__fish_complete_path (string replace -r -- '^-[^=]*=' '' $words[-1]))
            printf "%s\n" "$flag$path"
        end
    end
end
complete -c aibox -f -a '(__aibox_complete)'
`,
}
