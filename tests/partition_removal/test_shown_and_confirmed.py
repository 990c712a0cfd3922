"""`partition remove` from the shell: what it showed was confirmed, and nothing else is removed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext

import pytest

from tests.metadata_logs import TOPIC_ID, copied, segment_id, started
from tests.partition_removal.removed_topic import RemovedTopic
from tieredctl.cli.commands import partition
from tieredctl.cli.main import run
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.documents import Document
from tieredctl.ports.object_store import list_unreserved
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, Remote, StorePlace, TopicsPlace

Command = Callable[[RemovedTopic, Callable[[], object]], int]


class NoTopics:
    """A cluster that has none of the topics it is asked about."""

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        return dict.fromkeys(topic_ids, False)

    def describe(self) -> Document:
        return {"kind": "model"}


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the command with --apply; something happens while it waits to be confirmed."""

    def run_on(topic: RemovedTopic, meanwhile: Callable[[], object]) -> int:
        monkeypatch.setattr(MetadataPlace, "open_source", lambda _: topic.source())
        monkeypatch.setattr(MetadataPlace, "demand_topic_based", lambda _: None)
        monkeypatch.setattr(TopicsPlace, "open", lambda *_: nullcontext(TopicSources(cluster=NoTopics())))
        monkeypatch.setattr(StorePlace, "open_writable", lambda _: Remote(topic.store, topic.layout))
        monkeypatch.setattr(ClusterPlace, "open_metadata_producer", lambda _: nullcontext(topic))
        monkeypatch.setattr(partition, "demand_confirmation", lambda *_, **__: meanwhile())
        words = ["--bootstrap-server", "model:9092", "--store", "file:/model", "--apply", "-o", "json"]
        return run(["partition", "remove", TOPIC_ID, "--brokers-are-done", *words])

    return run_on


def made() -> RemovedTopic:
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 10, 19)])
    for number in (1, 2):
        topic.copy(number, 10 * (number - 1))
    return topic


def keys(topic: RemovedTopic) -> list[str]:
    return [stored.key for stored in list_unreserved(topic.store)]


def test_a_segment_that_appears_between_the_showing_and_the_doing_stops_it_and_nothing_is_deleted(
    removed: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = made()
    there = [*keys(topic)]

    def appears() -> None:
        topic.events += copied(3, 20, 29)
        there.extend(topic.copy(3, 20))

    code = removed(topic, appears)

    told = capsys.readouterr()
    assert (code, json.loads(told.out)["summary"]["stopped"]) == (5, "world-changed")
    assert f"segment {segment_id(3)}" in told.err
    assert keys(topic) == sorted(there)
    assert topic.events[4:] == copied(3, 20, 29)


def test_a_copy_that_begins_between_the_showing_and_the_doing_stops_it_too(removed: Command) -> None:
    topic = made()
    there = keys(topic)

    assert removed(topic, lambda: topic.events.append(started(3, 20, 29))) == 5
    assert keys(topic) == there


def test_what_was_shown_and_did_not_change_is_removed(removed: Command) -> None:
    topic = made()

    assert removed(topic, lambda: None) == 0
    assert keys(topic) == []
