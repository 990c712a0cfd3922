# Put this into ~/.config/fish/completions.
function __tieredctl_complete
    _TIEREDCTL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \
        _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) tieredctl 2>/dev/null
end

complete --command tieredctl --no-files --condition "__tieredctl_complete is-args" \
    --arguments "(__tieredctl_complete get-args)"
