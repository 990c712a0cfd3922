"""Large logs in a bucket that are damaged: `heal` replaces them, and keeps what was there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT
from tests.faults.segment_writer import SegmentWriter
from tests.metadata_logs import metadata_batches, write_log
from tests.rigs.availability import rig_unavailable
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer, versitygw
from tests.rigs.peak_memory import measured
from tests.rigs.prerequisites import RigMissing
from tieredctl.errors import ExitCode
from tieredctl.ops.metadata_recovery.event_rebuilding import as_started
from tieredctl.ops.metadata_recovery.segment_judgement import finished_event
from tieredctl.ports.layout import Part

pytestmark = [pytest.mark.integration, pytest.mark.exhaustive]

MEBIBYTE = 1 << 20
BATCHES = 128
"""Of 1 MiB and a header each."""
MEMORY_OF = 2.5
"""How many times the object a healing takes at most, besides what it takes for a small one."""
FOR_A_SMALL_ONE = 128 * MEBIBYTE
SECONDS = 600
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


@dataclass(frozen=True)
class LargeSegment:
    """A segment in a folder as it was copied, and its events in a log directory."""

    whole: Path
    data: Path
    keys: dict[Part, str]


@pytest.fixture
def large(tmp_path: Path) -> LargeSegment:
    writer, whole, data = SegmentWriter(), tmp_path / "whole", tmp_path / "data"
    for _ in range(BATCHES):
        writer.append(writer.data(value_bytes=MEBIBYTE))
    segment = writer.close()
    keys = LAYOUT.promised_objects(segment.metadata)
    for part, key in keys.items():
        (whole / key).parent.mkdir(parents=True, exist_ok=True)
        (whole / key).write_bytes(segment.parts[part])
    started = as_started(segment.metadata)
    write_log(data, 0, metadata_batches([started, replace(finished_event(segment.metadata, 1), author=1)]))
    return LargeSegment(whole, data, keys)


@pytest.fixture
def server(cloud_environment: None) -> Iterator[ObjectServer]:
    """One that copies as much at once as AWS does: 5 GiB."""
    try:
        gateway = versitygw()
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with gateway as server:
        yield server


def sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def test_a_large_log_that_is_damaged_is_replaced_and_kept(
    large: LargeSegment, tmp_path: Path, server: ObjectServer
) -> None:
    bucket, key = S3Bucket(server.endpoint), f"large/{large.keys[Part.LOG]}"
    for name in large.keys.values():
        bucket.client.upload_file(str(large.whole / name), BUCKET, f"large/{name}")
    stored = server.data / BUCKET / key
    size = stored.stat().st_size
    with stored.open("r+b") as log:
        log.seek(size - MEBIBYTE)
        log.write(b"7 other")
    right, damaged = sha256(large.whole / large.keys[Part.LOG]), sha256(stored)
    options = [word for one in bucket.options.items() for word in ("--store-option", "=".join(one))]
    places = ("--store", f"s3://{BUCKET}/large", *options, "--from-store", f"file:{large.whole}")
    sure = ("--apply", "--yes", "--cluster-id", CLUSTER_ID)
    words: list[str | Path] = ["heal", "--all", *places, "--log-dir", large.data, *sure, "-o", "json"]

    with (tmp_path / "healed.json").open("wb") as out:
        healed = measured(words, out, SECONDS)

    assert healed.exit_code == ExitCode.CLEAN, healed.err
    (item,) = json.loads((tmp_path / "healed.json").read_text())["items"]
    assert (item["part"], item["action"], item["healed"]) == ("log", "replace", True)
    assert sha256(stored) == right != damaged
    assert sha256(server.data / BUCKET / "large" / item["quarantinedAs"]) == damaged
    assert healed.peak < FOR_A_SMALL_ONE + MEMORY_OF * size
