"""In which order a process reads what is in a captured cluster, as its interpreter sees files opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.cli.command_line import SECONDS, environment
from tests.spark.damage import REMOTE

STORE_LISTED, LOCAL_LOGS, METADATA = "the store is listed", "local logs", "metadata"
COMMAND_LINE, SPARK_JOB = "tieredctl.cli.main", "tieredctl_spark.jobs.verify"
_PROGRAM = """
import importlib, json, os, sys

module, out, cluster, remote, words = json.loads(sys.argv[1])
metadata = f"{cluster}/data/__remote_log_metadata-"
order = []

def kind(event, path):
    if event == "os.scandir" and path.rstrip("/") == remote:
        return "the store is listed"
    if event == "open" and path.endswith(".log") and path.startswith(metadata):
        return "metadata"
    if event == "open" and path.endswith("/leader-epoch-checkpoint") and "/__" not in path:
        return "local logs"

def note(event, arguments):
    if event in ("open", "os.scandir") and isinstance(arguments[0], (str, os.PathLike)):
        seen = kind(event, os.path.abspath(arguments[0]))
        if seen and order[-1:] != [seen]:
            order.append(seen)

main = importlib.import_module(module).main
sys.addaudithook(note)
try:
    code = main(words)
except SystemExit as end:
    code = end.code
with open(out, "w") as file:
    json.dump([int(code or 0), order], file)
"""


class Reading(NamedTuple):
    """How a `main` ended, what it read in which order, what follows itself once, and what it printed."""

    exit_code: int
    order: list[str]
    printed: str


def read_in_order(module: str, cluster: Path, out: Path, words: Sequence[str | Path]) -> Reading:
    """Runs the `main` of a module in a process of its own, which leaves in `out` what it read."""
    told = [module, str(out), str(cluster), str(cluster / REMOTE), [str(word) for word in words]]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(told)],
        capture_output=True,
        text=True,
        # Without a plan key of another test: who has one also reads which losses it accepted.
        env=environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path)), XDG_CONFIG_HOME=str(out.with_suffix(".d"))),
        timeout=SECONDS,
        check=False,
    )
    assert out.exists(), done.stderr
    code, order = json.loads(out.read_text())
    return Reading(code, order, done.stdout)
