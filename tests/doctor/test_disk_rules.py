"""Segments on disks that cannot be copied: a broker takes the producer snapshot at their end for granted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.test_cluster_rules import PLACE, SOUND, with_topic
from tests.metadata_logs import PARTITION, TOPIC_ID
from tieredctl.errors import TieredctlError
from tieredctl.formats.indexes import TimeIndexEntry, encode_time_index
from tieredctl.kafka.local_logs import read_local_replicas
from tieredctl.model.findings import Finding
from tieredctl.model.local_log import LocalReplica, LocalSegment
from tieredctl.ops.doctor.node_rules import disk_findings

BASES = (10, 20, 30, 40)
"""Offsets up to 19 are tiered, so the segments from 20 on are still to be copied; the last one is active."""


def found(*, bases: Sequence[int] = BASES, snapshots: Sequence[int] = BASES, **changes: Any) -> list[Finding]:
    segments = [LocalSegment(base, 1000, 0) for base in bases]
    replica = LocalReplica(PARTITION, "/data/t-0", segments, frozenset(snapshots))
    return list(disk_findings(replace(SOUND, replicas=[replica], **changes)))


def test_a_segment_needs_a_snapshot_at_its_end_until_it_is_copied() -> None:
    # A segment whose end has a snapshot can be copied.
    assert found() == []
    # One without a snapshot at its end cannot.
    (finding,) = found(snapshots=(10, 20, 40))
    assert (finding.code, finding.subject) == ("producer-snapshot-missing", "t-0 in /data/t-0")
    assert finding.evidence["offsets"] == [20, 29]
    assert finding.evidence["deleteRecordsOffset"] == 30
    assert finding.evidence["topicId"] == TOPIC_ID
    # One that is in remote storage needs none any more.
    assert found(snapshots=(30, 40)) == []
    # One that begins in remote storage and ends after it needs one.
    (finding,) = found(bases=(15, 25, 40), snapshots=(15, 40))
    assert finding.evidence["offsets"] == [15, 24]
    # One below the log start is never copied.
    assert found(snapshots=(10, 20, 40), partitions=[replace(PLACE, earliest=30, latest=45)]) == []
    # What is not copied needs none.
    assert found(snapshots=(), topics=with_topic(remote_log_copy_disable="true")) == []
    # A partition of a topic that is not tiered is left alone.
    assert found(snapshots=(), partitions=[]) == []


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    for base, size in ((0, 300), (10, 200), (20, 0)):
        (folder / f"{base:020d}.log").write_bytes(bytes(size))
        (folder / f"{base:020d}.timeindex").write_bytes(b"")
    for offset in (10, 20):
        (folder / f"{offset:020d}.snapshot").touch()
    return tmp_path


def test_a_folder_is_read_by_its_names_and_sizes(log_dir: Path) -> None:
    (replica,) = read_local_replicas([log_dir])
    assert replica.partition == PARTITION
    assert [(one.base_offset, one.size) for one in replica.segments] == [(0, 300), (10, 200), (20, 0)]
    assert replica.snapshot_offsets == {10, 20}
    # Without a timestamp the time of the file stands for it.
    (replica,) = read_local_replicas([log_dir])
    log = log_dir / "t-0" / f"{0:020d}.log"
    assert replica.segments[0].largest_timestamp_ms == int(log.stat().st_mtime * 1000)
    # The greatest timestamp ends the time index.
    entries = [TimeIndexEntry(1_000, 2), TimeIndexEntry(5_000, 9)]
    (log_dir / "t-0" / f"{0:020d}.timeindex").write_bytes(encode_time_index(entries))
    (log_dir / "t-0" / f"{10:020d}.timeindex").write_bytes(encode_time_index(entries[:1]) + bytes(24))  # preallocated
    (replica,) = read_local_replicas([log_dir])
    assert [one.largest_timestamp_ms for one in replica.segments[:2]] == [5_000, 1_000]
    # What kafka is removing is not there.
    log = log_dir / "t-0" / f"{0:020d}.log"
    log.rename(log.with_name(log.name + ".deleted"))
    (replica,) = read_local_replicas([log_dir])
    assert [one.base_offset for one in replica.segments] == [10, 20]


@pytest.mark.parametrize("name", ["no-such-folder", "a-file", "empty"])
def test_a_folder_that_is_not_a_log_directory_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    (tmp_path / "empty").mkdir()

    with pytest.raises(TieredctlError) as raised:
        read_local_replicas([tmp_path / name])

    assert raised.value.code == ("path-missing" if name == "no-such-folder" else "not-a-log-dir")


def test_a_log_directory_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()

    assert read_local_replicas([tmp_path]) == []
