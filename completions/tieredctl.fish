# Put this into ~/.config/fish/completions.
function __tieredctl_ask
    set --local line (commandline --current-process --cut-at-cursor | string collect)
    if not set --query __tieredctl_line; or test "$__tieredctl_line" != "$line"
        set --global __tieredctl_line $line
        set --local words (commandline --tokenize --current-process --cut-at-cursor)
        set --local current (commandline --current-token --cut-at-cursor | string replace --regex '^["\']' '')
        set --local program $words[1]
        set --erase words[1]
        set --global __tieredctl_answer (_TIEREDCTL_COMPLETE=fish $program $words "$current" 2>/dev/null </dev/null)
    end
end

# The next line may be the same, and what is known by then another.
function __tieredctl_forget --on-event fish_prompt
    set --erase __tieredctl_line
end

function __tieredctl_wants_files
    __tieredctl_ask
    test "$__tieredctl_answer[1]" = files\t
end

function __tieredctl_candidates
    __tieredctl_ask
    set --local first (string split --max 1 \t -- "$__tieredctl_answer[1]")
    set --local path (commandline --current-token --cut-at-cursor | string replace -- "$first[2]" '')
    switch "$first[1]"
        case words unfinished
            set --query __tieredctl_answer[2]; and printf '%s\n' $__tieredctl_answer[2..]
        case files
            if test -n "$first[2]"
                printf "$first[2]%s\n" (complete --do-complete "'' $path")
            end
        case directories
            printf '%s\n' "$first[2]"(__fish_complete_directories "$path" '')
    end
end

complete --command tieredctl --no-files --arguments '(__tieredctl_candidates)'
complete --command tieredctl --condition __tieredctl_wants_files --force-files
