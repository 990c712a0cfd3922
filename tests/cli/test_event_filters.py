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
    for words, is_meant in [*filters, (together, lambda event: all(meant(event) for _, meant in filters))]:
        assert shown(metadata, "format", "--log-dir", data, *words) == list(filter(is_meant, every)), words


def test_the_history_of_a_segment_in_a_span(
    metadata: Metadata, data: Path, appended_ms: Callable[[Event], int]
) -> None:
    (segment,) = shown(metadata, "segments", "--log-dir", data)[:1]
    first, *others = shown(metadata, "history", segment["segmentId"], "--log-dir", data)
    later = ("--since", str(appended_ms(first) + 1))

    assert others
    assert shown(metadata, "history", segment["segmentId"], "--log-dir", data, *later) == others
    assert shown(metadata, "history", segment["segmentId"], "--log-dir", data, "--topic", segment["topic"]) == [
        first,
        *others,
    ]
    long_ago = metadata("history", segment["segmentId"], "--log-dir", data, "--until", "2001-01-01")
    assert (long_ago.code, long_ago.err) == (
        CLEAN,
        f"No event is selected; the segment has {1 + len(others)} events.\n",
    )


def test_lines_of_text_are_those_of_the_events_that_are_meant(metadata: Metadata, data: Path) -> None:
    every = shown(metadata, "format", "--log-dir", data)
    lines = metadata("format", "--log-dir", data).out.splitlines()
    topic = every[0]["topic"]

    found = metadata("format", "--log-dir", data, "--topic", topic).out.splitlines()

    assert found == [line for event, line in zip(every, lines, strict=True) if event["topic"] == topic]


def test_a_span_takes_times_as_people_write_them(
    metadata: Metadata, data: Path, appended_ms: Callable[[Event], int]
) -> None:
    every = shown(metadata, "format", "--log-dir", data)
    last = max(map(appended_ms, every))
    moment = datetime.fromtimestamp(last / 1000, UTC).isoformat()

    assert shown(metadata, "format", "--log-dir", data, "--since", moment) == [
        event for event in every if appended_ms(event) == last
    ]


@pytest.mark.parametrize("style", ["kafka", "kip405"])
def test_long_logs_are_filtered_in_columns_to_the_same(metadata: Metadata, tmp_path: Path, style: str) -> None:
    other = TopicIdPartition(uuid_text(bytes(range(100, 116))), "other", 0)
    numbers = range(1, COLUMNS_FROM // 2 + 1)
    write_events(tmp_path, *(event for n in numbers for event in copied(n, n, n)))
    write_events(tmp_path, *copied(9000, 0, 9, partition=other), metadata_partition=1)
    lines = metadata("format", "--log-dir", tmp_path, "--style", style).out.splitlines()

    found = metadata("format", "--log-dir", tmp_path, "--style", style, "--topic", "t").out.splitlines()

    assert found == lines[:-2]
    assert (
        metadata("format", "--log-dir", tmp_path, "--style", style, "--topic", "other").out.splitlines() == lines[-2:]
    )


@pytest.mark.parametrize("words", [("format",), ("history", segment_id(1))], ids=lambda words: words[0])
def test_what_cannot_be_decoded_is_reported_whatever_topic_is_selected(
    metadata: Metadata, tmp_path: Path, words: tuple[str, ...]
) -> None:
    write_events(tmp_path, *copied(1, 0, 9), b"\x00\x63 of a later release")

    found = metadata(*words, "--log-dir", tmp_path, "--topic", "another", "-o", "json")

    assert (found.code, found.codes, found.document["items"]) == (FINDINGS, ["event-undecodable"], [])


def test_a_span_leaves_out_what_cannot_be_decoded_and_was_appended_at_another_time(
    metadata: Metadata, tmp_path: Path
) -> None:
    write_events(tmp_path, *copied(1, 0, 9), b"\x00\x63 of a later release")
    before = ("--until", str(FIRST_TIMESTAMP_MS + 1000))

    found = metadata("format", "--log-dir", tmp_path, *before, "-o", "json")

    assert (found.code, found.codes, len(found.document["items"])) == (CLEAN, [], 2)


def test_nothing_selected_is_clean_and_said(metadata: Metadata, log_dir: Path) -> None:
    long_ago = ("--until", "2001-01-01")
    found = metadata("format", "--log-dir", log_dir, *long_ago)

    assert (found.code, found.out, found.err) == (CLEAN, "", "No events.\n")
    assert metadata("format", "--log-dir", log_dir, *long_ago, "--quiet").err == ""


@pytest.mark.parametrize("words", [("format",), ("history", segment_id(1))], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("span", "message"),
    [
        (("--since", "yesterday"), "'yesterday' is not a time"),
        (("--until", ""), "'' is not a time"),
        (("--since", "2", "--until", "1"), "--since is later than --until"),
    ],
)
def test_a_span_that_is_none_is_refused(
    metadata: Metadata, log_dir: Path, words: tuple[str, ...], span: tuple[str, ...], message: str
) -> None:
    found = metadata(*words, "--log-dir", log_dir, *span)

    assert (found.code, found.out) == (USAGE, "")
    assert message in found.err


def test_a_history_of_a_segment_that_is_unknown_fails_with_filters_too(metadata: Metadata, log_dir: Path) -> None:
    assert metadata("history", segment_id(99), "--log-dir", log_dir, "--topic", "t").code == USAGE
