"""The command line in a process of its own, and how much memory that took."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from tests.cli.command_line import environment

_MEASURED = """
import sys
from pathlib import Path
from tieredctl.cli.main import run
code = run(sys.argv[2:])
Path(sys.argv[1]).write_text(Path("/proc/self/status").read_text())
sys.exit(code)
"""


class Measured(NamedTuple):
    """How a command line ended, what it said on stderr, and how many bytes of memory its process took at most."""

    exit_code: int
    err: str
    peak: int


def measured(words: Iterable[str | Path], out: IO[bytes], seconds: int) -> Measured:
    """Runs tieredctl, which writes what it prints into a file."""
    with TemporaryDirectory() as folder:
        peak = Path(folder, "peak")
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, str(peak), *map(str, words)],
            env=environment(),
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            timeout=seconds,
            check=False,
        )
        (kibibytes,) = re.findall(r"^VmHWM:\s+(\d+) kB$", peak.read_text(), re.MULTILINE)
    return Measured(done.returncode, done.stderr, int(kibibytes) << 10)
