"""What commands say of a topic of which one segment has a negative size in the metadata: no sum has it as nothing."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from tests.cli.command_line import Outcome, this_process
from tests.metadata_logs import copied
from tests.tiering.model_cluster import ModelCluster
from tieredctl.wiring.places import ClusterPlace, MetadataPlace

UNKNOWN = "segment-size-unknown"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ModelCluster:
    """The leader's disk has the last segment, and half of the second, whose size is unknown."""
    events = [*copied(1, 0, 99), *copied(2, 100, 199, segment_size_in_bytes=-4096), *copied(3, 200, 299)]
    settings = {"remote.storage.enable": "true", "local.retention.ms": "1000", "local.retention.bytes": "2000"}
    made = ModelCluster(own=settings, earliest_local=150, events=events)
    monkeypatch.setattr(ClusterPlace, "open", lambda _: nullcontext(made))
    monkeypatch.setattr(MetadataPlace, "open_source", lambda _: made.source())
    return made


def asked(*words: str) -> Outcome:
    return this_process(*words, "--bootstrap-server", "model:9092")


def test_a_sum_is_unknown_in_lists_and_status(cluster: ModelCluster) -> None:
    # A topics sum is unknown in the list.
    table, document = asked("topic", "list"), asked("topic", "list", "-o", "json").document()
    assert table.out.splitlines()[1].split()[:5] == ["t", "on", "1", "3", "unknown"]
    assert (document["items"][0]["remoteBytes"], document["summary"]["remoteBytes"]) == (None, None)
    assert UNKNOWN in table.err
    assert table.exit_code == 3
    # A partitions sum is unknown in its status.
    table, document = asked("topic", "status", "t"), asked("topic", "status", "t", "-o", "json").document()
    assert "unknown" in table.out
    assert (document["items"][0]["remoteBytes"], document["summary"]["remoteBytes"]) == (None, None)
    assert UNKNOWN in table.err
    assert table.exit_code == 3


def test_what_a_deletion_takes_is_the_least_there_is(cluster: ModelCluster) -> None:
    table, document = (asked("topic", "disable", "t", "--delete", *more) for more in ((), ("-o", "json")))

    summary = document.document()["summary"]
    said = "3 segments, at least 2.0 KiB, will be deleted from remote storage; at least 1000 B is nowhere else"
    assert said in table.out
    assert "In remote storage: 3 segments, at least 2.0 KiB; they are deleted" in table.err
    assert (summary["remoteBytes"], summary["bytesOnlyRemote"]) == (None, None)
    assert UNKNOWN in table.out
    assert table.exit_code == 3


def test_what_disks_need_is_the_least_there_is(cluster: ModelCluster) -> None:
    outcome = asked("topic", "disable", "t", "--stop-copying")

    assert "Broker 1: keeping locally what is only remote takes at least 1000 B; 1.0 PiB is free" in outcome.err
    assert "topic-disable-fills-disks" not in outcome.out
    assert UNKNOWN in outcome.out
    assert outcome.exit_code == 3


def test_what_retention_deletes_is_the_least_there_is(cluster: ModelCluster) -> None:
    words = ("estimate", "retention", "t", "--retention-ms", "1", "--local-retention-ms", "1")

    table, document = asked(*words), asked(*words, "-o", "json").document()

    assert "Of t, 3 remote segments, at least 2.0 KiB, would be deleted." in table.err
    assert [item["segmentSizeInBytes"] for item in document["items"]] == [1000, None, 1000, 1000]
    assert document["summary"]["bytes"] is None
    assert UNKNOWN in table.err
    assert table.exit_code == 3


def test_what_a_disk_frees_is_the_least_there_is(cluster: ModelCluster) -> None:
    cluster.earliest_local = 100

    outcome = asked("estimate", "retention", "t", "--local-retention-ms", "1")

    assert "2 local segments, at least 1000 B, would be deleted" in outcome.err
    assert outcome.exit_code == 3


def test_what_a_follower_copies_is_unknown(cluster: ModelCluster) -> None:
    words = ("estimate", "follower-bootstrap", "t:0", "--throughput", "1MB")

    table, document = asked(*words), asked(*words, "-o", "json").document()

    assert [(item["bytes"], item["seconds"]) for item in document["items"]] == [(None, None)] * 3
    assert table.out.count("unknown") == 3
    assert UNKNOWN in table.err
    assert table.exit_code == 3
