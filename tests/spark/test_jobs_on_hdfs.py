"""Jobs on Spark about segments in the files of Uber's manager: in HDFS, and copied from there into a folder."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tieredctl_hdfs.layout import HdfsLayout
from tieredctl_spark.finding_rows import read_finding
from tieredctl_spark.jobs import orphans, verify
from tieredctl_spark.verdict_rows import verdict_document

from tests.cli.command_line import this_process
from tests.hdfs.conftest import hdfs_cluster
from tests.hdfs.stored_segments import Place, repacked, uploaded
from tests.rigs.hdfs import HdfsCluster
from tests.spark.damage import REMOTE, damaged
from tests.spark.deleted_segments import deleted_segments
from tieredctl.errors import ExitCode
from tieredctl.ports.layout import Part
from tieredctl.wiring.places import MetadataPlace

__all__ = ["hdfs_cluster"]

STRAYS = 3
IN_HDFS = pytest.param("hdfs_cluster", marks=pytest.mark.exhaustive("jobs on HDFS"))

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture(scope="module")
def cluster(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of which some segments are damaged."""
    return damaged(captures / "kafka-4.3.1", tmp_path_factory.mktemp("damaged"))


@pytest.fixture(scope="module", params=["folder", IN_HDFS])
def place(request: pytest.FixtureRequest, cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Its segments, each in a file, and files of segments that were deleted, put back."""
    files = [*repacked(cluster / REMOTE), *((key, b"put back by whom?") for key in keys_of_deleted(cluster))]
    if request.param == "hdfs_cluster":
        in_hdfs: HdfsCluster = request.getfixturevalue(request.param)
        return uploaded(in_hdfs, "/user/kloak/damaged", files)
    folder = tmp_path_factory.mktemp("files")
    for key, data in files:
        (folder / key).parent.mkdir(exist_ok=True)
        (folder / key).write_bytes(data)
    return ("--store", f"file:{folder}")


def keys_of_deleted(cluster: Path) -> list[str]:
    deleted = deleted_segments(MetadataPlace((cluster / "data",)))
    return [HdfsLayout().promised_objects(one)[Part.LOG] for one in deleted[:STRAYS]]


def words(cluster: Path, place: Place) -> list[str]:
    return [*place, "--layout", "hdfs", "--log-dir", str(cluster / "data")]


def told(finding: dict[str, Any]) -> tuple[str, str, str]:
    return finding["code"], finding["subject"], finding["message"]


def test_a_job_verifies_what_the_command_does(
    cluster: Path, place: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [*words(cluster, place), "--level", "full"]

    code = verify.main([*given, "--output", str(tmp_path)])

    summary = json.loads(capfd.readouterr().out)["summary"]
    local = this_process("verify", *given, "-o", "json")
    rows = pq.read_table(tmp_path / f"findings/run={summary['run']}", partitioning=None).to_pylist()
    assert (code, local.exit_code) == (ExitCode.CORRUPTION, ExitCode.CORRUPTION), local.err
    assert [told(read_finding(row).document()) for row in rows] == [told(one) for one in local.document()["items"]]
    assert local.document()["summary"].items() <= summary.items()


def test_a_job_marks_what_the_command_calls_orphaned(
    cluster: Path, place: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [*words(cluster, place), "--min-age", "0s"]

    code = orphans.main([*given, "--output", str(tmp_path)])

    summary = json.loads(capfd.readouterr().out)["summary"]
    local = this_process("orphans", "scan", *given, "-o", "json").document()
    marked = [verdict_document(row) for row in pq.read_table(tmp_path / "candidates").to_pylist()]
    expected = [one for one in local["items"] if one["status"] == "orphan"]
    assert (code, len(expected)) == (ExitCode.FINDINGS, STRAYS)
    assert sorted(marked, key=itemgetter("key")) == sorted(expected, key=itemgetter("key"))
    assert (summary["objects"], summary["status"]) == (local["summary"]["objects"], local["summary"]["status"])
