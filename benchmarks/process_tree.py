"""The resources of a command and of all that it starts, Java and Python apart: Spark is both."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SECONDS_BETWEEN_LOOKS = 0.25
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class TreeRun:
    """One run: wall-clock and CPU (user and system) in seconds, peak memory in MB (PSS, so that what processes share
    counts once)."""

    wall: float
    java_cpu: float
    python_cpu: float
    java_megabytes: float
    python_megabytes: float

    @property
    def cpu(self) -> float:
        """Of both."""
        return self.java_cpu + self.python_cpu

    @property
    def megabytes(self) -> float:
        """Of both, each at its peak."""
        return self.java_megabytes + self.python_megabytes


def run_tree(command: Sequence[str], environment: Mapping[str, str], exit_code: int = 0) -> TreeRun:
    """Runs it in a session of its own, by which its processes are found, wherever they were started from. Linux only.

    Raises RuntimeError where it ends otherwise.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    seen = _Seen(process.pid)
    said = b""
    while True:
        try:
            _, said = process.communicate(timeout=_SECONDS_BETWEEN_LOOKS)
            break
        except subprocess.TimeoutExpired:
            seen.look()
    wall = time.perf_counter() - began
    if process.returncode != exit_code:
        raise RuntimeError(f"{command} ended with {process.returncode}: {said.decode(errors='replace')[-2_000:]}")
    return TreeRun(wall, seen.cpu(True), seen.cpu(False), seen.peaks[True] / 1e6, seen.peaks[False] / 1e6)


class _Seen:
    """What each process of a session had used when it was last looked at."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._cpu: dict[int, tuple[bool, float]] = {}
        self.peaks = {True: 0, False: 0}

    def cpu(self, is_java: bool) -> float:
        return sum(seconds for java, seconds in self._cpu.values() if java is is_java)

    def look(self) -> None:
        memory = {True: 0, False: 0}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                name, fields = _stat(folder)
                if int(fields[3]) != self._session:
                    continue
                is_java = name == "java"
                ticks = int(fields[11]) + int(fields[12])
                self._cpu[int(folder.name)] = (is_java, ticks / _TICKS_A_SECOND)
                memory[is_java] += _pss(folder)
            except (FileNotFoundError, ProcessLookupError):
                continue
        self.peaks = {kind: max(peak, memory[kind]) for kind, peak in self.peaks.items()}


def _stat(folder: Path) -> tuple[str, list[str]]:
    """The command's name, and the fields after it, from the state on."""
    text = (folder / "stat").read_text()
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()


def _pss(folder: Path) -> int:
    for line in (folder / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
