#compdef tieredctl
# Source this in ~/.zshrc after compinit, or save it as _tieredctl in a folder of $fpath.
_tieredctl() {
    local action kept line
    local -a before lines names shown
    (( CURRENT > 2 )) && before=("${(@Q)words[2,CURRENT-1]}")
    lines=("${(@f)$(_TIEREDCTL_COMPLETE=zsh "${(Q)words[1]}" "${before[@]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
    action=${lines[1]%%$'\t'*} kept=${lines[1]#*$'\t'}
    for line in "${(@)lines[2,-1]}"; do
        [[ -n $line ]] || continue
        names+=("${line%%$'\t'*}")
        shown+=("${line%%$'\t'*}${${line#*$'\t'}:+  -- ${line#*$'\t'}}")
    done
    [[ -n $kept ]] && compset -P "${(b)kept}"
    case $action in
        words) compadd -l -d shown -a names ;;
        unfinished) compadd -S '' -d shown -a names ;;
        files) _files ;;
        directories) _files -/ ;;
    esac
}

if [ "$funcstack[1]" = "_tieredctl" ]; then
    _tieredctl "$@"
else
    compdef _tieredctl tieredctl
fi
