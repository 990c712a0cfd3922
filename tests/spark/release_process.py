"""A module of the tests in a process that has another release of PySpark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.rigs.availability import rig_unavailable
from tests.rigs.prerequisites import RigMissing
from tests.rigs.spark_releases import installed_spark

_ROOT = Path(__file__).parents[2]


def process_of(
    release: str, module: str, words: Sequence[str], folder: Path, seconds: int
) -> subprocess.CompletedProcess[str]:
    """Runs it in a folder, as the leader of a group of processes; its stderr is in its stdout. Fails, or skips, where
    the release cannot be installed."""
    try:
        spark = installed_spark(release)
    except RigMissing as missing:
        rig_unavailable(str(missing))
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    path = os.pathsep.join([str(spark), str(_ROOT), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=folder,
        env=environment | {"PYTHONPATH": path, "SPARK_HOME": str(spark / "pyspark")},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
