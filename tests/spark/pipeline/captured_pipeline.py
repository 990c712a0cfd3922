"""The pipeline on a captured cluster, in the test's own process and session."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from tieredctl_spark.jobs import pipeline as job
from tieredctl_spark.tables.files import read_rows
from tieredctl_spark.tables.kinds import PROVENANCE, TABLES

_OWN = {*PROVENANCE.names, "day", "validTo"}
_OF_LATER_OFFSETS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")
_TIMES = {"firstSeen", "lastSeen", "verified"}


@dataclass(frozen=True)
class CapturedPipeline:
    """Where a captured cluster is, and its tables."""

    data: Path
    store: Path
    layout: str
    tables: Path

    @classmethod
    def of_kafka(cls, cluster: Path, tables: Path) -> CapturedPipeline:
        """With Kafka's own LocalTieredStorage."""
        return cls(cluster / "data", cluster / "remote/kafka-tiered-storage", "local", tables)

    @property
    def places(self) -> tuple[str, ...]:
        """As the command line takes them."""
        return ("--log-dir", str(self.data), "--store", f"file:{self.store}", "--layout", self.layout)

    def run(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Runs the job: its exit code, and the summary that it prints, with the tables' rows as `rows`."""
        return self.run_into("--tables", str(self.tables), *words)

    def run_into(self, *words: str) -> tuple[int, dict[str, Any]]:
        """The same, into other tables."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = job.main([*self.places, *words])
        assert out.getvalue(), err.getvalue()
        document = json.loads(out.getvalue())
        return code, document["summary"] | {"rows": {one["table"]: one["rows"] for one in document["items"]}}

    def refused(self, *words: str) -> tuple[int, str]:
        """Runs a job that writes nothing: its exit code, and the sentence."""
        return self.refused_into("--tables", str(self.tables), *words)

    def refused_into(self, *words: str) -> tuple[int, str]:
        """The same, into other tables."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = job.main([*self.places, *words])
        assert not out.getvalue()
        return code, err.getvalue()

    def rows(self, name: str) -> pa.Table:
        return read_rows(str(self.tables), name)

    def into(self, tables: Path) -> CapturedPipeline:
        """The same cluster, with other tables."""
        return replace(self, tables=tables)


def contents(pipeline: CapturedPipeline) -> dict[str, list[str]]:
    """What all tables say, whichever run wrote it and when."""
    return {name: comparable(pipeline.rows(name).to_pylist()) for name in TABLES}


def comparable(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(
        str({name: value for name, value in row.items() if name not in _OWN | _TIMES} | _resolved(row)) for row in rows
    )


def _resolved(row: Mapping[str, Any]) -> dict[str, bool]:
    """Whether a finding is, whenever that was."""
    return {"resolved": row["resolved"] is not None} if "resolved" in row else {}


def cut_copy(cluster: Path, folder: Path, share: float) -> Path:
    """A copy of a cluster's log directory as it was when its metadata logs had a share of their batches."""
    copy = Path(shutil.copytree(cluster / "data", folder))
    for name in _OF_LATER_OFFSETS:
        (copy / name).unlink()
    for log in copy.glob("__remote_log_metadata-*/*.log"):
        cut_log(log, share)
    return copy


def grow(copy: Path, cluster: Path) -> None:
    """Gives a copy that was cut the rest of the metadata logs."""
    logs = [log.relative_to(copy) for log in copy.glob("__remote_log_metadata-*/*.log")]
    for name in (*logs, *map(Path, _OF_LATER_OFFSETS)):
        (copy / name).write_bytes((cluster / "data" / name).read_bytes())


def cut_log(log: Path, share: float) -> None:
    """Leaves the first batches of a log."""
    data, edges = log.read_bytes(), [0]
    while edges[-1] + 12 <= len(data) and (size := int.from_bytes(data[edges[-1] + 8 : edges[-1] + 12])):
        edges.append(edges[-1] + 12 + size)
    log.write_bytes(data[: edges[int((len(edges) - 1) * share)]])
