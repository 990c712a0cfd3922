"""What the benchmarks read is what they say it is: generated metadata and inventories, found sound by tieredctl."""

from __future__ import annotations

import json

import pytest

from benchmarks.large_store import BUCKET, TOPICS, LargeStore, write_large_store
from tests.cli.command_line import own_process
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import ObjectServer
from tieredctl.errors import ExitCode
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.segment_states import segment_states
from tieredctl.rlmm.segment_events import SegmentEvents

SEGMENTS = 3_000


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> LargeStore:
    return write_large_store(tmp_path_factory.mktemp("large"), 3 * SEGMENTS, skew=0.6)


def test_the_metadata_is_sound_and_as_skewed_as_asked_for(written: LargeStore) -> None:
    events = SegmentEvents()
    stream = EventStream(LogDirectories([written.log_dir]))
    read_events(stream, events)

    states = segment_states(events)
    sizes = [0] * TOPICS
    for owner in states.owners.tolist():
        sizes[int(states.partitions[owner].topic.removeprefix("topic-"))] += 1
    assert not stream.findings
    assert len(states.owners) == written.segments == SEGMENTS
    assert 0.55 < sizes[0] / SEGMENTS < 0.65
    assert max(sizes[1:]) < SEGMENTS / 50


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_an_inventory_has_as_many_orphans_as_were_made(
    written: LargeStore, moto: ObjectServer, file_format: str
) -> None:
    bucket = S3Bucket(moto.endpoint)
    options = [word for name, value in bucket.options.items() for word in ("--store-option", f"{name}={value}")]
    manifest = written.csv_manifest if file_format == "csv" else written.parquet_manifest

    done = own_process(
        *("orphans", "scan", "--log-dir", str(written.log_dir), "--store", f"s3://{BUCKET}", *options),
        *("--layout", "local", "--inventory", str(manifest), "-o", "json"),
    )

    assert done.exit_code == ExitCode.FINDINGS, done.err
    summary = json.loads(done.out)["summary"]
    assert written.orphans > 0
    assert summary["objects"] == written.objects
    assert summary["status"]["orphan"]["objects"] == written.orphans
