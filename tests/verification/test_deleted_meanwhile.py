"""What retention deletes while a store is listed, or after a point that is asked about, is not called unreferenced,
nor missing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cli.command_line import this_process
from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import DELETED, DELETING, FIRST_TIMESTAMP_MS, PARTITION, copied, segment_id, updated
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.clock import Clock
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.ports.metadata_source import OffsetRange, truncated
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore

LATER_MS = FIRST_TIMESTAMP_MS + 3_600_000
LEFT, TAKEN = 2, 3
"""Segments whose deletion is recorded: one whose objects stay for good, and one whose objects go a moment later."""


def objects_of(number: int) -> set[str]:
    identity = ExplainedKey(
        PARTITION.topic, PARTITION.topic_id, PARTITION.partition, (number - 1) * 10, segment_id(number), Part.LOG
    )
    return set(LAYOUT.promised_objects(identity).values())


class Retention(MemoryStore):
    """Deletes objects once they were listed."""

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        listed = [*super().list(prefix, start_after)]
        self.delete([stored for stored in listed if stored.key in objects_of(TAKEN)])
        yield from listed


class Silent(Retention):
    """Tells nothing more once it was listed."""

    was_listed = False

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        listed = [*super().list(prefix, start_after)]
        self.was_listed = True
        yield from listed

    def head(self, key: str) -> StoredObject | None:
        if self.was_listed:
            raise TieredctlError(ErrorCode.PATH_FORBIDDEN, "Who knows?")
        return super().head(key)


def unreferenced_in(store: MemoryStore) -> set[str]:
    deleted = [updated(number, state) for number in (LEFT, TAKEN) for state in (DELETING, DELETED)]
    events = EventsInMemory([*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29), *deleted])
    for number in (1, LEFT, TAKEN):
        for key in objects_of(number):
            store.put(key, b"bytes", FIRST_TIMESTAMP_MS)
    options = VerifyOptions(Level.LISTING, Clock(LATER_MS, LATER_MS))
    result = verify(EventStream(events), store, LAYOUT, LocalEngine(), options, read_again=lambda: EventStream(events))
    return {str(one.evidence["key"]) for one in result.findings if one.code == "object-unreferenced"}


def test_what_is_gone_when_it_is_asked_for_again_is_not_reported_and_what_is_left_is() -> None:
    assert unreferenced_in(Retention()) == objects_of(LEFT)


def test_what_nobody_tells_of_is_reported() -> None:
    assert unreferenced_in(Silent()) == objects_of(LEFT) | objects_of(TAKEN)


def test_a_second_reading_that_lost_events_excuses_nothing() -> None:
    events, store = EventsInMemory([*copied(1, 0, 9), *copied(2, 10, 19)]), MemoryStore()
    for key in objects_of(1):
        store.put(key, b"bytes", FIRST_TIMESTAMP_MS)
    lost = {"all": events.events[:0], "the end": events.events[:-1]}

    for what, left in lost.items():
        options = VerifyOptions(Level.LISTING, Clock(LATER_MS, LATER_MS))
        again = partial(EventStream, EventsInMemory(left))
        found = verify(EventStream(events), store, LAYOUT, LocalEngine(), options, read_again=again)

        assert {"object-missing", "metadata-cut-short"} <= {one.code.value for one in found.findings}, what


def test_a_second_reading_that_lost_events_tells_all_the_same_what_was_deleted() -> None:
    events, store = EventsInMemory([*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29)]), MemoryStore()
    for key in objects_of(1):
        store.put(key, b"bytes", FIRST_TIMESTAMP_MS)
    began = EventsInMemory([*copied(2, 10, 19), *copied(3, 20, 29), updated(3, DELETING)])
    ended = EventsInMemory([*copied(3, 20, 29), updated(3, DELETING), updated(3, DELETED)])

    for again in (began, ended):
        options = VerifyOptions(Level.LISTING, Clock(LATER_MS, LATER_MS))
        read_again = partial(EventStream, again)
        found = verify(EventStream(events), store, LAYOUT, LocalEngine(), options, read_again=read_again)

        missing = {str(one.evidence["key"]) for one in found.findings if one.code == "object-missing"}
        assert "metadata-cut-short" in {one.code.value for one in found.findings}
        assert missing == objects_of(LEFT)


class Trimmed(EventsInMemory):
    """Its events up to an offset are gone by retention of the metadata topic, and it says so."""

    first = 0

    def findings(self) -> list[Finding]:
        return [truncated(0, self.first)]

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        return super().chunks(metadata_partition, max(from_offset, self.first))

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        return OffsetRange(self.first, len(self.events))


def test_a_beginning_that_is_lost_once_more_between_the_readings_excuses_nothing() -> None:
    """The first reading already lacked the events of a segment; the second one those of the missing one, too."""
    events = [*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29)]
    before, again, store = Trimmed(events), Trimmed(events), MemoryStore()
    before.first, again.first = 2, 4
    for key in objects_of(3):
        store.put(key, b"bytes", FIRST_TIMESTAMP_MS)
    options = VerifyOptions(Level.LISTING, Clock(LATER_MS, LATER_MS))

    found = verify(
        EventStream(before), store, LAYOUT, LocalEngine(), options, read_again=lambda: EventStream(again)
    ).findings

    assert {str(one.evidence["key"]) for one in found if one.code == "object-missing"} == objects_of(2)
    starts = [one.evidence["logStartOffset"] for one in found if one.code == "metadata-truncated"]
    assert starts == [2, 4]


@pytest.mark.parametrize("source", ["log directory", "export"])
def test_what_was_deleted_or_copied_after_the_point_that_is_asked_about_is_neither_missing_nor_unreferenced(
    captures: Path, tmp_path: Path, source: str
) -> None:
    data, bucket = captures / "kafka-4.3.1/data", captures / "kafka-4.3.1/remote/kafka-tiered-storage"
    metadata: tuple[str | Path, ...] = ("--log-dir", data)
    events = [line["eventTimestampMs"] for line in this_process("metadata", "format", *metadata, "-o", "jsonl").lines()]
    if source == "export":
        assert this_process("metadata", "export", tmp_path / "events.jsonl", *metadata).exit_code == ExitCode.CLEAN
        metadata = ("--export", tmp_path / "events.jsonl")
    words = (*metadata, "--store", f"file:{bucket}", "--level", "listing", "-o", "json")
    today = this_process("verify", *words).document()["items"]

    for moment in sorted(events)[:: len(events) // 4]:
        outcome = this_process("verify", *words, "--as-of", str(moment))

        codes = {one["code"] for one in outcome.document()["items"]} - {one["code"] for one in today}
        assert (outcome.exit_code in (ExitCode.CLEAN, ExitCode.FINDINGS), codes) == (True, set()), moment
