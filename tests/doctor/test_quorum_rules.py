"""KIP-630's operational checks: replicas that lag, snapshots that are overdue, a log that is never trimmed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.test_cluster_rules import NOW_MS, SOUND
from tests.kraft_snapshots import snapshot_bytes, topic_record
from tests.rigs.scripted_controller import ScriptedController
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.kafka.metadata_log import read_local_metadata_logs
from tieredctl.kafka.metadata_quorum import MetadataQuorum
from tieredctl.model.findings import Finding
from tieredctl.model.local_metadata_log import SeenMetadataLog, SeenSegment, SeenSnapshot
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.doctor.gathering import with_metadata_logs
from tieredctl.ops.doctor.quorum_rules import quorum_findings
from tieredctl.ports.cluster import QuorumDescription, QuorumReplica

HOUR_MS, DAY_MS, MIB = 3_600_000, 24 * 3_600_000, 1 << 20
SNAPSHOT = SeenSnapshot(900, 3, 5000, NOW_MS - HOUR_MS, NOW_MS - HOUR_MS)
LOG = SeenMetadataLog(1, "/data/__cluster_metadata-0", 0, [SNAPSHOT], [SeenSegment(0, MIB)], NOW_MS - DAY_MS)


def replica(node: int, behind: int | None = 0, lag_ms: int | None = 300) -> QuorumReplica:
    end = None if behind is None else 1000 - behind
    caught_up = None if lag_ms is None else NOW_MS - lag_ms
    return QuorumReplica(node, end, caught_up, caught_up)


LEADER = replica(1, lag_ms=0)


def quorum_of(*voters: QuorumReplica, observers: tuple[QuorumReplica, ...] = ()) -> QuorumDescription:
    return QuorumDescription(1, 5, 1000, [LEADER, *voters], observers, {})


SOUND_QUORUM = quorum_of(replica(2), replica(3), observers=(replica(11),))


def cluster(**facts: Any) -> ClusterSnapshot:
    return replace(SOUND, **{"quorum": SOUND_QUORUM, **facts})


def with_settings(**values: str) -> dict[str, Any]:
    stated = {name.replace("_", "."): value for name, value in values.items()}
    return {"brokers": {n: replace(one, values={**one.values, **stated}) for n, one in SOUND.brokers.items()}}


def found(**facts: Any) -> list[Finding]:
    return list(quorum_findings(cluster(**facts)))


def codes(**facts: Any) -> list[str]:
    return [finding.code for finding in found(**facts)]


class TestReplicas:
    def test_those_that_lag_have_the_clusters_own_limits(self) -> None:
        # Those that keep up are no finding.
        assert found() == []
        assert found(quorum=None) == []
        # A voter has the quorums fetch timeout.
        cases: list[tuple[QuorumReplica, bool]] = [
            (replica(3, behind=5, lag_ms=2000), False),
            (replica(3, behind=5, lag_ms=2001), True),
            (replica(3, behind=0, lag_ms=60_000), True),  # it is dead, and nothing happened since
            (replica(3, behind=None, lag_ms=None), True),
            (replica(3, behind=9, lag_ms=None), True),
            (replica(3, behind=0, lag_ms=None), False),
        ]
        for voter, lags in cases:
            assert codes(quorum=quorum_of(replica(2), voter)) == ["quorum-voter-lags"] * lags, (voter, lags)
        # An observer has the brokers session timeout.
        for lag_ms, lags in [(9000, False), (9001, True)]:
            quorum = quorum_of(observers=(replica(11, behind=1, lag_ms=lag_ms),))
            assert codes(quorum=quorum) == ["quorum-observer-lags"] * lags, (lag_ms, lags)
        # The clusters own limits count.
        quorum = quorum_of(replica(2, 5, 5000), observers=(replica(11, 5, 15_000),))
        assert codes(quorum=quorum) == ["quorum-voter-lags", "quorum-observer-lags"]
        assert codes(quorum=quorum, **with_settings(controller_quorum_fetch_timeout_ms="5000")) == [
            "quorum-observer-lags"
        ]
        assert codes(quorum=quorum, **with_settings(broker_session_timeout_ms="18000")) == ["quorum-voter-lags"]

    def test_it_says_by_how_much_and_what_is_left(self) -> None:
        (finding,) = found(quorum=quorum_of(replica(2), replica(3, behind=42, lag_ms=90_000)))
        assert finding.subject == "controller 3"
        assert finding.message == (
            "it last had everything 90 s ago, and is 42 records behind leader 1; "
            "2 of 3 voters keep up; fewer than 2 decide nothing"
        )
        assert (finding.evidence["lagMs"], finding.evidence["logEndOffset"]) == (90_000, 958)
        # One of five leaves a spare.
        (finding,) = found(quorum=quorum_of(replica(2), replica(3), replica(4), replica(5, behind=None, lag_ms=None)))
        assert finding.message == "it fetched nothing from leader 1 since its election (epoch 5)"


class TestSnapshots:
    def test_age_and_size_are_told(self) -> None:
        finding, rest = found(metadata_logs=[LOG])

        assert (finding.code, finding.subject) == ("metadata-snapshot", "node 1")
        assert finding.message == "has snapshot 900-3 of 4.9 KiB, 60 min old; the log begins at offset 0"
        assert (finding.evidence["ageMs"], finding.evidence["bytes"]) == (HOUR_MS, 5000)
        assert (rest.subject, rest.evidence) == ("nodes 2, 3, 11", {"nodeIds": [2, 3, 11]})

    def test_one_is_overdue_by_age_or_by_the_log_after_it(self) -> None:
        # It may miss one interval.
        cases: list[tuple[int, dict[str, str], bool]] = [
            (2 * HOUR_MS, {}, False),
            (2 * HOUR_MS + 1, {}, True),
            (2 * HOUR_MS + 1, {"metadata_log_max_snapshot_interval_ms": "7200000"}, False),
            (30 * DAY_MS, {"metadata_log_max_snapshot_interval_ms": "0"}, False),
        ]
        for age_ms, settings, overdue in cases:
            log = replace(LOG, snapshots=[SNAPSHOT._replace(written_ms=NOW_MS - age_ms)])
            assert ("metadata-snapshot-overdue" in codes(metadata_logs=[log], **with_settings(**settings))) == overdue
        # An old one that has everything is not overdue.
        log = replace(LOG, snapshots=[SNAPSHOT._replace(end_offset=1000, written_ms=NOW_MS - DAY_MS)])
        assert "metadata-snapshot-overdue" not in codes(metadata_logs=[log])
        # Nor may the log after it grow to twice what makes one.
        others: list[tuple[int, bool]] = [(40 * MIB, False), (40 * MIB + 1, True)]
        for size, overdue in others:
            log = replace(LOG, segments=[SeenSegment(0, 90 * MIB), SeenSegment(900, size)])
            assert ("metadata-snapshot-overdue" in codes(metadata_logs=[log])) == overdue, (size, overdue)

    def test_without_any_the_log_itself_is_as_old_as_it_is_and_an_unknown_age_not_zero(self) -> None:
        # Without any the log itself is as old as it is.
        cases: list[tuple[int, bool]] = [(2 * HOUR_MS, False), (3 * HOUR_MS, True)]
        for began_ms, overdue in cases:
            finding, _ = found(metadata_logs=[replace(LOG, snapshots=[], first_record_ms=NOW_MS - began_ms)])
            assert (finding.code == "metadata-snapshot-overdue") == overdue, (began_ms, overdue)
            assert finding.message.startswith("has no snapshot; the log begins at offset 0, "), (began_ms, overdue)
        # An age that is unknown is not zero.
        damaged = SNAPSHOT._replace(written_ms=None, last_contained_ms=None)
        finding, _ = found(metadata_logs=[replace(LOG, snapshots=[damaged])])
        assert (finding.code, finding.evidence["ageMs"]) == ("metadata-snapshot", None)
        assert "its age is unknown" in finding.message


class TestTrimming:
    OLD = SeenSnapshot(100, 1, 5000, NOW_MS - 8 * DAY_MS, NOW_MS - 8 * DAY_MS)
    SEGMENTS = (SeenSegment(0, MIB), SeenSegment(100, MIB), SeenSegment(900, MIB))

    def test_a_log_whose_snapshots_are_past_retention_is_never_trimmed(self) -> None:
        log = replace(LOG, snapshots=[self.OLD, SNAPSHOT], segments=self.SEGMENTS)
        (finding,) = [one for one in found(metadata_logs=[log]) if one.code == "metadata-log-untrimmed"]
        assert finding.evidence["snapshots"] == ["100-1"]
        assert "metadata.max.retention.ms" in finding.message
        # Retention is the clusters own.
        log = replace(LOG, snapshots=[self.OLD, SNAPSHOT], segments=self.SEGMENTS)
        longer = with_settings(metadata_max_retention_ms=str(9 * DAY_MS))
        smaller = with_settings(metadata_max_retention_ms="-1", metadata_max_retention_bytes=str(MIB))
        assert "metadata-log-untrimmed" not in codes(metadata_logs=[log], **longer)
        assert "metadata-log-untrimmed" in codes(metadata_logs=[log], **smaller)
        # A node has some minutes for it.
        due = self.OLD._replace(last_contained_ms=NOW_MS - 7 * DAY_MS - 300_000)
        assert "metadata-log-untrimmed" not in codes(metadata_logs=[replace(LOG, snapshots=[due, SNAPSHOT])])
        # What is on the leaders disk is unknown by its answers.
        log = replace(LOG, snapshots=[self.OLD, SNAPSHOT], segments=None)
        assert "metadata-log-untrimmed" not in codes(metadata_logs=[log])

    def test_of_a_live_leader_the_age_of_its_log_tells(self) -> None:
        cases: list[tuple[int, dict[str, str], bool]] = [
            (7, {}, False),
            (8, {}, True),
            (8, {"metadata_max_retention_ms": str(9 * DAY_MS)}, False),
            (99, {"metadata_max_retention_ms": "-1"}, False),
            (99, {"metadata_log_max_snapshot_interval_ms": "0"}, False),
        ]
        for days, settings, untrimmed in cases:
            log = replace(LOG, segments=None, first_record_ms=NOW_MS - days * DAY_MS)
            seen = codes(metadata_logs=[log], **with_settings(**settings))
            assert ("metadata-log-untrimmed" in seen) == untrimmed, (days, settings, untrimmed)
            unknown = codes(metadata_logs=[replace(log, first_record_ms=None)], **with_settings(**settings))
            assert "metadata-log-untrimmed" not in unknown, (days, settings, untrimmed)


class TestWhatIsSeen:
    AS_OF_MS = 1700000000000
    BYTES = snapshot_bytes(AS_OF_MS, topic_record("AQIDBAUGBwgJCgsMDQ4PEA"))

    @pytest.fixture
    def controller(self) -> Iterator[ScriptedController]:
        with ScriptedController(self.BYTES) as made:
            yield made

    def test_the_leader_tells_of_its_latest(self, controller: ScriptedController) -> None:
        controller.log = encode_batch([Record(1, 1600000000000, None, b"v")])
        quorum = MetadataQuorum(controller.address)

        seen = with_metadata_logs(SOUND, [], quorum)
        quorum.close()

        latest = SeenSnapshot(47, 5, len(self.BYTES), self.AS_OF_MS, self.AS_OF_MS)
        assert seen.metadata_logs == [SeenMetadataLog(1, "leader 1", 0, [latest], None, 1600000000000)]

    def test_its_disk_tells_more(self, controller: ScriptedController) -> None:
        quorum = MetadataQuorum(controller.address)

        assert with_metadata_logs(SOUND, [LOG], quorum).metadata_logs == [LOG]
        quorum.close()

    def test_a_leader_that_does_not_answer_is_not_looked_at(self, tmp_path: Path) -> None:
        (tmp_path / "client.properties").write_text("request.timeout.ms=300\n")
        seen = with_metadata_logs(SOUND, [], MetadataQuorum("localhost:1", tmp_path / "client.properties"))

        assert [(one.code, one.subject) for one in seen.not_looked_at] == [("check-not-made", "the leader's snapshot")]

    def test_on_disk(self, tmp_path: Path) -> None:
        folder = tmp_path / "__cluster_metadata-0"
        folder.mkdir()
        (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=7\n")
        for name in ("47-0000000005", "9-0000000004", "0-0000000000"):
            offset, _, epoch = name.partition("-")
            (folder / f"{int(offset):020}-{epoch}.checkpoint").write_bytes(self.BYTES)
        (folder / f"{60:020}-0000000005.checkpoint").write_bytes(b"damaged")
        (folder / f"{70:020}-0000000005-123.checkpoint.part").write_bytes(self.BYTES)
        (folder / f"{0:020}.log").write_bytes(encode_batch([Record(0, self.AS_OF_MS, None, b"v")]))
        (folder / f"{40:020}.log").write_bytes(b"")

        (log,) = read_local_metadata_logs([tmp_path, tmp_path / "of-a-broker-without-one"])

        assert (log.node_id, log.log_start_offset, log.first_record_ms) == (7, 0, self.AS_OF_MS)
        assert [(str(one), one.written_ms) for one in log.snapshots] == [
            ("9-4", self.AS_OF_MS),
            ("47-5", self.AS_OF_MS),
            ("60-5", None),
        ]
        assert log.segments is not None
        assert [one.base_offset for one in log.segments] == [0, 40]

    def test_on_the_disks_of_real_nodes(self, captures: Path) -> None:
        for capture in ["kafka-4.3.1", "kafka-3.9.1", "aiven-crash-4.3.1"]:
            (log,) = read_local_metadata_logs([captures / capture / "data"])
            assert log.node_id == 1, capture
            assert log.latest_snapshot is not None, capture
            assert all(one.written_ms and one.last_contained_ms for one in log.snapshots), capture
            assert log.first_record_ms is not None, capture
            assert log.first_record_ms <= (log.snapshots[0].last_contained_ms or 0), capture
