"""Which topics a broker has, by their ids."""

from __future__ import annotations

from contextlib import closing

from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.kafka.topics_by_id import TopicsById

NO_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"


def test_every_release_tells_topics_by_id(driven: DrivenBroker) -> None:
    topics = driven.cluster.topics.values()

    with closing(TopicsById(driven.broker.bootstrap_server)) as cluster:
        answers = cluster.ask([*(topic.topic_id for topic in topics), NO_TOPIC_ID])

    assert answers == {topic.topic_id: not topic.deleted for topic in topics} | {NO_TOPIC_ID: False}
