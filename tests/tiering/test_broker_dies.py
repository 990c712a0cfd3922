"""Three brokers: leaders move while a cluster is looked at, and one dies while a topic is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import Outcome, this_process
from tests.cli.running_exporter import exporter, is_up
from tests.rigs.broker import METADATA_TOPIC
from tests.rigs.churn import churning
from tests.rigs.driven_brokers import jars_of
from tests.rigs.three_brokers import NODE_IDS, ThreeBrokers, three_brokers
from tests.rigs.topics import create_topics, delete_topic
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run
from tieredctl.errors import TieredctlError
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.model.findings import Finding
from tieredctl.ops.doctor.metadata_progress import Watch, brokers_at_a_standstill

pytestmark = pytest.mark.integration

SECONDS = 90
RECORDS, RECORD_BYTES = 3, 600_000
RACED_RUNS = int(os.environ.get("TIEREDCTL_RACED_RUNS", "8"))
RACED = [
    *(("verify",), ("status",), ("doctor",), ("orphans", "scan", "--min-age", "0s"), ("recover", "metadata")),
    *(("recover", "metadata"), ("verify", "--level", "headers"), ("recover", "metadata")),
]
"""Commands that compare what moves: in turns, as many runs as there are to be."""
CHANGES = {
    "enable": ({"remote.storage.enable": "false"}, ("enable",), "true"),
    "disable": ({"remote.storage.enable": "true", "local.retention.bytes": "1"}, ("disable", "--delete"), "false"),
}
"""The settings before, the words of the command, and whether the topic is tiered afterwards."""


@dataclass
class Deaths:
    """Lets a broker die before one of the requests of a command."""

    die: Callable[[], object]
    at: int | None = None
    asked: int = 0
    names: list[str] = field(default_factory=list)

    def note(self, request: object) -> None:
        self.asked += 1
        self.names.append(type(request).__name__)
        if self.asked == self.at:
            self.die()


@pytest.fixture(
    scope="module", params=["4.3.1", pytest.param("3.9.1", marks=pytest.mark.exhaustive("three brokers of 3.9.1"))]
)
def three(request: pytest.FixtureRequest) -> Iterator[ThreeBrokers]:
    with three_brokers(jars_of(request.param)) as brokers:
        yield brokers


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, deaths: Deaths) -> Iterator[None]:
    ask = LiveCluster._ask

    def noted(cluster: LiveCluster, node_id: int | None, request: Any, *more: Any, **how: Any) -> Any:
        deaths.note(request)
        return ask(cluster, node_id, request, *more, **how)

    with monkeypatch.context() as patch:
        patch.setattr(LiveCluster, "_ask", noted)
        yield


def topic_with(three: ThreeBrokers, name: str, settings: dict[str, str]) -> None:
    """Three partitions, one led by each broker, with a closed segment each; tiered if it is to be."""
    config = {"segment.bytes": str(1 << 20), **settings}
    create_topics(three.bootstrap_servers, NewTopic(name, len(NODE_IDS), len(NODE_IDS), config=config))
    producer = Producer({"bootstrap.servers": three.bootstrap_servers, "log_level": 0})
    for _ in range(RECORDS):
        for partition in range(len(NODE_IDS)):
            producer.produce(name, b"." * RECORD_BYTES, partition=partition)
        producer.flush(30)


def is_copied(three: ThreeBrokers, name: str) -> bool:
    """Whether every closed segment is in remote storage: a plan is not carried out where others came since."""
    words = ("--topic", name, "--bootstrap-server", three.bootstrap_servers, "-o", "jsonl")
    states = [segment["state"] for segment in this_process("metadata", "segments", *words).lines()]
    return len(states) >= (RECORDS - 1) * len(NODE_IDS) and set(states) == {"COPY_SEGMENT_FINISHED"}


def is_tiered(three: ThreeBrokers, name: str) -> str | None:
    cluster = LiveCluster(three.bootstrap_servers)
    try:
        return cluster.topic_configs([name])[name]["remote.storage.enable"].value
    finally:
        cluster.close()


def deleted_segments(three: ThreeBrokers) -> int:
    """How many segments retention has deleted by now."""
    found = this_process("metadata", "segments", "--all", "--bootstrap-server", three.bootstrap_servers, "-o", "jsonl")
    return sum(segment["state"] == "DELETE_SEGMENT_FINISHED" for segment in found.lines())


def attended(three: ThreeBrokers, words: tuple[str, ...]) -> set[tuple[str, str]]:
    """What a command finds above info of all but settings, which do not move: code and subject, or status and cause."""
    store = ("--store", f"file:{three.nodes[1].remote_dir}", "--layout", "local")
    outcome = this_process(*words, "--bootstrap-server", three.bootstrap_servers, *store, "-o", "json")
    assert outcome.out, outcome.err
    document = outcome.document()
    told = document["summary"].get("findings")
    found = [*document["items"], *(told if isinstance(told, list) else [])]
    graves = {(one["code"], one["subject"]) for one in found if one.get("severity") not in (None, "info")}
    graves = {(code, subject) for code, subject in graves if not code.startswith("topic-config-")}
    return graves | {(one["status"], str(one["cause"])) for one in found if one.get("status") in ("orphan", "unknown")}


@pytest.mark.parametrize("three", ["4.3.1"], indirect=True)
def test_what_moves_while_it_is_looked_at_is_not_reported(three: ThreeBrokers) -> None:
    """Retention runs, leaders move, and topics come and go: what is found then, the same command finds at rest."""
    topics: dict[str, dict[str, str]] = {"quick": {"retention.ms": "20000"}, "steady": {}}
    false_alarms = []
    try:
        with churning(three, topics, seconds_a_leader=3) as churn:
            wait_until(lambda: churn.moves > 2 and deleted_segments(three) > 2, "retention follows leaders", SECONDS)
            wait_until(lambda: churn.gone > 1, "topics go", SECONDS)
            for run_number, words in enumerate(islice(cycle(RACED), RACED_RUNS), 1):
                if moving := attended(three, words):
                    with churn.paused():
                        # At once: what is true of segments now, retention may make untrue.
                        unconfirmed = moving - attended(three, words)
                    false_alarms += [(run_number, words, unconfirmed)] if unconfirmed else []
    finally:
        for name in topics:
            delete_topic(three.bootstrap_servers, name)
    assert false_alarms == []


@contextmanager
def watched(three: ThreeBrokers, by: int) -> Iterator[list[tuple[set[int], Finding | None]]]:
    """What `doctor` asks first, of one broker, by one run after another: which brokers answered, and the finding."""
    looks: list[tuple[set[int], Finding | None]] = []
    ends = Event()

    def watch() -> None:
        while not ends.is_set():
            # The connection to a broker that dies may end a run, whose user begins another.
            with suppress(TieredctlError), closing(LiveCluster(three.nodes[by].bootstrap_server)) as cluster:
                found = brokers_at_a_standstill(cluster, Watch())
                applied = cluster.metadata_progress().applied
                looks.append(({broker for broker, offset in applied.items() if offset is not None}, found))

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(watch)
        try:
            yield looks
        finally:
            ends.set()
        done.result(SECONDS)


def test_a_broker_that_starts_is_not_at_a_standstill(three: ThreeBrokers) -> None:
    """Whenever the command begins to watch, from before it goes until it has caught up."""
    starting = three.nodes[2]
    everybody = set(NODE_IDS)

    def look(looks: list[tuple[set[int], Finding | None]], answer: set[int], after: int) -> Callable[[], bool]:
        return lambda: any(answered == answer for answered, _ in looks[after:])

    with watched(three, 1) as looks:
        wait_until(look(looks, everybody, 0), "it is watched", SECONDS)
        starting.kill()
        gone_from = len(looks)
        try:
            wait_until(look(looks, everybody - {2}, gone_from), "it is seen to be gone", SECONDS, lambda: str(looks))
        finally:
            starting.start()
        back_from = len(looks)
        wait_until(look(looks, everybody, back_from), "it is seen to be back", SECONDS)
        three.await_whole()

    assert [found for _, found in looks if found is not None] == []


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(0.1, id="at the first checks", marks=pytest.mark.exhaustive),
        pytest.param(0.5, id="at the estimate"),
        pytest.param(0.9, id="at the end", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_others_carry_it_through(
    three: ThreeBrokers,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    change: tuple[dict[str, str], tuple[str, ...], str],
    share: float,
) -> None:
    settings, (verb, *words), tiered = change
    name = f"{verb}-{int(share * 10)}"
    topic_with(three, name, settings)
    if settings["remote.storage.enable"] == "true":
        wait_until(lambda: is_copied(three, name), "its closed segments are copied", SECONDS)
    dying = three.nodes[three.leader_of(name, 0)]

    def command(*more: str) -> Outcome:
        capfd.readouterr()
        code = run(["topic", verb, name, *words, "--bootstrap-server", three.bootstrap_servers, "-o", "json", *more])
        return Outcome(code, *capfd.readouterr())

    plan = Deaths(dying.kill)
    with counted(monkeypatch, plan):
        assert command().exit_code in (0, 3)
    deaths = Deaths(dying.kill, at=max(1, int(share * plan.asked)))
    try:
        with counted(monkeypatch, deaths):
            outcome = command("--apply", "--yes", "--cluster-id", dying.cluster_id, "--no-wait")
        assert not dying.running, "it did not die meanwhile"
        assert outcome.out, outcome.err
        graves = {item["code"] for item in outcome.document()["items"] if item["severity"] == "error"}
        # Where the checks already see that the metadata topic lacks a replica, nothing is to be changed.
        assert graves <= {"metadata-topic-under-replicated"}, outcome.out
        assert bool(outcome.exit_code) == bool(graves), outcome.err
        expected = settings["remote.storage.enable"] if graves else tiered
        # A broker hears of it a moment after the controller has decided.
        wait_until(lambda: is_tiered(three, name) == expected, "the brokers know the outcome", SECONDS)
    finally:
        dying.kill()
        dying.start()
        three.await_whole()


@pytest.mark.parametrize("three", ["4.3.1"], indirect=True)
def test_an_exporter_follows_to_the_new_leaders_and_reads_nothing_twice(three: ThreeBrokers) -> None:
    topic_with(three, "watched", {"remote.storage.enable": "true", "local.retention.bytes": "1"})
    wait_until(lambda: is_copied(three, "watched"), "its closed segments are copied", SECONDS)
    dying = three.nodes[three.leader_of(METADATA_TOPIC, 0)]
    segments, brokers = ("tieredctl_remote_segments", "topic=watched"), ("tieredctl_brokers",)

    with exporter("--bootstrap-server", three.bootstrap_servers) as running:
        before = running.awaited(lambda samples: is_up(samples) and samples.get(brokers) == len(NODE_IDS))
        try:
            dying.kill()
            after = running.awaited(lambda samples: is_up(samples) and samples.get(brokers) == len(NODE_IDS) - 1)
        finally:
            dying.kill()
            dying.start()
            three.await_whole()
        whole = running.awaited(lambda samples: is_up(samples) and samples.get(brokers) == len(NODE_IDS))

    for samples in (after, whole):
        assert samples[segments] == before[segments] == (RECORDS - 1) * len(NODE_IDS)
        assert samples["tieredctl_exporter_metadata_readings_total",] == 1
        assert samples["tieredctl_exporter_metadata_losses_total",] == 0
