"""A shell in which somebody types: bash, zsh or fish in a terminal, with the completion script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Self

import pexpect

from tests.cli.command_line import REPOSITORY, environment

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "--no-rcs", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
_BEGIN = {
    "bash": "bind 'set enable-bracketed-paste off'; bind 'set show-all-if-ambiguous on'",
    "zsh": "unset zle_bracketed_paste; autoload -Uz compinit; compinit -D -u; unsetopt beep",
    "fish": "function fish_prompt; echo '> '; end",
}
_PROGRAM = """#!/bin/sh
if [ -n "$_TIEREDCTL_COMPLETE" ]; then
    exec "{python}" -m tieredctl "$@"
fi
printf '%s\\0' "$@" > "{typed}.unfinished"
mv "{typed}.unfinished" "{typed}"
echo "{done}"
"""
_DONE = "arguments were written"
_SECONDS = 60


class InteractiveShell:
    """One, whose `tieredctl` answers completions, and otherwise only writes down its arguments."""

    def __init__(self, shell: str, folder: Path, **variables: str) -> None:
        self._typed = folder / "typed"
        programs, self.home = folder / "programs", folder / "home"
        programs.mkdir()
        self.home.mkdir()
        program = programs / "tieredctl"
        program.write_text(_PROGRAM.format(python=sys.executable, typed=self._typed, done=_DONE))
        program.chmod(0o755)
        known = environment(**variables)
        own = {"PATH": f"{programs}:{known['PATH']}", "HOME": str(self.home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        own |= {"XDG_CONFIG_HOME": str(folder / "configuration"), "XDG_DATA_HOME": str(folder / "data")}
        command, *arguments = SHELLS[shell]
        self._terminal = pexpect.spawn(
            *(command, arguments),
            env={**known, **own},
            cwd=str(self.home),
            encoding="utf-8",
            timeout=_SECONDS,
            dimensions=(50, 200),
        )
        self._terminal.delaybeforesend = None
        script = REPOSITORY / "tieredctl" / "cli" / "completion" / f"script.{shell}"
        self._terminal.sendline(f'{_BEGIN[shell]}; source "{script}"; echo is-"ready"')
        self._terminal.expect_exact("is-ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._terminal.close(force=True)

    def completed(self, line: str) -> list[str]:
        """The arguments that tieredctl is given when the tabulator is pressed at the end of the line, then Enter."""
        self._terminal.send(f"{line}\t")
        return self.entered()

    def expect(self, line: str, shown: str) -> None:
        """Waits until pressing the tabulator at the end of the line shows this."""
        self._terminal.send(f"{line}\t")
        self._terminal.expect_exact(shown)

    def entered(self) -> list[str]:
        """The arguments that tieredctl is given when Enter is pressed."""
        self._typed.unlink(missing_ok=True)
        self._terminal.send("\r")
        self._terminal.expect_exact(_DONE)
        return self._typed.read_bytes().decode().split("\0")[:-1]
