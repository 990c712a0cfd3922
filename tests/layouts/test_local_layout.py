"""The names of Kafka's LocalTieredStorage (RemoteTopicPartitionDirectory, RemoteLogSegmentFileset)."""

from __future__ import annotations

from tieredctl_local import LocalLayout

from tieredctl.ports.layout import ExplainedKey, Part

TOPIC_ID, SEGMENT_ID = "ABEiM0RVZneImaq7zN3u_w", "AQIDBAUGBwgJCgsMDQ4PEA"
FOLDER = f"t-3-{TOPIC_ID}"
FIRST = f"00000000000000000000-{SEGMENT_ID}"
STEM = f"{FOLDER}/{FIRST}"


PARTS = {
    ".log": Part.LOG,
    ".index": Part.OFFSET_INDEX,
    ".timeindex": Part.TIME_INDEX,
    ".txnindex": Part.TRANSACTION_INDEX,
    ".leader_epoch_checkpoint": Part.LEADER_EPOCH,
    ".snapshot": Part.PRODUCER_SNAPSHOT,
}


def test_suffixes_name_parts() -> None:
    for suffix, part in PARTS.items():
        assert LocalLayout().explain(STEM + suffix) == ExplainedKey("t", TOPIC_ID, 3, 0, SEGMENT_ID, part)


def test_only_the_transaction_index_may_be_missing() -> None:
    explained = ExplainedKey("t", TOPIC_ID, 3, 0, SEGMENT_ID, Part.LOG)

    assert LocalLayout().optional_objects(explained) == {Part.TRANSACTION_INDEX: f"{STEM}.txnindex"}
    assert len(LocalLayout().promised_objects(explained)) == 5


FOLDERS = {
    "a topic like a partition folder": (f"a-1-2-{TOPIC_ID}", "a-1", TOPIC_ID, 2),
    "a topic of dashes": (f"---0-{TOPIC_ID}", "--", TOPIC_ID, 0),
    "an id with dashes": ("t-0--2345678901234567890-w", "t", "-2345678901234567890-w", 0),
    "an id like partitions": ("t-1-1-0-1-0-1-0-1-0-1-0-1w", "t", "1-0-1-0-1-0-1-0-1-0-1w", 1),
    "the last partition": (f"t-2147483647-{TOPIC_ID}", "t", TOPIC_ID, 2147483647),
}


def test_folders_are_split_from_the_right() -> None:
    for name, (folder, *parts) in FOLDERS.items():
        explained = LocalLayout().explain(f"{folder}/{FIRST}.log")

        assert explained is not None, name
        assert [explained.topic, explained.topic_id, explained.partition] == parts, name


NOT_WRITTEN = {
    "another layout's part": f"{STEM}.rsm-manifest",
    "a suffix after the suffix": f"{STEM}.log.tmp",
    "a suffix in capitals": f"{STEM}.LOG",
    "a line end after the suffix": f"{STEM}.log\n",
    "no suffix": f"{STEM}",
    "a folder around it": f"x/{STEM}.log",
    "a folder within": f"{FOLDER}/x/{FIRST}.log",
    "an offset without its zeros": f"{FOLDER}/0-{SEGMENT_ID}.log",
    "an offset beyond a long": f"{FOLDER}/09223372036854775808-{SEGMENT_ID}.log",
    "a partition with a zero before it": f"t-03-{TOPIC_ID}/{FIRST}.log",
    "a partition beyond an int": f"t-2147483648-{TOPIC_ID}/{FIRST}.log",
    "a digit that is not ASCII": f"t-\u0663-{TOPIC_ID}/{FIRST}.log",
    "no topic": f"-3-{TOPIC_ID}/{FIRST}.log",
    "a topic that Kafka does not allow": f"t:u-3-{TOPIC_ID}/{FIRST}.log",
    "an id of more than 128 bits": f"t-3-{TOPIC_ID[:-1]}x/{FIRST}.log",
}


def test_what_the_manager_would_not_write_is_not_explained() -> None:
    for name, key in NOT_WRITTEN.items():
        assert LocalLayout().explain(key) is None, name
