"""Commands that change a cluster or its store, stopped in the middle: by a signal, or by a disk that is full. What is
live stays as it was, nothing is half done, and another run finishes the work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.command_line import Outcome
from tests.metadata_logs import COPIED, started, updated
from tests.rigs.broker import METADATA_PARTITIONS
from tests.rigs.forgetful_cluster import ORDERS, ForgetfulCluster
from tests.rigs.stopped_process import (
    FINISHING,
    FULL_DISK,
    INT,
    KILL,
    TERM,
    TWICE,
    Moment,
    Stop,
    demand_said,
    let_the_lease_run_out,
    pasted,
    run_until,
)
from tieredctl.cli.main import run
from tieredctl.errors import ExitCode
from tieredctl.kafka.metadata_producer import MetadataProducer
from tieredctl.layouts.registry import layout_named
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.rlmm.partitioner import metadata_partition

pytestmark = pytest.mark.integration

LAYOUT = layout_named("local")
SEGMENTS = 3
COPIED_STATES = ["COPY_SEGMENT_STARTED"] * SEGMENTS + ["COPY_SEGMENT_FINISHED"] * SEGMENTS


@pytest.fixture
def cluster(forgetful_4: ForgetfulCluster) -> ForgetfulCluster:
    """Each test leaves `orders` and its metadata as they were."""
    return forgetful_4


SELDOM = pytest.mark.exhaustive
"""For stops of which another of the same kind always runs."""


@dataclass(frozen=True)
class CommandLine:
    """The command line, on this cluster."""

    cluster: ForgetfulCluster
    capfd: pytest.CaptureFixture[str]

    def run(self, *words: str) -> Outcome:
        return self._run(*self.words(*words))

    def stopped(self, stop: Stop, moment: Moment, *words: str) -> Outcome:
        """The same, stopped. A lease that a killed run left has run out then."""
        store = self.cluster.broker.remote_dir
        outcome = run_until(moment, stop, store, self.words(*words))
        let_the_lease_run_out(store, stop)
        return outcome

    def again(self, stopped: Outcome, *words: str) -> Outcome:
        """The same again; after a signal what the stopped run said."""
        return pasted(stopped) if stopped.exit_code == ExitCode.INTERRUPTED else self.run(*words)

    def words(self, *words: str) -> Sequence[str]:
        broker = self.cluster.broker
        where = ("--bootstrap-server", broker.bootstrap_server, "--store", f"file:{broker.remote_dir}")
        sure = ("--apply", "--yes", "--cluster-id", broker.cluster_id)
        return (*words, *where, "--layout", "local", *sure, "-o", "json")

    def states(self, topic: str) -> list[str]:
        """Of all events of a topic, in their order."""
        live = ("--bootstrap-server", self.cluster.broker.bootstrap_server)
        lines = self._run("metadata", "format", *live, "-o", "jsonl").lines()
        return [line["state"] for line in lines if line["topic"] == topic]

    def live_objects(self) -> dict[str, bytes]:
        """What the topic that is live has in the store."""
        folder = self.cluster.broker.remote_dir
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob(f"{ORDERS}-*/*")}

    def _run(self, *words: str) -> Outcome:
        self.capfd.readouterr()
        return Outcome(run(list(words)), *self.capfd.readouterr())


@pytest.fixture
def tieredctl(cluster: ForgetfulCluster, capfd: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(cluster, capfd)


@dataclass(frozen=True)
class GoneTopic:
    """A topic that the cluster does not have, whose segments are in its metadata and in its store."""

    cluster: ForgetfulCluster
    partition: TopicIdPartition

    @property
    def files(self) -> list[Path]:
        return sorted(self.cluster.broker.remote_dir.glob(f"{self.partition.topic}-0-*/*"))


@pytest.fixture
def gone_topic(cluster: ForgetfulCluster) -> GoneTopic:
    topic_id = uuid_text(uuid4().bytes)
    partition = TopicIdPartition(topic_id, f"gone-{uuid4().hex[:8]}", 0)
    ids = [uuid_text(uuid4().bytes) for _ in range(SEGMENTS)]
    begun = [
        started(0, number * 10, number * 10 + 9, partition=partition, segment_id=segment)
        for number, segment in enumerate(ids)
    ]
    ended = [updated(0, COPIED, partition=partition, segment_id=segment) for segment in ids]
    place = metadata_partition(topic_id, 0, METADATA_PARTITIONS)
    with closing(MetadataProducer(cluster.broker.bootstrap_server)) as producer:
        producer.publish(place, [*begun, *ended])
    for number, segment in enumerate(ids):
        identity = ExplainedKey(partition.topic, topic_id, 0, number * 10, segment, Part.LOG)
        for key in LAYOUT.promised_objects(identity).values():
            file = cluster.broker.remote_dir / key
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(b"bytes")
    return GoneTopic(cluster, partition)


LEASE_RENEWED, OBJECT_REMOVED = f"rename {LEASE_KEY}", "remove gone-"


@pytest.mark.parametrize(
    ("stop", "moment"),
    [
        pytest.param(KILL, Moment(LEASE_RENEWED, 2), id="killed-once-it-was-marked", marks=SELDOM),
        pytest.param(TERM, Moment(LEASE_RENEWED, 4), id="terminated-before-the-first-deletion", marks=SELDOM),
        pytest.param(INT, Moment(OBJECT_REMOVED, 1), id="interrupted-at-the-first-deletion", marks=SELDOM),
        pytest.param(KILL, Moment(OBJECT_REMOVED, 7), id="killed-between-deletions"),
        pytest.param(TERM, Moment(OBJECT_REMOVED, 7), id="terminated-between-deletions"),
        pytest.param(TWICE, Moment(OBJECT_REMOVED, 7), id="interrupted-twice-between-deletions", marks=SELDOM),
        pytest.param(KILL, Moment(LEASE_RENEWED, 5), id="killed-once-all-was-deleted", marks=SELDOM),
        pytest.param(FULL_DISK, Moment(LEASE_RENEWED, 1), id="full-at-once", marks=SELDOM),
        pytest.param(FULL_DISK, Moment(OBJECT_REMOVED, 1), id="full-at-the-first-deletion"),
    ],
)
def test_a_removal_that_is_stopped_touches_nothing_live_and_is_finished_by_another_run(
    tieredctl: CommandLine, gone_topic: GoneTopic, stop: Stop, moment: Moment
) -> None:
    topic, whole = gone_topic.partition.topic, len(gone_topic.files)
    live, live_states = tieredctl.live_objects(), tieredctl.states(ORDERS)
    remove = ("partition", "remove", gone_topic.partition.topic_id, "--brokers-are-done")

    stopped = tieredctl.stopped(stop, moment, *remove)

    between = tieredctl.states(topic)
    left = len(gone_topic.files)
    finished = tieredctl.again(stopped, *remove)

    demand_said(stopped, stop)
    assert "DELETE_SEGMENT_FINISHED" not in between or left == 0
    assert "DELETE_SEGMENT_STARTED" in between or left == whole
    assert "DELETE_PARTITION_FINISHED" not in between
    assert (finished.exit_code, gone_topic.files) == (0, []), finished.err
    assert tieredctl.states(topic) == [
        *COPIED_STATES,
        *("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED"),
        *["DELETE_SEGMENT_STARTED"] * SEGMENTS,
        *["DELETE_SEGMENT_FINISHED"] * SEGMENTS,
        "DELETE_PARTITION_FINISHED",
    ]
    assert (tieredctl.live_objects(), tieredctl.states(ORDERS)) == (live, live_states)


@pytest.mark.parametrize("stop", [TERM, pytest.param(INT, marks=SELDOM)])
def test_a_signal_in_the_last_step_of_a_removal_finds_nothing_left_to_end(
    tieredctl: CommandLine, gone_topic: GoneTopic, stop: Stop
) -> None:
    lease = tieredctl.cluster.broker.remote_dir / LEASE_KEY
    lease.parent.mkdir(exist_ok=True)
    lease.write_text('{"expiresMs": 0}')  # as an earlier run leaves it: it is taken by another renewal
    remove = ("partition", "remove", gone_topic.partition.topic_id, "--brokers-are-done")

    finished = tieredctl.stopped(stop, Moment(LEASE_RENEWED, 7), *remove)

    assert (finished.exit_code, FINISHING in finished.err, gone_topic.files) == (0, True, []), finished.err
    assert finished.document()["summary"]["stopped"] is None
    assert tieredctl.states(gone_topic.partition.topic)[-1] == "DELETE_PARTITION_FINISHED"


@pytest.mark.parametrize(
    ("stop", "moment"),
    [
        pytest.param(KILL, Moment(LEASE_RENEWED, 1), id="killed-before-the-first-partition", marks=SELDOM),
        pytest.param(TERM, Moment(LEASE_RENEWED, 2), id="terminated-between-partitions", marks=SELDOM),
        pytest.param(KILL, Moment(LEASE_RENEWED, 2), id="killed-between-partitions"),
        pytest.param(TWICE, Moment(LEASE_RENEWED, 3), id="interrupted-twice-while-it-reads-back", marks=SELDOM),
        pytest.param(FULL_DISK, Moment(LEASE_RENEWED, 2), id="full-between-partitions"),
    ],
)
def test_a_recovery_of_metadata_that_is_stopped_is_finished_by_another_run(
    cluster: ForgetfulCluster, tieredctl: CommandLine, stop: Stop, moment: Moment
) -> None:
    whole = sorted(tieredctl.states(ORDERS))
    live = tieredctl.live_objects()
    cluster.forget_while_it_runs()
    recover = ("recover", "metadata", "--metadata-partitions", str(METADATA_PARTITIONS))

    stopped = tieredctl.stopped(stop, moment, *recover)

    between = tieredctl.states(ORDERS)
    finished = tieredctl.again(stopped, *recover)

    demand_said(stopped, stop)
    assert between.count("COPY_SEGMENT_STARTED") == between.count("COPY_SEGMENT_FINISHED")
    assert finished.exit_code == 0, finished.err
    assert sorted(tieredctl.states(ORDERS)) == whole
    assert tieredctl.live_objects() == live
    assert cluster.read() == cluster.written


@pytest.mark.parametrize("stop", [TERM, pytest.param(INT, marks=SELDOM)])
def test_a_signal_while_a_recovery_reads_back_finds_nothing_left_to_end(
    cluster: ForgetfulCluster, tieredctl: CommandLine, stop: Stop
) -> None:
    whole = sorted(tieredctl.states(ORDERS))
    cluster.forget_while_it_runs()
    lease = cluster.broker.remote_dir / LEASE_KEY
    lease.parent.mkdir(exist_ok=True)
    lease.write_text('{"expiresMs": 0}')  # as above: taken, and renewed for each partition before the check

    finished = tieredctl.stopped(
        stop, Moment(LEASE_RENEWED, 4), "recover", "metadata", "--metadata-partitions", str(METADATA_PARTITIONS)
    )

    assert (finished.exit_code, FINISHING in finished.err) == (0, True), finished.err
    assert "Run it again" not in finished.err
    assert finished.document()["summary"]["left"] == 0
    assert sorted(tieredctl.states(ORDERS)) == whole
