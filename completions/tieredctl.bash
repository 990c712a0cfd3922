# Source this in ~/.bashrc, or put it into /etc/bash_completion.d.
_tieredctl_completion() {
    local action kept name meaning
    COMPREPLY=()
    {
        IFS=$'\t' read -r action kept
        while IFS=$'\t' read -r name meaning; do
            COMPREPLY+=("$name")
        done
    } < <(_TIEREDCTL_COMPLETE=bash "$1" "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null </dev/null)
    type compopt >/dev/null 2>&1 && case $action in
        unfinished) compopt -o nospace ;;
        files) compopt -o default ;;
        directories) compopt -o filenames -o dirnames ;;
    esac
}

complete -F _tieredctl_completion tieredctl
# The bash of macOS has no compopt: there, files are offered wherever nothing else is.
type compopt >/dev/null 2>&1 || complete -o default -F _tieredctl_completion tieredctl
