"""What replay answers is what the manager of Kafka 3.4.1 answered about the same topic.

`listForEpoch` is left out: 3.0 to 3.5 displaced segments by another rule than 3.6 and later, whose rule is tieredctl's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tieredctl.cli.main import run
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.partitioner import metadata_partition

EPOCHS, OFFSETS = range(30), range(0, 1400, 7)
METADATA_PARTITIONS = 4


@pytest.fixture(scope="module")
def caches(captures: Path) -> dict[TopicIdPartition, RemoteLogMetadataCache]:
    source = LogDirectories([captures / "rlmm-3.4.1" / "data"])
    return dict(replayed(EventStream(source)).caches)


@pytest.fixture(scope="module")
def answers(captures: Path) -> list[dict[str, Any]]:
    lines = (captures / "rlmm-3.4.1" / "answers.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def partition_of(answer: dict[str, Any]) -> TopicIdPartition:
    return TopicIdPartition(answer["topicId"], answer["topic"], answer["partition"])


def test_a_partition_whose_removal_is_finished_is_forgotten(
    caches: dict[TopicIdPartition, RemoteLogMetadataCache], answers: list[dict[str, Any]]
) -> None:
    known = {(partition.topic, partition.partition) for partition in caches}

    assert known >= {(answer["topic"], answer["partition"]) for answer in answers}
    assert ("retired", 0) not in known


def test_metadata_partition(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        found = metadata_partition(answer["topicId"], answer["partition"], METADATA_PARTITIONS)

        assert found == answer["metadataPartition"]


def test_segments_and_their_states(
    caches: dict[TopicIdPartition, RemoteLogMetadataCache], answers: list[dict[str, Any]]
) -> None:
    for answer in answers:
        known = caches[partition_of(answer)].list_remote_log_segments()

        found = {segment.metadata.segment_id: segment.metadata.state.name for segment in known}
        assert found == dict(answer["segments"])


def test_highest_offset_for_epoch(
    caches: dict[TopicIdPartition, RemoteLogMetadataCache], answers: list[dict[str, Any]]
) -> None:
    for answer in answers:
        cache = caches[partition_of(answer)]

        found = {epoch: cache.highest_offset_for_epoch(epoch) for epoch in EPOCHS}
        expected = dict(answer["highestOffsetForEpoch"])
        assert found == {epoch: expected.get(epoch) for epoch in EPOCHS}


def test_look_ups(caches: dict[TopicIdPartition, RemoteLogMetadataCache], answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        cache = caches[partition_of(answer)]
        known = {(e, o): cache.remote_log_segment_metadata(e, o) for e in EPOCHS for o in OFFSETS}

        found = {place: segment.metadata.segment_id for place, segment in known.items() if segment}
        assert found == {(epoch, offset): segment_id for epoch, offset, segment_id in answer["lookup"]}


def test_the_command_gives_the_same_look_up(
    captures: Path, answers: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    log_dir = str(captures / "rlmm-3.4.1" / "data")
    answer = answers[0]
    epoch, offset, segment_id = answer["lookup"][0]
    where = f"{answer['topic']}:{answer['partition']}"

    code = run(
        [
            *("metadata", "lookup", where, "--log-dir", log_dir),
            *("--epoch", str(epoch), "--offset", str(offset), "-o", "json"),
        ]
    )

    (item,) = json.loads(capfd.readouterr().out)["items"]
    assert (code, item["segmentId"]) == (0, segment_id)
