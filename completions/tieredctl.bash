# Source this in ~/.bashrc, or put it into /etc/bash_completion.d.
_tieredctl_completion() {
    local IFS=$'\n'
    COMPREPLY=($(
        COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _TIEREDCTL_COMPLETE=complete_bash "$1" 2>/dev/null
    ))
}

complete -o default -F _tieredctl_completion tieredctl
