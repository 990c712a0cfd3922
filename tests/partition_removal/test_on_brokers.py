"""`partition remove` on real brokers, whose store kept what deleted topics left: before a restart, and after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile

import pytest
from confluent_kafka.admin._acl import AclOperation

from tests.cli.command_line import Outcome
from tests.rigs.access_rules import AUTHORIZER, grant, scram_config
from tests.rigs.broker import METADATA_TOPIC
from tests.rigs.buckets import S3Bucket
from tests.rigs.driven_brokers import jars_of
from tests.rigs.leftovers import LEFT_BEHIND, ORDERS, RECORDS, STUCK, TRIMMED, Leftovers, leftovers, written_values
from tests.rigs.object_servers import ObjectServer
from tests.rigs.versioned_bucket import VersionedBucket
from tieredctl.cli.main import run

pytestmark = pytest.mark.integration

SEGMENTS = RECORDS - 1
PARTS = 5
NO_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
MARKED, STARTED, FINISHED = "DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"
METADATA_CODE = "org.apache.kafka.server.log.remote.metadata.storage"


OLDER = pytest.param("3.9.1", marks=pytest.mark.exhaustive("partition removal on 3.9.1"))


@pytest.fixture(scope="module", params=["4.3.1", OLDER])
def cluster(request: pytest.FixtureRequest) -> Iterator[Leftovers]:
    """The tests change it one after another."""
    if request.param == "4.3.1":
        yield request.getfixturevalue("leftovers_4")
        return
    with leftovers(jars_of(request.param), **AUTHORIZER) as made:
        yield made


@dataclass(frozen=True)
class CommandLine:
    """The command line, on this cluster."""

    cluster: Leftovers
    capfd: pytest.CaptureFixture[str]

    def run(self, *words: str | Path, server: str | None = None) -> Outcome:
        live = ("--bootstrap-server", server or self.cluster.broker.bootstrap_server)
        code = run([*map(str, words), *live])
        return Outcome(code, *self.capfd.readouterr())

    def remove(self, what: str, *words: str | Path, server: str | None = None) -> Outcome:
        store = () if "--store" in words else ("--store", f"file:{self.cluster.broker.remote_dir}")
        return self.run("partition", "remove", what, *store, "--layout", "local", *words, "-o", "json", server=server)

    def apply(
        self, what: str, *words: str | Path, server: str | None = None, though_just_deleted: bool = True
    ) -> Outcome:
        sure = ("--apply", "--yes", "--cluster-id", self.cluster.broker.cluster_id)
        done = ("--brokers-are-done",) if though_just_deleted else ()
        return self.remove(what, *sure, *done, *words, server=server)

    def events(self, topic: str) -> list[tuple[str, str, int]]:
        """State, segment id and broker of all events of a topic, in their order."""
        lines = self.run("metadata", "format", "-o", "jsonl").lines()
        own = [line for line in lines if line["topicId"] == self.cluster.topic_ids[topic]]
        return [(line["state"], line.get("segmentId", ""), line["brokerId"]) for line in own]


@pytest.fixture
def tieredctl(cluster: Leftovers, capfd: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(cluster, capfd)


def files(cluster: Leftovers, topic: str) -> list[Path]:
    return [file for file in cluster.broker.remote_dir.glob(f"{topic}-0-*/*") if file.is_file()]


def complaints(log: str) -> list[str]:
    """What a broker's log says of events that it could not take."""
    return [line for line in log.splitlines() if METADATA_CODE in line and (" ERROR " in line or " WARN " in line)]


def test_a_plan_tells_what_is_left_and_changes_nothing(cluster: Leftovers, tieredctl: CommandLine) -> None:
    before = tieredctl.events(STUCK)

    outcome = tieredctl.remove(cluster.topic_ids[STUCK])

    (row,) = outcome.document()["items"]
    assert outcome.exit_code == 0
    assert (row["topic"], row["state"], row["segments"], row["objects"]) == (STUCK, None, SEGMENTS, SEGMENTS * PARTS)
    assert row["segmentsByState"]["DELETE_SEGMENT_STARTED"] == SEGMENTS
    assert row["bytes"] == sum(file.stat().st_size for file in files(cluster, STUCK))
    assert tieredctl.events(STUCK) == before


def test_what_is_refused_changes_nothing(cluster: Leftovers, tieredctl: CommandLine) -> None:
    stuck, orders = cluster.topic_ids[STUCK], cluster.topic_ids[ORDERS]
    before = tieredctl.events(STUCK)
    unconfirmed = ("--apply", "--brokers-are-done", "--yes", "--cluster-id", NO_TOPIC_ID)

    assert tieredctl.apply(stuck, though_just_deleted=False).exit_code == 5  # brokers may still be deleting it
    assert tieredctl.apply(orders).exit_code == 2  # the cluster has it
    assert tieredctl.apply(orders, "--even-if-live").exit_code == 2  # partition delete records of a live topic
    assert tieredctl.apply(NO_TOPIC_ID).exit_code == 2
    assert tieredctl.remove(stuck, *unconfirmed).exit_code == 2
    assert tieredctl.events(STUCK) == before
    assert len(tieredctl.events(ORDERS)) == SEGMENTS * 2
    assert [len(files(cluster, topic)) for topic in (STUCK, ORDERS)] == [SEGMENTS * PARTS] * 2


def test_a_user_who_may_not_write_events_changes_nothing(
    cluster: Leftovers, tieredctl: CommandLine, tmp_path: Path
) -> None:
    for operation in (AclOperation.DESCRIBE, AclOperation.READ):
        grant(cluster.broker, METADATA_TOPIC, operation)
    config = scram_config(tmp_path, cluster.broker)
    server = cluster.broker.secure_listeners.sasl_ssl

    outcome = tieredctl.apply(cluster.topic_ids[STUCK], "--command-config", config, server=server)

    assert (outcome.exit_code, "Describe and Write on topic" in outcome.err) == (1, True), outcome.err
    assert "FATAL" not in outcome.err
    assert len(files(cluster, STUCK)) == SEGMENTS * PARTS
    assert [state for state, _, broker in tieredctl.events(STUCK) if broker < 0] == []


def test_what_came_while_the_plan_was_confirmed_stops_it(
    cluster: Leftovers, tieredctl: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    doomed = files(cluster, LEFT_BEHIND)
    come = doomed[0].with_name(doomed[0].name.replace(doomed[0].name[21:43], NO_TOPIC_ID))

    def confirmed(*arguments: object, **options: object) -> None:
        copyfile(doomed[0], come)

    monkeypatch.setattr("tieredctl.cli.commands.partition.demand_confirmation", confirmed)
    outcome = tieredctl.apply(cluster.topic_ids[LEFT_BEHIND], "--segment-events-only")

    assert outcome.exit_code == 5
    assert f"{come.name} appeared" in outcome.err
    assert outcome.document()["summary"]["stopped"] == "world-changed"
    assert sorted(files(cluster, LEFT_BEHIND)) == sorted([*doomed, come])
    come.unlink()


def test_objects_go_without_events_where_brokers_recorded_deletions(cluster: Leftovers, tieredctl: CommandLine) -> None:
    before = tieredctl.events(LEFT_BEHIND)

    outcome = tieredctl.apply(cluster.topic_ids[LEFT_BEHIND], "--segment-events-only")

    assert (outcome.exit_code, outcome.document()["summary"]["done"]) == (0, SEGMENTS * PARTS)
    assert files(cluster, LEFT_BEHIND) == []
    assert tieredctl.events(LEFT_BEHIND) == before


def test_a_partition_goes_through_the_states_of_the_kip(
    cluster: Leftovers, tieredctl: CommandLine, tmp_path: Path
) -> None:
    before = tieredctl.events(STUCK)
    grant(cluster.broker, METADATA_TOPIC, AclOperation.WRITE)
    config = scram_config(tmp_path, cluster.broker)
    server = cluster.broker.secure_listeners.sasl_ssl

    outcome = tieredctl.apply(f"{cluster.topic_ids[STUCK]}:0", "--command-config", config, server=server)

    written = tieredctl.events(STUCK)[len(before) :]
    segments = sorted({segment for _, segment, _ in before})
    assert outcome.exit_code == 0, outcome.err
    assert [state for state, _, _ in written] == [MARKED, STARTED, *["DELETE_SEGMENT_FINISHED"] * SEGMENTS, FINISHED]
    assert sorted(segment for _, segment, _ in written if segment) == segments
    assert {broker for _, _, broker in written} == {-1}
    assert [row["state"] for row in outcome.document()["items"]] == [FINISHED]
    assert files(cluster, STUCK) == []


def test_a_second_run_has_nothing_to_do_and_no_segment_is_left(cluster: Leftovers, tieredctl: CommandLine) -> None:
    before, topic_id = tieredctl.events(STUCK), cluster.topic_ids[STUCK]

    outcome = tieredctl.apply(topic_id)
    segments = tieredctl.run("metadata", "segments", "--topic-id", topic_id, "-o", "json")

    assert (outcome.exit_code, outcome.document()["summary"]["applied"]) == (0, False)
    assert tieredctl.events(STUCK) == before
    assert (segments.exit_code, segments.document()["items"]) == (0, [])


def test_what_a_versioned_bucket_keeps_is_reported_and_deleted_where_that_is_asked_for(
    cluster: Leftovers, tieredctl: CommandLine, moto: ObjectServer
) -> None:
    topic_id = cluster.topic_ids[STUCK]
    key = f"{STUCK}-0-{topic_id}/{0:020}-{NO_TOPIC_ID}.log"
    with VersionedBucket(S3Bucket(moto.endpoint).client, moto.endpoint) as bucket:
        bucket.fill({key: b"bytes"})
        store = bucket.store_words()
        asked = tieredctl.remove(topic_id, "--apply", "--brokers-are-done", "--yes", *store)
        asked_more = tieredctl.remove(topic_id, "--apply", "--brokers-are-done", "--yes", "--delete-versions", *store)
        removed = tieredctl.apply(topic_id, *store)
        kept = bucket.kept({key})
        again = tieredctl.apply(topic_id, "--delete-versions", *store)

        assert ("for good" in asked.err, "for good" in asked_more.err) == (False, True), asked_more.err
        assert (removed.exit_code, kept) == (0, (1, 1)), removed.err
        assert "The bucket keeps versions: 5 B of 1 object stays as noncurrent versions" in removed.err
        assert (again.exit_code, bucket.kept({key})) == (0, (0, 0)), again.err
        assert again.document()["summary"]["stays"]["versionsDeleted"] == 1


def test_brokers_continue_and_start_again_without_a_complaint(cluster: Leftovers) -> None:
    running = cluster.broker.server_log.read_text(errors="replace")
    values = cluster.values(ORDERS)

    cluster.broker.restart()

    replayed = cluster.broker.server_log.read_text(errors="replace")[len(running) :]
    assert complaints(running) == []
    assert values == written_values(ORDERS)
    assert cluster.values(ORDERS) == written_values(ORDERS)
    assert complaints(replayed) == []


def test_a_live_topic_that_was_named_loses_its_segments_alone(cluster: Leftovers, tieredctl: CommandLine) -> None:
    words = ("--even-if-live", "--segment-events-only")

    outcome = tieredctl.apply(cluster.topic_ids[TRIMMED], *words)

    states = [state for state, _, broker in tieredctl.events(TRIMMED) if broker < 0]
    copied = outcome.document()["summary"]["segmentsDone"]
    assert outcome.exit_code == 0, outcome.err
    assert states == [*["DELETE_SEGMENT_STARTED"] * copied, *["DELETE_SEGMENT_FINISHED"] * copied]
    assert cluster.values(ORDERS) == written_values(ORDERS)
