"""Snapshots and logs of every captured node, read here and by Kafka's own tool: each record must be the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.driven_brokers import jars_of
from tests.rigs.metadata_snapshot_generator import generate_snapshot
from tests.rigs.tools import dump_log_class, tool_output
from tieredctl.ops.snapshots.record_files import record_files
from tieredctl.ops.snapshots.record_listing import RecordListing

RELEASE = "4.3.1"
"""Its tool decodes what 3.9.1 wrote, too; that of 3.9.1 knows neither all records of 4.3.1 nor changes of leaders."""
CONTROL_RECORDS = {
    "LeaderChange:": "LeaderChangeMessage",
    "SnapshotHeader": "SnapshotHeaderRecord",
    "SnapshotFooter": "SnapshotFooterRecord",
    "KRaftVersion": "KRaftVersionRecord",
    "KRaftVoters": "VotersRecord",
}
"""The names of their messages, by dump-log's words."""
RECORD_LINE = re.compile(r"\| offset: .* headerKeys: \[\] (payload:|[A-Za-z]+:?) (.*)")

pytestmark = pytest.mark.integration


def printed_record(line: str) -> dict[str, Any]:
    match = RECORD_LINE.fullmatch(line)
    assert match is not None, line
    document = json.loads(match[2])
    if match[1] == "payload:":
        return dict(document)
    return {"type": CONTROL_RECORDS[match[1]], "version": document["version"], "data": document}


@pytest.fixture(scope="module")
def files(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Those of the captures, and the snapshot of a quorum with voters in its records, brokers' racks and quotas."""
    generated = generate_snapshot(tmp_path_factory.mktemp("generated"), 2_000)
    patterns = ("__cluster_metadata-0/*.log", "__cluster_metadata-0/*.checkpoint", "bootstrap.checkpoint")
    return sorted([generated.file, *(path for pattern in patterns for path in captures.rglob(pattern))])


@pytest.fixture(scope="module")
def printed(files: list[Path]) -> dict[str, list[dict[str, Any]]]:
    """By file, the records that dump-log prints; one process reads all files."""
    jars = jars_of(RELEASE)
    text = tool_output(
        *(jars, dump_log_class(jars), "--cluster-metadata-decoder", "--files", ",".join(map(str, files)))
    )
    parts = text.split("Dumping ")[1:]
    return {
        part.partition("\n")[0]: [printed_record(line) for line in part.split("\n") if line.startswith("| ")]
        for part in parts
    }


def test_documents_and_lines(files: list[Path], printed: dict[str, list[dict[str, Any]]]) -> None:
    # Documents.
    assert len(files) >= 30
    for file in files:
        listing = RecordListing(record_files([file]), lambda _: True)
        assert list(listing) == printed[str(file)]
        assert not listing.faults
    # Lines.
    for file in files:
        listing = RecordListing(record_files([file]), lambda _: True)
        lines = "".join(listing.json_lines()).splitlines()
        assert [json.loads(line) for line in lines] == printed[str(file)]
        assert lines == [json.dumps(document) for document in RecordListing(record_files([file]), lambda _: True)]
        assert not listing.faults
