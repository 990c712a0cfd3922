"""`metadata format` and `metadata history` of some events: by topic, partition, and when records were appended."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.metadata_command import CLEAN, FINDINGS, USAGE, Metadata
from tests.metadata_logs import FIRST_TIMESTAMP_MS, copied, segment_id, write_events
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.metadata.format import COLUMNS_FROM

CAPTURES = ("kafka-3.9.1", "kafka-4.3.1")
Event = dict[str, Any]


def shown(metadata: Metadata, *words: str | Path) -> list[Event]:
    return [json.loads(line) for line in metadata(*words, "-o", "jsonl").out.splitlines()]


@pytest.fixture(params=CAPTURES)
def data(request: pytest.FixtureRequest, captures: Path) -> Path:
    """Log directories of a real broker."""
    folder: Path = captures / request.param / "data"
    return folder


@pytest.fixture
def appended_ms(data: Path) -> Callable[[Event], int]:
    """When the broker appended an event's record."""
    times = {
        (number, record.offset): record.timestamp_ms
        for source in (LogDirectories([data]),)
        for number in source.metadata_partitions()
        for chunk in source.chunks(number)
        for record in chunk.records()
    }
    return lambda event: times[event["metadataPartition"], event["metadataOffset"]]


def test_events_of_a_topic_a_partition_a_span(
    metadata: Metadata, data: Path, appended_ms: Callable[[Event], int]
) -> None:
    every = shown(metadata, "format", "--log-dir", data)
    one, times = every[len(every) // 2], sorted(map(appended_ms, every))
    since, until = times[len(times) // 4], times[-len(times) // 4]

    filters: list[tuple[list[str], Callable[[Event], bool]]] = [
        (["--topic", one["topic"]], lambda event: event["topic"] == one["topic"]),
        (["--topic-id", one["topicId"]], lambda event: event["topicId"] == one["topicId"]),
        (["--partition", str(one["partition"])], lambda event: event["partition"] == one["partition"]),
        (["--since", str(since)], lambda event: appended_ms(event) >= since),
        (["--until", str(until)], lambda event: appended_ms(event) <= until),
    ]
    together = [word for words, _ in filters for word in words]
    as_people_write = ["--since", datetime.fromtimestamp(times[-1] / 1000, UTC).isoformat()]
    for words, is_meant in [
        *filters,
        (together, lambda event: all(meant(event) for _, meant in filters)),
        (as_people_write, lambda event: appended_ms(event) == times[-1]),
    ]:
        assert shown(metadata, "format", "--log-dir", data, *words) == list(filter(is_meant, every)), words

    lines = metadata("format", "--log-dir", data).out.splitlines()
    of_topic = metadata("format", "--log-dir", data, "--topic", one["topic"]).out.splitlines()
    assert of_topic == [line for event, line in zip(every, lines, strict=True) if event["topic"] == one["topic"]]


def test_the_history_of_a_segment_in_a_span(
    metadata: Metadata, data: Path, appended_ms: Callable[[Event], int]
) -> None:
    (segment,) = shown(metadata, "segments", "--log-dir", data)[:1]
    words = ("history", segment["segmentId"], "--log-dir", data)
    first, *others = shown(metadata, *words)

    assert others
    assert shown(metadata, *words, "--since", str(appended_ms(first) + 1)) == others
    assert shown(metadata, *words, "--topic", segment["topic"]) == [first, *others]
    long_ago = metadata(*words, "--until", "2001-01-01")
    assert (long_ago.code, long_ago.out) == (CLEAN, "")


def test_long_logs_are_filtered_in_columns_to_the_same(metadata: Metadata, tmp_path: Path) -> None:
    other = TopicIdPartition(uuid_text(bytes(range(100, 116))), "other", 0)
    numbers = range(1, COLUMNS_FROM // 2 + 1)
    write_events(tmp_path, *(event for n in numbers for event in copied(n, n, n)))
    write_events(tmp_path, *copied(9000, 0, 9, partition=other), metadata_partition=1)
    for style in ("kafka", "kip405"):
        words = ("format", "--log-dir", tmp_path, "--style", style)
        lines = metadata(*words).out.splitlines()

        assert metadata(*words, "--topic", "t").out.splitlines() == lines[:-2], style
        assert metadata(*words, "--topic", "other").out.splitlines() == lines[-2:], style


def test_what_cannot_be_decoded_is_reported_whatever_topic_is_selected_unless_it_was_appended_at_another_time(
    metadata: Metadata, tmp_path: Path
) -> None:
    write_events(tmp_path, *copied(1, 0, 9), b"\x00\x63 of a later release")
    where = ("--log-dir", tmp_path, "-o", "json")

    for words in (("format",), ("history", segment_id(1))):
        found = metadata(*words, *where, "--topic", "another")
        assert (found.code, found.codes, found.document["items"]) == (FINDINGS, ["event-undecodable"], []), words
    before = metadata("format", *where, "--until", str(FIRST_TIMESTAMP_MS + 1000))
    assert (before.code, before.codes, len(before.document["items"])) == (CLEAN, [], 2)


def test_nothing_selected_is_clean_and_what_is_no_span_is_refused(metadata: Metadata, log_dir: Path) -> None:
    long_ago = metadata("format", "--log-dir", log_dir, "--until", "2001-01-01")
    assert (long_ago.code, long_ago.out) == (CLEAN, "")
    for words in (("format",), ("history", segment_id(1))):
        for span in (("--since", "yesterday"), ("--until", ""), ("--since", "2", "--until", "1")):
            found = metadata(*words, "--log-dir", log_dir, *span)
            assert (found.code, found.out) == (USAGE, ""), (words, span)
    assert metadata("history", segment_id(99), "--log-dir", log_dir, "--topic", "t").code == USAGE
