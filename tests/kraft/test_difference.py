"""What changed between two images of a cluster, in words and as data."""

from __future__ import annotations

from typing import Any

from tests.conftest import inputs
from tests.random_metadata_records import RandomRecords, encoded
from tests.shares import divided
from tieredctl.formats.kraft_log import KraftRecordType as Kind
from tieredctl.formats.kraft_log import decode_kraft_record
from tieredctl.kraft.difference import Change, changes
from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.model.ids import uuid_text

TOPIC_ID = bytes(range(16))
TOPIC = Kind.TOPIC, {"Name": "orders", "TopicId": TOPIC_ID}
PARTITION = (
    Kind.PARTITION,
    {"PartitionId": 0, "TopicId": TOPIC_ID, "Replicas": [1, 2], "Isr": [1, 2], "Leader": 1, "LeaderEpoch": 0},
)
PASSWORD = {"ResourceType": 4, "ResourceName": "1", "Name": "ssl.key.password"}
CREDENTIAL = {"Name": "alice", "Mechanism": 1, "Salt": b"s", "ServerKey": b"v", "Iterations": 4096}


def image_of(*records: tuple[Kind, dict[str, Any]]) -> ClusterImage:
    replay = MetadataReplay()
    for offset, (kind, fields) in enumerate(records):
        replay.take(offset, decode_kraft_record(encoded(kind, fields)))
    assert replay.image.is_certain
    return replay.image


def test_a_topic_that_was_made_and_a_partition_that_moved() -> None:
    before = image_of(TOPIC, PARTITION)
    moved = (Kind.PARTITION_CHANGE, {"PartitionId": 0, "TopicId": TOPIC_ID, "Isr": [2], "Leader": 2})
    made = (Kind.TOPIC, {"Name": "new", "TopicId": bytes(16)})

    new, moved_partition = changes(before, image_of(TOPIC, PARTITION, moved, made))

    assert new == Change("topic", "new", None, {"topicId": uuid_text(bytes(16)), "partitions": 0})  # type: ignore[arg-type]
    assert new.words == "topic new was added: topicId AAAAAAAAAAAAAAAAAAAAAA, partitions 0"
    assert moved_partition.before == {"isr": [1, 2], "leader": 1, "leaderEpoch": 0, "partitionEpoch": -1}
    assert moved_partition.after == {"isr": [2], "leader": 2, "leaderEpoch": 1, "partitionEpoch": 0}
    assert moved_partition.words.startswith("partition orders-0: isr [1, 2] -> [2], leader 1 -> 2, ")


def test_a_topic_made_again_is_another_one_and_a_secret_is_hidden() -> None:
    # A topic made again is another one.
    again = (Kind.TOPIC, {"Name": "orders", "TopicId": bytes(16)})
    gone, new = changes(image_of(TOPIC), image_of(again))
    assert (gone.subject, gone.after) == ("orders", None)
    assert (new.subject, new.before) == ("orders", None)
    # A secret that changed is told and hidden.
    cases: list[tuple[tuple[Kind, Any], tuple[Kind, Any]]] = [
        ((Kind.CONFIG, {**PASSWORD, "Value": "hunter2"}), (Kind.CONFIG, {**PASSWORD, "Value": "hunter3"})),
        (
            (Kind.USER_SCRAM_CREDENTIAL, {**CREDENTIAL, "StoredKey": b"hunter2"}),
            (Kind.USER_SCRAM_CREDENTIAL, {**CREDENTIAL, "StoredKey": b"hunter3"}),
        ),
    ]
    for before, after in cases:
        (change,) = changes(image_of(before), image_of(after))
        assert "changed (hidden)" in change.words, (before, after)
        assert "hunter" not in str(change), (before, after)
        assert b"hunter".hex() not in str(change), (before, after)


def test_no_image_differs_from_itself_and_each_change_has_its_inverse() -> None:
    for seed in divided(range(inputs(20))):
        replay = MetadataReplay()
        records = RandomRecords(seed, replay.image)
        values = [records.draw() for _ in range(1)]
        for offset in range(120):
            replay.take(offset, decode_kraft_record(values[-1]))
            values.append(records.draw())
        half = MetadataReplay()
        for offset, value in enumerate(values[:60]):
            half.take(offset, decode_kraft_record(value))
        there, back = list(changes(half.image, replay.image)), list(changes(replay.image, half.image))

        assert list(changes(replay.image, replay.image)) == []
        assert there
        assert {(one.kind, one.subject, str(one.before), str(one.after)) for one in there} == {
            (one.kind, one.subject, str(one.after), str(one.before)) for one in back
        }
