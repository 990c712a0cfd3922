"""Which metadata partition holds a user partition's events (RemoteLogMetadataTopicPartitioner)."""

from __future__ import annotations

import pytest

from tests.metadata_logs import TOPIC_ID
from tieredctl.rlmm.partitioner import metadata_partition, murmur2

SIGNED = {
    b"": 275646681,
    b"a": -1563381124,
    b"ab": 316155434,
    b"abc": 479470107,
    b"21": -973932308,
    b"foobar": -790332482,
}


def test_murmur2_is_kafkas() -> None:
    assert {text: murmur2(text) for text in SIGNED} == {text: signed % 2**32 for text, signed in SIGNED.items()}


def test_partitions_of_fifty_and_of_five() -> None:
    assert [metadata_partition(TOPIC_ID, number, 50) for number in range(6)] == [5, 31, 16, 49, 7, 15]
    assert metadata_partition(TOPIC_ID, 3, 5) == 4


def test_a_text_that_is_not_a_topic_id_is_refused() -> None:
    with pytest.raises(ValueError, match="not a Kafka Uuid"):
        metadata_partition("orders", 0, 50)
