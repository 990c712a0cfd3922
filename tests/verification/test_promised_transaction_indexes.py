"""A transaction index that is gone, where only what brokers say of their other segments tells that there was one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.faults.captured_segments import small_segment
from tests.faults.cluster import Cluster, EventsInMemory, captured
from tests.faults.expectations import part_finding
from tests.faults.segments_made import indexed_by_batch, transactions
from tests.metadata_logs import segment_id
from tieredctl.cli.main import run
from tieredctl.errors import ExitCode
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.verification.object_check import NEAR_MS, PromisedTransactionIndexes
from tieredctl.ops.verification.report import Level
from tieredctl.ports.layout import Part

INDEX = Part.TRANSACTION_INDEX
each_level = pytest.mark.parametrize("level", list(Level))
shallow = pytest.mark.parametrize("level", [Level.LISTING, Level.HEADERS])


@pytest.fixture(scope="module")
def kafka_4(captures: Path) -> Cluster:
    return captured(captures / "kafka-4.3.1")


@pytest.fixture(scope="module")
def kafka_3(captures: Path) -> Cluster:
    return captured(captures / "kafka-3.9.1")


@each_level
def test_kafka_4_tells_of_each_that_is_gone(kafka_4: Cluster, level: Level) -> None:
    needed = [metadata for metadata in kafka_4.finished() if kafka_4.has(metadata, INDEX)]
    assert len(needed) == 19

    for metadata in needed if level is Level.LISTING else needed[::6]:
        evidence = part_finding(
            kafka_4.without_part(metadata, INDEX), "transaction-index-missing", metadata, INDEX, level=level
        )
        assert evidence["segmentId"] == metadata.segment_id


@each_level
def test_no_index_is_missed_that_was_never_written(kafka_4: Cluster, level: Level) -> None:
    result = kafka_4.verify(level)

    assert (result.findings, result.transaction_indexes_unknown) == ([], 0)


@shallow
def test_kafka_3_never_tells_and_the_result_says_so(kafka_3: Cluster, level: Level) -> None:
    missing = kafka_3.without_part(small_segment(kafka_3).metadata, INDEX)
    with_index = sum(kafka_3.has(metadata, INDEX) for metadata in kafka_3.finished())

    result = missing.verify(level)

    assert result.findings == []
    assert result.transaction_indexes_unknown == len(kafka_3.finished()) - with_index + 1
    assert result.summary()["transactionIndexesUnknown"] == result.transaction_indexes_unknown


def test_every_byte_tells_of_kafka_3_too(kafka_3: Cluster) -> None:
    metadata = small_segment(kafka_3).metadata
    missing = kafka_3.only(metadata.topic_id_partition).without_part(metadata, INDEX)

    part_finding(missing, "transaction-index-missing", metadata, INDEX)
    assert missing.verify(Level.FULL).transaction_indexes_unknown == 0


def test_the_headline_says_how_many_were_not_looked_at(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = verified(captures / "kafka-3.9.1", capsys)

    assert outcome.exit_code == ExitCode.CLEAN
    assert "segments without a transaction index should have one" in outcome.err


def test_the_headline_is_silent_where_it_is_known(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "transaction index" not in verified(captures / "kafka-4.3.1", capsys).err


def verified(capture: Path, capsys: pytest.CaptureFixture[str]) -> Outcome:
    store = f"file:{capture / 'remote' / 'kafka-tiered-storage'}"
    exit_code = run(["verify", "--log-dir", str(capture / "data"), "--store", store, "--level", "listing"])
    said = capsys.readouterr()
    return Outcome(exit_code, said.out, said.err)


def promised_by(*segments: RemoteLogSegmentMetadata) -> PromisedTransactionIndexes:
    """What brokers say of segments that are being copied."""
    state = RemoteLogSegmentState.COPY_SEGMENT_STARTED
    events = [replace(one, segment_id=segment_id(number), state=state) for number, one in enumerate(segments)]
    return PromisedTransactionIndexes.by(replayed(EventStream(EventsInMemory(events))))


class TestWhoseSilenceMeansSomething:
    """An event at 10 hours without txnIdxEmpty, and others with it, by broker and minutes before or after."""

    AT_MS = 36_000_000

    @pytest.mark.parametrize(
        ("others", "promised"),
        [
            pytest.param([(1, -5), (1, 5)], True, id="before and after"),
            pytest.param([(1, 0), (1, 1)], True, id="at the same millisecond and after"),
            pytest.param([], False, id="nobody"),
            pytest.param([(1, 5)], False, id="only after: upgraded between?"),
            pytest.param([(1, -5)], False, id="only before: downgraded since?"),
            pytest.param([(2, -5), (2, 5)], False, id="another broker"),
            pytest.param([(1, -5), (2, 5)], False, id="half another broker"),
            pytest.param([(1, -5), (1, 61)], False, id="long after"),
            pytest.param([(1, -61), (1, 5)], False, id="long before"),
        ],
    )
    def test_of_the_same_broker_shortly_before_and_after(self, others: list[tuple[int, int]], promised: bool) -> None:
        assert NEAR_MS == 60 * 60_000
        silent = self.event(transactions().metadata, 1, 0)
        telling = [self.event(indexed_by_batch().metadata, broker, minutes) for broker, minutes in others]

        assert promised_by(silent, *telling).has(silent) is promised

    def event(self, metadata: RemoteLogSegmentMetadata, broker: int, minutes: int) -> RemoteLogSegmentMetadata:
        return replace(metadata, author=broker, event_timestamp_ms=self.AT_MS + minutes * 60_000)

    def test_who_says_that_there_is_none_promises_none(self) -> None:
        telling = [self.event(indexed_by_batch().metadata, 1, minutes) for minutes in (-1, 0, 1)]

        assert not promised_by(*telling).has(telling[1])
