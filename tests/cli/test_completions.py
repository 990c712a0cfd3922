"""Shell completion: the scripts in the repository are the ones that are printed, and they answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import REPOSITORY, Tieredctl, environment, own_process

SHELLS = ["bash", "zsh", "fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_are_not_stale(shell: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("completions", shell)
    script = (REPOSITORY / "completions" / f"tieredctl.{shell}").read_text(encoding="utf-8")
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert script == outcome.out, "run `make completions`"


def completed(tmp_path: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    program = tmp_path / "tieredctl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tieredctl "$@"\n')
    program.chmod(0o755)
    script = (
        f'PATH="{tmp_path}:$PATH"\nsource "{REPOSITORY}/completions/tieredctl.bash"\n'
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
        "_tieredctl_completion tieredctl\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    command = ["bash", "--norc", "-c", script, "bash", "tieredctl", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("rem",), ["remote"]),
        (("metadata", "se"), ["segments"]),
        (("store", ""), ["inspect", "check"]),
        (("metadata", "segments", "--topic"), ["--topic", "--topic-id"]),
        (("remote", "du", "-o", "js"), ["json", "jsonl"]),
        (("store", "inspect", "--kind", "offset"), ["offset-index"]),
        (("completions", ""), SHELLS),
        (("--",), ["--version", "--no-color", "--context", "--help"]),
        # Nothing is offered, so that bash offers files.
        (("store", "check", "--log-dir", "/"), []),
        (("store", "inspect", "/"), []),
    ],
)
def test_bash_is_answered(tmp_path: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(tmp_path, *words) == offered


def test_bash_loads_the_script_without_complaint() -> None:
    script = f'source "{REPOSITORY}/completions/tieredctl.bash"; complete -p tieredctl'
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "complete -o default -F _tieredctl_completion tieredctl\n"
    assert done.stderr == ""


def test_zsh_and_fish_are_answered() -> None:
    line = "tieredctl metadata se"
    zsh = own_process(_TIEREDCTL_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
    assert zsh.exit_code == 0
    assert zsh.out.startswith('_arguments \'*: :(("segments":')
    variables = {"_TIEREDCTL_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    fish = own_process(**variables, _TYPER_COMPLETE_FISH_ACTION="get-args")
    assert fish.out.startswith("segments\t")
    assert own_process(**variables, _TYPER_COMPLETE_FISH_ACTION="is-args").exit_code == 0
