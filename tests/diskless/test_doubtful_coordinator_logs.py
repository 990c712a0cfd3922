"""Logs of coordinators that are not whole: nothing is orphaned by them, and nothing lost for certain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tieredctl_proposals.formats.diskless_records import encode_diskless_record
from tieredctl_proposals.model.diskless_records import RecordsDeleted, TopicDeleted

from tests.cli.command_line import Tieredctl
from tests.diskless.coordinator_logs import HOUR_MS, NOON_MS, batch, committed, created, key, put, write_log
from tests.diskless.scanned_coordinators import KNOWN_TO_THE_OTHER, Cluster, statuses
from tests.diskless_records import TOPIC_ID


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def _append(cluster: Cluster, data: bytes) -> None:
    (log,) = (cluster.logs / "__diskless_metadata-1").glob("*.log")
    log.write_bytes(log.read_bytes() + data)


def _without_log(cluster: Cluster) -> None:
    (log,) = (cluster.logs / "__diskless_metadata-1").glob("*.log")
    log.unlink()
    log.parent.rmdir()


def _empty(cluster: Cluster) -> None:
    (log,) = (cluster.logs / "__diskless_metadata-1").glob("*.log")
    log.write_bytes(b"")


def _pruned(cluster: Cluster) -> None:
    (log,) = (cluster.logs / "__diskless_metadata-1").glob("*.log")
    log.unlink()
    (log.parent / f"{2:020d}.log").write_bytes(batch(encode_diskless_record(created(5)), offset=2))


def _damaged(cluster: Cluster) -> None:
    (log,) = (cluster.logs / "__diskless_metadata-0").glob("*.log")
    data = bytearray(log.read_bytes())
    data[150] ^= 1
    log.write_bytes(bytes(data))


def _gap(cluster: Cluster) -> None:
    _append(cluster, batch(encode_diskless_record(created(5)), offset=7))


def _cut_short(cluster: Cluster) -> None:
    (cluster.logs / "replication-offset-checkpoint").write_text("0\n1\n__diskless_metadata 1 9\n")


def _conflict(cluster: Cluster) -> None:
    write_log(cluster.logs.parent / "replica", 1, [(NOON_MS, created(7))])


INCOMPLETE: dict[str, tuple[Callable[[Cluster], object], str]] = {
    "missing": (_without_log, "1 coordinator without a log here: 1"),
    "empty": (_empty, "has no record"),
    "pruned": (_pruned, "begins at offset 2"),
    "damaged": (_damaged, "CRC"),
    "compacted": (_gap, "5 records are gone"),
    "cut short": (_cut_short, "up to 9"),
    "unknown record": (lambda one: _append(one, batch(b"\x01\x68\x00", offset=2)), "unknown apiKey 104"),
    "unknown version": (lambda one: _append(one, batch(b"\x01\x64\x01", offset=2)), "unknown version 1"),
    "tombstone": (lambda one: _append(one, batch(None, offset=2)), "no value"),
    "partition created twice": (
        lambda one: _append(one, batch(encode_diskless_record(created(1)), offset=2)),
        "contradicts",
    ),
    "offsets of a partition that leave some out": (
        lambda one: _append(one, batch(encode_diskless_record(committed(6, 9, 9, 1)), offset=2)),
        "offset 9 where 5 is the next",
    ),
    "batches of an unknown partition": (
        lambda one: _append(one, batch(encode_diskless_record(committed(6, 0, 0, 7)), offset=2)),
        "no partition 7",
    ),
    "log start beyond the end": (
        lambda one: _append(
            one,
            batch(encode_diskless_record(RecordsDeleted(topic_id=TOPIC_ID, partition=1, log_start_offset=6)), offset=2),
        ),
        "a log start of 6",
    ),
    "deletion of an unknown topic": (
        lambda one: _append(one, batch(encode_diskless_record(TopicDeleted(topic_id="A" * 22)), offset=2)),
        "no topic",
    ),
}


@pytest.mark.parametrize("fault", INCOMPLETE)
def test_a_log_that_is_not_whole_leaves_nothing_orphaned(fault: str, cluster: Cluster, tieredctl: Tieredctl) -> None:
    break_it, message = INCOMPLETE[fault]
    break_it(cluster)

    outcome = cluster.scan(tieredctl, "-o", "json")

    document = outcome.document()
    assert outcome.exit_code == 5
    assert not document["summary"]["complete"]
    assert {item["status"] for item in document["items"]} == {"owned", "unknown"}
    (said,) = (one for one in document["summary"]["findings"] if one["code"] == "coordinator-log-incomplete")
    assert message in said["message"]


def test_replicas_that_differ_leave_nothing_orphaned(cluster: Cluster, tieredctl: Tieredctl) -> None:
    _conflict(cluster)

    outcome = cluster.scan(tieredctl, "--log-dir", str(cluster.logs.parent / "replica"), "-o", "jsonl")

    assert outcome.exit_code == 5
    assert "orphan" not in statuses(outcome).values()


def test_logs_of_a_topic_that_was_deleted_and_recreated_are_not_mixed(cluster: Cluster, tieredctl: Tieredctl) -> None:
    for number, topic_id in enumerate((TOPIC_ID, "A" * 21 + "Q")):
        metadata = cluster.logs / f"__diskless_metadata-{number}" / "partition.metadata"
        metadata.write_text(f"version: 0\ntopic_id: {topic_id}")

    outcome = cluster.scan(tieredctl)

    assert outcome.exit_code == 2
    assert "different topics named __diskless_metadata" in outcome.err


def test_a_number_of_coordinators_that_nothing_tells_leaves_nothing_orphaned(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    outcome = cluster.scan(tieredctl, coordinators=None)

    assert outcome.exit_code == 5
    assert "orphan" not in statuses(outcome).values()
    assert "--coordinators says it" in outcome.err


def test_an_owner_whose_log_is_not_here_leaves_nothing_orphaned(cluster: Cluster, tieredctl: Tieredctl) -> None:
    """Whatever number of coordinators was given."""
    later = NOON_MS + 3 * HOUR_MS
    write_log(cluster.logs, 0, [(later, committed(7, 20, 29, owners=(0, 2)))])
    put(cluster.bucket, key(7), later)

    outcome = cluster.scan(tieredctl, coordinators=2)

    assert outcome.exit_code == 5
    assert "orphan" not in statuses(outcome).values()
    assert "whose logs are not here: 2" in outcome.err


def test_by_a_log_that_is_not_whole_nothing_is_lost_for_certain(cluster: Cluster, tieredctl: Tieredctl) -> None:
    _append(cluster, batch(b"\x01\x68\x00", offset=2))
    (cluster.bucket / KNOWN_TO_THE_OTHER).unlink()

    outcome = cluster.scan(tieredctl, "-o", "json")

    assert outcome.exit_code == 5
    codes = {one["code"] for one in outcome.document()["summary"]["findings"]}
    assert codes == {"coordinator-log-incomplete", "unreadable"}
