"""`tieredctl completions SHELL`: the script that a shell sources to complete commands and options.

The scripts ask tieredctl itself, by Typer's protocol: `_TIEREDCTL_COMPLETE` names the shell, and the line so far is in
the variables that Typer reads.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tieredctl.errors import ExitCode

_BASH = r"""# Source this in ~/.bashrc, or put it into /etc/bash_completion.d.
_tieredctl_completion() {
    local IFS=$'\n'
    COMPREPLY=($(
        COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _TIEREDCTL_COMPLETE=complete_bash "$1" 2>/dev/null
    ))
}

complete -o default -F _tieredctl_completion tieredctl
"""
_ZSH = r"""#compdef tieredctl
# Source this in ~/.zshrc after compinit, or save it as _tieredctl in a folder of $fpath.
_tieredctl() {
    eval $(_TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _TIEREDCTL_COMPLETE=complete_zsh "${words[1]}" 2>/dev/null)
}

if [ "$funcstack[1]" = "_tieredctl" ]; then
    _tieredctl "$@"
else
    compdef _tieredctl tieredctl
fi
"""
_FISH = r"""# Put this into ~/.config/fish/completions.
function __tieredctl_complete
    _TIEREDCTL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=$argv[1] \
        _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) tieredctl 2>/dev/null
end

complete --command tieredctl --no-files --condition "__tieredctl_complete is-args" \
    --arguments "(__tieredctl_complete get-args)"
"""


class Shell(StrEnum):
    """A shell that has a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this command."""
    del meaning  # its own text says more
    app.command(noun)(completions)


def completions(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish")]) -> ExitCode:
    """Print a shell's completion script.

    For example: tieredctl completions bash
    """
    print(SCRIPTS[shell], end="")
    return ExitCode.CLEAN
