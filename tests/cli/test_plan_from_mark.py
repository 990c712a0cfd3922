"""`orphans plan --from`: what a job marked is planned as if a scan had found it, and a mark is believed nothing."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.crashed_cluster import (
    AGED,
    CLUSTER_ID,
    ENOUGH,
    OTHER_CLUSTER_ID,
    CrashedClusterOnDisk,
    planned_keys,
    put,
)
from tieredctl.errors import ExitCode
from tieredctl.ports.object_store import RESERVED_FOLDER

DAY_MS = 24 * 3_600_000
PART = "candidates/part-00001.snappy.parquet"
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def orphans(cluster: CrashedClusterOnDisk) -> list[str]:
    """The keys of what a scan calls orphaned."""
    return [line["key"] for line in cluster.scan("-o", "jsonl").lines() if line["status"] == "orphan"]


def marked(cluster: CrashedClusterOnDisk, keys: Sequence[str], change: Change = lambda _: None) -> Path:
    """A mark as Spark leaves it, with a summary that is changed."""
    folder = cluster.folder / "mark"
    (folder / "candidates").mkdir(parents=True)
    (folder / "summary.json").mkdir()
    for number, some in enumerate((keys[::2], keys[1::2])):
        table = pa.table(
            {"key": pa.array([key.encode() for key in some], pa.binary()), "status": ["orphan"] * len(some)}
        )
        pq.write_table(table, folder / "candidates" / f"part-{number:05}.snappy.parquet")
    (folder / "candidates/_SUCCESS").touch()
    document = {
        "kind": "OrphanMark",
        "apiVersion": "tieredctl/v1",
        "source": {"store": f"file:{cluster.bucket}", "layout": "aiven", "clusterId": CLUSTER_ID},
        "summary": {"success": True, "markedMs": time.time_ns() // 1_000_000, "candidates": len(keys)},
    }
    change(document)
    (folder / "summary.json/part-00000.txt").write_text(json.dumps(document))
    (folder / "summary.json/_SUCCESS").touch()
    return folder


def test_what_was_marked_is_planned(cluster: CrashedClusterOnDisk, orphans: list[str]) -> None:
    cluster.plan(*AGED, *ENOUGH)
    expected = planned_keys(cluster.plan_file)

    planned = cluster.plan(*AGED, *ENOUGH, "--force", "--from", marked(cluster, orphans))

    assert planned.exit_code == ExitCode.CLEAN, planned.err
    assert planned_keys(cluster.plan_file) == expected
    assert cluster.apply().exit_code == ExitCode.CLEAN


def test_what_is_marked_and_has_an_owner_is_not_planned(cluster: CrashedClusterOnDisk, orphans: list[str]) -> None:
    everything = [line["key"] for line in cluster.scan("-o", "jsonl").lines()]
    reserved = f"{RESERVED_FOLDER}quarantine/x"
    put(cluster, reserved)

    planned = cluster.plan(
        *AGED, *ENOUGH, "--from", marked(cluster, [*everything, "never/there", reserved, everything[0]])
    )

    assert planned.exit_code == ExitCode.CLEAN, planned.err
    assert planned_keys(cluster.plan_file) == set(orphans)


def test_what_was_written_since_is_too_young(cluster: CrashedClusterOnDisk, orphans: list[str]) -> None:
    mark = marked(cluster, orphans)
    os.utime(cluster.bucket / orphans[0])

    cluster.plan(*AGED, *ENOUGH, "--from", mark)

    assert planned_keys(cluster.plan_file) == set(orphans[1:])


def test_the_share_is_of_what_the_store_has_whatever_the_mark_says(
    cluster: CrashedClusterOnDisk, orphans: list[str]
) -> None:
    mark = marked(cluster, orphans, lambda document: document["summary"].update(objects=10**9))

    planned = cluster.plan(*AGED, "--max-percent", "20", "--from", mark, "-o", "json")
    applied = cluster.apply(*AGED, "--max-percent", "20")

    assert (planned.exit_code, planned.document()["summary"]["neededPercent"]) == (ExitCode.FINDINGS, 24)
    assert applied.exit_code == ExitCode.USAGE


CHANGES: dict[str, Change] = {
    "not finished": lambda document: document["summary"].update(success=False),
    "nothing but that": lambda document: document.update(summary={"success": False}),
    "another number of candidates": lambda document: document["summary"].update(candidates=114),
    "another store": lambda document: document["source"].update(store="file:/elsewhere"),
    "another cluster": lambda document: document["source"].update(clusterId=OTHER_CLUSTER_ID),
    "old": lambda document: document["summary"].update(markedMs=time.time_ns() // 10**6 - 8 * DAY_MS),
    "of the future": lambda document: document["summary"].update(markedMs=time.time_ns() // 10**6 + DAY_MS),
    "beyond time": lambda document: document["summary"].update(markedMs=10**30),
    "another kind": lambda document: document.update(kind="Verification"),
    "empty": lambda document: document.clear(),
    "another type": lambda document: document.update(source=7),
}
DAMAGES: dict[str, Callable[[Path], object]] = {
    "no _SUCCESS": lambda mark: (mark / "summary.json/_SUCCESS").unlink(),
    "no summary": lambda mark: (mark / "summary.json/part-00000.txt").unlink(),
    "a file is missing": lambda mark: (mark / PART).unlink(),
    "no Parquet": lambda mark: (mark / PART).write_bytes(b"no Parquet"),
    "no keys": lambda mark: pq.write_table(pa.table({"name": ["x"]}), mark / PART),
    "numbers": lambda mark: pq.write_table(pa.table({"key": [1.5]}), mark / PART),
    "null": lambda mark: pq.write_table(pa.table({"key": pa.array([None], pa.binary())}), mark / PART),
}


def test_a_mark_that_is_damaged_or_not_of_this_and_whole_is_refused(
    cluster: CrashedClusterOnDisk, orphans: list[str]
) -> None:
    for case in (*CHANGES, *DAMAGES):
        mark = marked(cluster, orphans, CHANGES.get(case, lambda _: None))
        if case in DAMAGES:
            DAMAGES[case](mark)

        planned = cluster.plan(*AGED, *ENOUGH, "--from", mark)

        assert (planned.exit_code, cluster.plan_file.exists()) == (ExitCode.USAGE, False), case
        shutil.rmtree(mark)


def test_what_no_job_marks_is_not_named_with_a_mark(cluster: CrashedClusterOnDisk, orphans: list[str]) -> None:
    mark = marked(cluster, orphans)
    for words in ((mark, "--unknown", "a/key"), (mark, "--inventory", "manifest.json"), (cluster.folder / "nothing",)):
        assert cluster.plan("--from", *words).exit_code == ExitCode.USAGE, words
