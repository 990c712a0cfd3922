"""Ctrl-C in a real process while segments are read."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import environment

# Threads read side by side: one of them says so, for all.
WAITS_FOR_ITS_INPUT_BEFORE_IT_READS = """
import itertools
import sys
from tieredctl.cli.main import main
from tieredctl.storage.file import FileStore

read = FileStore.read
reads = itertools.count()

def announced_read(store, key, *args):
    if next(reads) == 0:
        print("reading", file=sys.stderr, flush=True)
    sys.stdin.readline()
    return read(store, key, *args)

FileStore.read = announced_read
main(sys.argv[1:])
"""


@pytest.mark.parametrize("level", ["headers", "full"])
def test_it_exits_130_and_gives_no_result(captures: Path, level: str) -> None:
    capture = captures / "kafka-4.3.1"
    store = f"file:{capture / 'remote' / 'kafka-tiered-storage'}"
    words = ["verify", "--level", level, "--log-dir", str(capture / "data"), "--store", store, "-o", "json"]
    with subprocess.Popen(
        [sys.executable, "-c", WAITS_FOR_ITS_INPUT_BEFORE_IT_READS, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stderr is not None
        assert "reading" in process.stderr.readline()

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)  # closes its input, so that what is being read comes to its end

    assert process.returncode == 130
    assert out == ""
    assert err == "tieredctl: Interrupted.\n  Run it again: it starts from the beginning.\n"
