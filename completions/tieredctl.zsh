#compdef tieredctl
# Source this in ~/.zshrc after compinit, or save it as _tieredctl in a folder of $fpath.
_tieredctl() {
    eval $(_TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _TIEREDCTL_COMPLETE=complete_zsh "${words[1]}" 2>/dev/null)
}

if [ "$funcstack[1]" = "_tieredctl" ]; then
    _tieredctl "$@"
else
    compdef _tieredctl tieredctl
fi
