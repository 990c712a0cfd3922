"""Which metadata partition holds a user partition's events (RemoteLogMetadataTopicPartitioner)."""

from __future__ import annotations

import pytest

from tests.metadata_logs import TOPIC_ID
from tieredctl.rlmm.partitioner import metadata_partition, murmur2


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        (b"", 275646681),
        (b"a", -1563381124),
        (b"ab", 316155434),
        (b"abc", 479470107),
        (b"21", -973932308),
        (b"foobar", -790332482),
    ],
)
def test_murmur2_is_kafkas(text: bytes, signed: int) -> None:
    assert murmur2(text) == signed % 2**32


@pytest.mark.parametrize(("partition", "expected"), list(enumerate([5, 31, 16, 49, 7, 15])))
def test_partition_of_fifty(partition: int, expected: int) -> None:
    assert metadata_partition(TOPIC_ID, partition, 50) == expected


def test_partition_of_five() -> None:
    assert metadata_partition(TOPIC_ID, 3, 5) == 4


def test_a_text_that_is_not_a_topic_id_is_refused() -> None:
    with pytest.raises(ValueError, match="not a Kafka Uuid"):
        metadata_partition("orders", 0, 50)
