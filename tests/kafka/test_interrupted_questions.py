"""What asks a cluster that is in trouble: its broker stops answering, the topic is deleted meanwhile, or whoever asked
interrupts it."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.cimpl import NewTopic
from kafka.net.connection import KafkaConnection
from kafka.net.transport import KafkaTCPTransport

from tests.cli.command_line import Outcome
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.topics import create_topics, delete_topic
from tieredctl.cli.main import run
from tieredctl.kafka.live_cluster import LiveCluster

pytestmark = pytest.mark.integration

QUESTIONS = {
    "topic list": ("topic", "list"),
    "topic status": ("topic", "status", "{topic}"),
    "offsets": ("offsets", "{topic}"),
    "explain": ("explain", "{topic}:0@3"),
    "estimate retention": ("estimate", "retention", "{topic}", "--retention-ms", "1000"),
    "doctor": ("doctor",),
}
OF_ONE_TOPIC = [name for name, words in QUESTIONS.items() if "{topic}" in " ".join(words)]
FAILED, USAGE, FOUND_SOMETHING, INCOMPLETE, INTERRUPTED = 1, 2, 3, 5, 130


class Requests:
    """Counts what is asked of a cluster over kafka-python, and lets something happen before one of the requests."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.happens_before: int | None = None
        self.happens: Callable[[], object] = lambda: None
        ask = LiveCluster._ask

        def counted(cluster: LiveCluster, node_id: int | None, request: Any, *more: Any, **how: Any) -> Any:
            self.asked += 1
            if self.asked == self.happens_before:
                self.happens()
            return ask(cluster, node_id, request, *more, **how)

        patch.setattr(LiveCluster, "_ask", counted)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return Requests(monkeypatch)


@pytest.fixture
def ask(driven: DrivenBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    config = tmp_path / "impatient.properties"
    config.write_text("request.timeout.ms=2000\n")

    def asked(question: str, topic: str, *, impatiently: bool = False) -> Outcome:
        words = [word.format(topic=topic) for word in QUESTIONS[question]]
        if impatiently:
            words += ["--command-config", str(config)]
        code = run([*words, "--bootstrap-server", driven.broker.bootstrap_server, "-o", "json"])
        return Outcome(code, *capfd.readouterr())

    return asked


@pytest.fixture
def short_lived(driven: DrivenBroker) -> Iterator[str]:
    server, name = driven.broker.bootstrap_server, f"short-lived-{uuid.uuid4()}"
    create_topics(server, NewTopic(name, 1, config={"remote.storage.enable": "true"}))
    yield name
    delete_topic(server, name)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_broker_that_stops_answering_in_the_middle_is_reported_and_another_run_succeeds(
    question: str, driven: DrivenBroker, requests: Requests, ask: Callable[..., Outcome]
) -> None:
    before = ask(question, "orders")
    requests.happens_before, requests.asked = requests.asked, 0
    requests.happens = driven.broker.pause
    try:
        interrupted = ask(question, "orders", impatiently=True)
    finally:
        driven.broker.go_on()

    after = ask(question, "orders")

    assert before.exit_code in (0, FOUND_SOMETHING), before.err
    assert interrupted.exit_code == (INCOMPLETE if question == "doctor" else FAILED)
    assert bool(interrupted.out) == (question == "doctor")
    assert (
        f"{driven.broker.bootstrap_server} did not answer within the request timeout of 2 s"
        in interrupted.err + interrupted.out
    )
    assert "has a fault" not in interrupted.err
    assert after.exit_code == before.exit_code, after.err


@pytest.mark.parametrize("question", OF_ONE_TOPIC)
def test_a_topic_that_is_deleted_in_the_middle_is_reported(
    question: str, driven: DrivenBroker, short_lived: str, requests: Requests, ask: Callable[..., Outcome]
) -> None:
    requests.happens_before = 2
    requests.happens = lambda: delete_topic(driven.broker.bootstrap_server, short_lived)

    interrupted = ask(question, short_lived, impatiently=True)
    afterwards = ask(question, short_lived)

    assert requests.asked > 2
    assert interrupted.exit_code in (FAILED, USAGE, INCOMPLETE), interrupted
    assert "has a fault" not in interrupted.err
    assert (afterwards.exit_code, f"has no topic {short_lived}" in afterwards.err) == (USAGE, True)


@pytest.mark.parametrize(
    ("part", "step"),
    [(KafkaTCPTransport, "_sock_send"), (KafkaTCPTransport, "_sock_recv"), (KafkaConnection, "data_received")],
)
def test_an_interrupt_is_not_lost_whatever_kafka_python_is_at(
    part: type, step: str, requests: Requests, ask: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    take = getattr(part, step)

    def interrupted(*given: Any) -> Any:
        monkeypatch.setattr(part, step, take)
        os.kill(os.getpid(), signal.SIGINT)
        return take(*given)

    requests.happens_before, requests.happens = 1, lambda: monkeypatch.setattr(part, step, interrupted)

    outcome = ask("topic list", "orders")

    assert (outcome.exit_code, outcome.out) == (INTERRUPTED, ""), outcome
    assert "Interrupted." in outcome.err
