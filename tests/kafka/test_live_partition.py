"""A leader's batches are read as a log directory's are, whatever was done to them and however small its answers are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import cast

import pytest

from tests.metadata_logs import copied, metadata_batches, write_log
from tests.refusals import refused_with
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.compression import Codec
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import HEADER_BYTES, read_batch_header
from tieredctl.formats.record_chunks import MetadataRecord, RecordChunk
from tieredctl.kafka import live_topic
from tieredctl.kafka.live_log import FetchedLog, LiveLog
from tieredctl.kafka.live_topic import LivePartition
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.findings import Finding
from tieredctl.ports.cluster import TopicDescription
from tieredctl.ports.metadata_source import OffsetRange

EVENTS = [event for number in range(1, 31) for event in copied(number, number, number)]
TOPIC = TopicDescription("__remote_log_metadata", "ABEiM0RVZneImaq7zN3u_w", ())
COUNT, PER_BATCH = len(EVENTS), 4


@dataclass
class ModelLeader:
    """Gives out its log as brokers do: from the first batch whose header claims the offset, or a later one."""

    batches: list[bytes]
    end: int = COUNT
    request_timeout_seconds: float = 0.0
    asked: list[int] = field(default_factory=list)

    def fetch(self, _topic: TopicDescription, _partition: int, offset: int, most_bytes: int) -> FetchedLog:
        self.asked.append(offset)
        for number, batch in enumerate(self.batches):
            if read_batch_header(batch, 0, len(batch)).last_offset >= offset:
                data = b"".join(self.batches[number:])
                return FetchedLog(data[: max(most_bytes, len(batch))], self.end)
        return FetchedLog(b"", self.end)

    def gave_nothing(self, partition: int, offset: int, reason: str) -> TieredctlError:
        return TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"{partition}, {offset}: {reason}.")


def read(chunks: list[RecordChunk]) -> tuple[list[MetadataRecord], list[Finding]]:
    records = [record for chunk in chunks for record in chunk.records()]
    return records, [finding for chunk in chunks for finding in chunk.findings]


def from_leader(leader: ModelLeader, start: int = 0, end: int = COUNT) -> tuple[list[MetadataRecord], list[Finding]]:
    offsets = OffsetRange(start, end)
    return read(list(LivePartition(cast("LiveLog", leader), TOPIC, 0, offsets).chunks()))


def from_disk(batches: list[bytes], folder: Path) -> tuple[list[MetadataRecord], list[Finding]]:
    write_log(folder, 0, batches)
    return read(list(LogDirectories([folder]).chunks(0)))


ANSWERS = {"a batch": 1, "some bytes": 700, "some batches": 5_000, "all": 1 << 22}
"""How many bytes an answer has at most, beyond its first batch."""


def ways_of_reading(patch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each size of answers, by rows and by columns: its name, while it is how everything is read."""
    for answers, most_bytes in ANSWERS.items():
        for kind in ("rows", "columns"):
            patch.undo()
            patch.setattr(live_topic, "_BYTES_AT_ONCE", most_bytes)
            patch.setattr(live_topic, "_MOST_BYTES", max(most_bytes, 100_000))
            if kind == "columns":
                patch.setattr("tieredctl.formats.log_blocks.COLUMNS_FROM", 0)
            yield f"{answers} by {kind}"


def batches_of(codec: Codec = Codec.NONE, per_batch: int = PER_BATCH) -> list[bytes]:
    return metadata_batches(EVENTS, records_per_batch=per_batch, codec=codec)


def altered(batches: list[bytes], number: int, position: int, mask: int = 1) -> list[bytes]:
    """One byte of one batch is another."""
    data = bytearray(batches[number])
    data[position] ^= mask
    return [*batches[:number], bytes(data), *batches[number + 1 :]]


def test_every_record_of_every_codec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for codec, per_batch in product(Codec, (1, PER_BATCH)):
        batches = batches_of(codec, per_batch)
        for way in ways_of_reading(monkeypatch):
            case = codec, per_batch, way
            records, findings = from_leader(ModelLeader(batches))
            assert (records, findings) == from_disk(batches, tmp_path), case
            assert (len(records), findings) == (COUNT, []), case


def test_reading_may_begin_within_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = batches_of()
    for way in ways_of_reading(monkeypatch):
        for start in range(10):
            records, findings = from_leader(ModelLeader(batches), start)

            assert [one.offset for one in records] == list(range(start, COUNT)), (way, start)
            assert findings == [], (way, start)


def test_what_was_written_after_the_end_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for way in ways_of_reading(monkeypatch):
        records, findings = from_leader(ModelLeader(batches_of()), end=20)

        assert [one.offset for one in records] == list(range(20)), way
        assert findings == [], way


def test_a_damaged_batch_is_one_finding_and_reading_continues_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (0, 1, 7, 13, 14):
        batches = altered(batches_of(), number, -1)
        for way in ways_of_reading(monkeypatch):
            case = number, way
            records, findings = from_leader(ModelLeader(batches))
            on_disk, expected = from_disk(batches, tmp_path)

            assert records == on_disk, case
            assert [one.code for one in findings] == [one.code for one in expected] == ["batch-corrupt"], case
            assert findings[0].evidence["offsets"] == expected[0].evidence["offsets"], case


def test_a_base_offset_that_was_altered_is_reported_and_no_other_record_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far_beyond_the_end, by_256, by_one = 0, 6, 7
    for number, position in product((1, 7, 13), (far_beyond_the_end, by_256, by_one)):
        batches = altered(batches_of(), number, position)
        untouched = {encode_event(event) for place, event in enumerate(EVENTS) if place // PER_BATCH != number}
        for way in ways_of_reading(monkeypatch):
            case = number, position, way
            records, findings = from_leader(ModelLeader(batches))
            on_disk, expected = from_disk(batches, tmp_path)

            assert untouched <= {one.value for one in records}, case
            assert len(records) == len(on_disk) == COUNT, case
            assert {one.code for one in expected} == {"offsets-out-of-order"}, case
            assert {one.code for one in findings} == {"offsets-out-of-order"}, case


def test_two_batches_that_are_damaged_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = altered(altered(batches_of(), 5, -1), 6, HEADER_BYTES + 3)
    for way in ways_of_reading(monkeypatch):
        records, findings = from_leader(ModelLeader(batches))

        assert records == from_disk(batches, tmp_path)[0], way
        assert [one.evidence["offsets"] for one in findings] == [[20, 27]], way


def test_offsets_that_compaction_took_away_are_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = batches_of(per_batch=1)
    batches = [every[number] for number in (0, 1, 5, 6, 30, 31, 59)]

    for way in ways_of_reading(monkeypatch):
        assert from_leader(ModelLeader(batches)) == from_disk(batches, tmp_path), way
        assert from_leader(ModelLeader(batches))[1] == [], way


def test_a_leader_that_has_nothing_where_there_has_to_be_something_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _way in ways_of_reading(monkeypatch):
        with refused_with(ErrorCode.BROKER_UNREACHABLE):
            from_leader(ModelLeader(batches_of()[:5]))


def test_records_without_keys_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for way in ways_of_reading(monkeypatch):
        leader = cast("LiveLog", ModelLeader(batches_of()))
        chunks = list(LivePartition(leader, TOPIC, 0, OffsetRange(3, COUNT)).chunks())

        assert sum(chunk.unkeyed or 0 for chunk in chunks) == COUNT - 3, way
        assert [chunk.last_unkeyed for chunk in chunks if chunk.unkeyed][-1] == COUNT - 1, way
