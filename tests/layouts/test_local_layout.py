"""The names of Kafka's LocalTieredStorage (RemoteTopicPartitionDirectory, RemoteLogSegmentFileset)."""

from __future__ import annotations

import pytest
from tieredctl_local import LocalLayout

from tieredctl.ports.layout import ExplainedKey, Part

TOPIC_ID, SEGMENT_ID = "ABEiM0RVZneImaq7zN3u_w", "AQIDBAUGBwgJCgsMDQ4PEA"
FOLDER = f"t-3-{TOPIC_ID}"
STEM = f"{FOLDER}/00000000000000000000-{SEGMENT_ID}"


@pytest.mark.parametrize(
    ("suffix", "part"),
    [
        (".log", Part.LOG),
        (".index", Part.OFFSET_INDEX),
        (".timeindex", Part.TIME_INDEX),
        (".txnindex", Part.TRANSACTION_INDEX),
        (".leader_epoch_checkpoint", Part.LEADER_EPOCH),
        (".snapshot", Part.PRODUCER_SNAPSHOT),
    ],
)
def test_suffixes_name_parts(suffix: str, part: Part) -> None:
    assert LocalLayout().explain(STEM + suffix) == ExplainedKey("t", TOPIC_ID, 3, 0, SEGMENT_ID, part)


def test_only_the_transaction_index_may_be_missing() -> None:
    explained = ExplainedKey("t", TOPIC_ID, 3, 0, SEGMENT_ID, Part.LOG)

    assert LocalLayout().optional_objects(explained) == {Part.TRANSACTION_INDEX: f"{STEM}.txnindex"}
    assert len(LocalLayout().promised_objects(explained)) == 5


@pytest.mark.parametrize(
    ("folder", "topic", "topic_id", "partition"),
    [
        pytest.param(f"a-1-2-{TOPIC_ID}", "a-1", TOPIC_ID, 2, id="a topic like a partition folder"),
        pytest.param(f"---0-{TOPIC_ID}", "--", TOPIC_ID, 0, id="a topic of dashes"),
        pytest.param("t-0--2345678901234567890-w", "t", "-2345678901234567890-w", 0, id="an id with dashes"),
        pytest.param("t-1-1-0-1-0-1-0-1-0-1-0-1w", "t", "1-0-1-0-1-0-1-0-1-0-1w", 1, id="an id like partitions"),
        pytest.param(f"t-2147483647-{TOPIC_ID}", "t", TOPIC_ID, 2147483647, id="the last partition"),
    ],
)
def test_folders_are_split_from_the_right(folder: str, topic: str, topic_id: str, partition: int) -> None:
    explained = LocalLayout().explain(f"{folder}/00000000000000000000-{SEGMENT_ID}.log")

    assert explained is not None
    assert (explained.topic, explained.topic_id, explained.partition) == (topic, topic_id, partition)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(f"{STEM}.rsm-manifest", id="another layout's part"),
        pytest.param(f"{STEM}.log.tmp", id="a suffix after the suffix"),
        pytest.param(f"{STEM}.LOG", id="a suffix in capitals"),
        pytest.param(f"{STEM}.log\n", id="a line end after the suffix"),
        pytest.param(f"{STEM}", id="no suffix"),
        pytest.param(f"x/{STEM}.log", id="a folder around it"),
        pytest.param(f"{FOLDER}/x/00000000000000000000-{SEGMENT_ID}.log", id="a folder within"),
        pytest.param(f"{FOLDER}/0-{SEGMENT_ID}.log", id="an offset without its zeros"),
        pytest.param(f"{FOLDER}/09223372036854775808-{SEGMENT_ID}.log", id="an offset beyond a long"),
        pytest.param(f"t-03-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.log", id="a partition with a zero before it"),
        pytest.param(f"t-2147483648-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.log", id="a partition beyond an int"),
        pytest.param(f"t-\u0663-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.log", id="a digit that is not ASCII"),
        pytest.param(f"-3-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.log", id="no topic"),
        pytest.param(f"t:u-3-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.log", id="a topic that Kafka does not allow"),
        pytest.param(f"t-3-{TOPIC_ID[:-1]}x/00000000000000000000-{SEGMENT_ID}.log", id="an id of more than 128 bits"),
    ],
)
def test_what_the_manager_would_not_write_is_not_explained(key: str) -> None:
    assert LocalLayout().explain(key) is None
