"""A topic is gone when every broker says so: one that lags behind, or does not answer, makes nobody's orphan."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError, TopicAuthorizationFailedError, UnknownTopicIdError

from tieredctl.kafka.topics_by_id import TopicsById
from tieredctl.model.ids import uuid_text

TOPIC_ID, OTHER_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ", "rTFWgbQKRvehFNx-PhMpIg"
HAS, DENIES, HIDES = 0, UnknownTopicIdError.errno, TopicAuthorizationFailedError.errno


@pytest.fixture
def asked() -> list[tuple[int, list[str]]]:
    """Every request that was sent: to which broker, about which topics."""
    return []


@pytest.fixture
def answers_of(monkeypatch: pytest.MonkeyPatch, asked: list[tuple[int, list[str]]]) -> Any:
    """What is made of these brokers' answers about the two topics."""

    def answers_of(*brokers: Mapping[str, int] | None) -> dict[str, bool | None]:
        class Client:
            def __init__(self, *settings: object) -> None: ...

            def broker_ids(self) -> list[int]:
                return list(range(len(brokers)))

            def close(self) -> None: ...

            def answer(self, node_id: int, request: Any, timeout_seconds: float) -> SimpleNamespace:
                answers = brokers[node_id]
                asked.append((node_id, [uuid_text(topic.topic_id.bytes) for topic in request.topics]))
                if answers is None:
                    raise KafkaTimeoutError("no answer")
                found = [topic for topic in request.topics if uuid_text(topic.topic_id.bytes) in answers]
                return SimpleNamespace(
                    topics=[
                        SimpleNamespace(topic_id=one.topic_id, error_code=answers[uuid_text(one.topic_id.bytes)])
                        for one in found
                    ]
                )

        monkeypatch.setattr("tieredctl.kafka.topics_by_id.KafkaPythonClient", Client)
        cluster = TopicsById("localhost:9092", request_timeout_seconds=0)
        return cluster.ask([TOPIC_ID, OTHER_TOPIC_ID])

    return answers_of


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        ([HAS, HAS], True),
        ([DENIES, DENIES], False),
        ([DENIES, HAS], True),
        ([HAS, DENIES], True),
        ([HIDES, HIDES], None),
        ([HIDES, DENIES], None),
        ([DENIES, HIDES], None),
        ([DENIES, 7], None),
    ],
)
def test_what_is_made_of_two_brokers_answers(answers_of: Any, brokers: list[int], expected: bool | None) -> None:
    found = answers_of(*({TOPIC_ID: code, OTHER_TOPIC_ID: HAS} for code in brokers))

    assert found == {TOPIC_ID: expected, OTHER_TOPIC_ID: True}


def test_a_broker_that_does_not_answer_leaves_open_what_no_other_has(answers_of: Any) -> None:
    assert answers_of({TOPIC_ID: DENIES, OTHER_TOPIC_ID: HAS}, None) == {TOPIC_ID: None, OTHER_TOPIC_ID: True}


def test_a_broker_that_says_nothing_of_a_topic_leaves_it_open(answers_of: Any) -> None:
    assert answers_of({OTHER_TOPIC_ID: DENIES}) == {TOPIC_ID: None, OTHER_TOPIC_ID: False}


def test_a_cluster_without_brokers_denies_nothing(answers_of: Any) -> None:
    assert answers_of() == {TOPIC_ID: None, OTHER_TOPIC_ID: None}


def test_a_topic_that_one_broker_has_is_not_asked_for_again(
    answers_of: Any, asked: list[tuple[int, list[str]]]
) -> None:
    answers_of({TOPIC_ID: DENIES, OTHER_TOPIC_ID: HAS}, {TOPIC_ID: DENIES})

    assert asked == [(0, [TOPIC_ID, OTHER_TOPIC_ID]), (1, [TOPIC_ID])]
