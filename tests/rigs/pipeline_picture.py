"""A week of the pipeline's tables, for a picture of their page: a captured cluster grows by the day."""

from __future__ import annotations

import os
import shutil
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

from tests.cli.command_line import this_process
from tests.rigs.small_spark import INTERPRETED, SMALL
from tests.spark.pipeline.captured_pipeline import cut_copy, grow

_DAYS = 7
_DAY_MS = 86_400_000
_CONFIG = """
prices:
  - {store: "file:", perGiBMonth: 230, perThousandPuts: 0.05, currency: EUR}
"""


def pipeline_page(cluster: Path) -> Path:
    """The page of `pipeline status --report`, of a cluster with `data` and `bucket`."""
    from tieredctl_spark.session import spark_session

    configuration = cluster / "config.yaml"
    configuration.write_text(_CONFIG)
    configuration.chmod(0o600)
    objects = sorted((file for file in (cluster / "bucket").rglob("*") if file.is_file()), key=lambda file: file.name)
    newest = max(file.stat().st_mtime_ns for file in objects) // 1_000_000
    places = ("--log-dir", "cut", "--store", "file:part", "--layout", "aiven", "--tables", "tables")
    with (
        chdir(cluster),
        patch.dict(os.environ, TIEREDCTL_CONFIG=str(configuration)),
        spark_session({"spark.master": "local[2]"} | SMALL | INTERPRETED),
    ):
        cut_copy(cluster, cluster / "cut", 0.5)
        for day in range(_DAYS):
            share = (day + 3) / (_DAYS + 2)
            for file in objects[: round(len(objects) * share)]:
                copy = Path("part") / file.relative_to(cluster / "bucket")
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy)
            if day == _DAYS - 1:
                grow(cluster / "cut", cluster)
            now_ms = newest + (day + 1) * _DAY_MS
            with patch("tieredctl_spark.cli.commands.pipeline.clock_ms", lambda now_ms=now_ms: now_ms):
                this_process("pipeline", "run", *places)
        this_process("pipeline", "status", "--tables", "tables", "--report", "tables.html")
        return Path("tables.html").absolute()
