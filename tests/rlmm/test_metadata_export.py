"""`metadata export`: one file, whole or not at all, that gives the answers of what it was made from."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.metadata_logs import TOPIC_ID, copied, metadata_batches, write_events, write_log
from tests.refusals import refused_with
from tests.shares import divided
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.record_chunks import MetadataRecord, RecordChunk, chunk_of
from tieredctl.kafka.export_file import ExportFile
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.export import export_metadata
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.metadata_source import MetadataSource, OffsetRange

SUFFIXES = (".parquet", ".jsonl")
TOMBSTONE, NO_EVENT = None, b"\x01\x00\x00no event"
CAPTURES = ("kafka-4.3.1", "kafka-3.9.1", "rlmm-3.4.1", "aiven-zstd-encrypted-4.3.1")


@pytest.fixture(params=SUFFIXES)
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Where an export shall be, in each of its forms."""
    return tmp_path / f"export{request.param}"


@pytest.fixture
def odd_log_dir(tmp_path: Path) -> Path:
    """Tombstones, values that are no events, an empty partition, one that lost its beginning, and damage."""
    log_dir = tmp_path / "data"
    of_0, of_2, of_3 = (TopicIdPartition(TOPIC_ID, "t", number) for number in (2, 8, 1))  # by Kafka's partitioner
    events = (*copied(1, 0, 9, partition=of_0), TOMBSTONE, NO_EVENT, b"", *copied(2, 10, 19, partition=of_0))
    write_events(log_dir, *events)
    write_log(log_dir, 1, [])
    write_log(log_dir, 2, metadata_batches(copied(3, 0, 9, partition=of_2), first_offset=70), first_offset=70)
    damaged = metadata_batches([*copied(4, 0, 9, partition=of_3), *copied(5, 10, 19, partition=of_3)])
    damaged[1] = damaged[1][:-1] + b"\x55"
    write_log(log_dir, 3, damaged)
    return log_dir


def records_of(source: MetadataSource) -> dict[int, list[MetadataRecord]]:
    return {
        number: [record for chunk in source.chunks(number) for record in chunk.records()]
        for number in source.metadata_partitions()
    }


def state_of(source: MetadataSource) -> tuple[list[Any], list[Finding]]:
    stream = EventStream(source)
    segments = list(replayed(stream).segments())
    return segments, sorted(stream.findings, key=lambda finding: (finding.code, finding.subject))


def export(source: MetadataSource, file: Path, *, force: bool = False) -> ExportFile:
    export_metadata(EventStream(source), file, force=force)
    return ExportFile(file)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_same_records_and_answers(captures: Path, file: Path, name: str) -> None:
    source = LogDirectories([captures / name / "data"])

    exported = export(source, file)

    assert records_of(exported) == records_of(source)
    assert state_of(exported) == state_of(source)
    for number in source.metadata_partitions():
        assert exported.offset_range(number) == source.offset_range(number)
    assert exported.describe()["endOffsets"] == source.describe()["endOffsets"]


def test_what_was_odd_about_the_source_stays_known(odd_log_dir: Path, file: Path) -> None:
    source = LogDirectories([odd_log_dir])

    exported = export(source, file)

    assert records_of(exported) == records_of(source)
    assert state_of(exported) == state_of(source)
    codes = [finding.code for finding in state_of(exported)[1]]
    assert codes == ["batch-corrupt", *["event-undecodable"] * 3, "metadata-truncated"]
    assert exported.offset_range(2) == (70, 72)
    assert exported.offset_range(1) == (0, 0)


def test_an_export_of_an_export_is_the_same(odd_log_dir: Path, file: Path, tmp_path: Path) -> None:
    first = export(LogDirectories([odd_log_dir]), file)

    for suffix in SUFFIXES:
        second = export(first, tmp_path / f"again{suffix}")

        assert records_of(second) == records_of(first)
        assert state_of(second) == state_of(first)


def test_a_row_for_each_metadata_partition(odd_log_dir: Path, file: Path) -> None:
    rows = export_metadata(EventStream(LogDirectories([odd_log_dir])), file, force=False).rows

    assert rows[0] == {"metadataPartition": 0, "startOffset": 0, "endOffset": 7, "records": 7}
    assert [row["records"] for row in rows] == [7, 0, 2, 3]


def test_parquet_has_a_column_for_each_field_of_an_event(captures: Path, tmp_path: Path) -> None:
    file = tmp_path / "export.parquet"
    source = LogDirectories([captures / "aiven-zstd-encrypted-4.3.1" / "data"])
    export(source, file)

    table = pq.read_table(file)

    assert table.num_rows == sum(map(len, records_of(source).values()))
    row = next(row for row in table.to_pylist() if row["state"] == "COPY_SEGMENT_FINISHED")
    assert row["type"] == "RemoteLogSegmentMetadataUpdate"
    assert row["startOffset"] is None
    assert isinstance(row["customMetadata"], bytes)
    assert len(row["segmentId"]) == 22
    first = table.slice(0, 1).to_pylist()[0]
    assert first["segmentLeaderEpochs"] == [{"leaderEpoch": 0, "offset": first["startOffset"]}]


def test_json_lines_hold_a_header_and_a_record_a_line(odd_log_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    export(LogDirectories([odd_log_dir]), file)

    header, *lines = [json.loads(line) for line in file.read_text().splitlines()]

    assert header["kind"] == "MetadataExport"
    assert header["source"]["kind"] == "log-dir"
    assert [entry["endOffset"] for entry in header["partitions"]] == [7, 0, 72, 4]
    assert lines[0]["type"] == "RemoteLogSegmentMetadata"
    assert (lines[2]["value"], lines[2]["type"]) == (None, None)
    assert (lines[3]["value"], lines[3]["type"]) == ("AQAAbm8gZXZlbnQ=", None)


def test_row_groups_hold_one_metadata_partition_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieredctl.ops.metadata.export._ROW_GROUP_RECORDS", 60)
    file = tmp_path / "export.parquet"
    record = MetadataRecord(0, 0, b"no event")
    source = Made({0: [[record] * 50, [record] * 50], 1: [[record]] * 10})

    exported = export(source, file)

    groups = pq.ParquetFile(file).metadata
    assert [groups.row_group(index).num_rows for index in range(groups.num_row_groups)] == [60, 40, 10]
    assert {number: len(records) for number, records in records_of(exported).items()} == {0: 100, 1: 10}


class Made:
    """A source of given records by metadata partition, in chunks."""

    cluster_id: str | None = None
    metadata_topic_id: str | None = None
    partition_count: int | None = None

    def __init__(self, chunks: dict[int, list[list[MetadataRecord]]], failure: BaseException | None = None) -> None:
        self._chunks = chunks
        self._failure = failure

    def describe(self) -> dict[str, object]:
        return {"kind": "made"}

    def metadata_partitions(self) -> list[int]:
        return list(self._chunks)

    def findings(self) -> list[Finding]:
        return []

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        yield from (chunk_of(records).starting_at(from_offset) for records in self._chunks[metadata_partition])
        if self._failure is not None:
            raise self._failure

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        return OffsetRange(0, len(self._chunks[metadata_partition]))

    def advance(self) -> bool:
        return False

    def close(self) -> None: ...


def test_a_file_that_is_there_is_not_replaced_unless_that_is_wanted(odd_log_dir: Path, file: Path) -> None:
    file.write_bytes(b"precious")

    with pytest.raises(TieredctlError, match="already exists") as refused:
        export(LogDirectories([odd_log_dir]), file)

    assert "--force" in refused.value.hint
    assert file.read_bytes() == b"precious"
    assert export(LogDirectories([odd_log_dir]), file, force=True).metadata_partitions() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt(), TieredctlError(ErrorCode.BROKER_UNREACHABLE, "Gone."), OSError(5, "x", "/y")]
)
def test_an_interrupted_export_leaves_nothing_behind(file: Path, failure: BaseException) -> None:
    file.write_bytes(b"old")
    source = Made({0: [[MetadataRecord(0, 0, b"no event")]]}, failure)

    with pytest.raises(type(failure)):
        export_metadata(EventStream(source), file, force=True)

    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert file.read_bytes() == b"old"


def test_a_folder_that_is_not_there_and_a_name_that_tells_no_form_are_refused(tmp_path: Path) -> None:
    refusals = {"absent/export.parquet": ErrorCode.UNWRITABLE, "export.csv": ErrorCode.USAGE}
    for name, code in refusals.items():
        with refused_with(code, name):
            export_metadata(EventStream(Made({0: [[MetadataRecord(0, 0, b"no event")]]})), tmp_path / name, force=False)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_damaged_export_never_gives_other_answers(odd_log_dir: Path, tmp_path: Path, suffix: str) -> None:
    """One bit of some four hundred bytes in turn: an error in a sentence, or the same answer as before."""
    whole, damaged = tmp_path / f"whole{suffix}", tmp_path / f"damaged{suffix}"
    exported = export(LogDirectories([odd_log_dir]), whole)
    records, (_, findings) = records_of(exported), state_of(exported)
    data = whole.read_bytes()
    source = random.Random(1)
    for position in divided(range(0, len(data), len(data) // 400 + 1)):
        altered = bytearray(data)
        altered[position] ^= 1 << source.randrange(8)
        damaged.write_bytes(altered)
        try:
            found = ExportFile(damaged)
            assert records_of(found) == records
            assert state_of(found)[1] == findings
        except TieredctlError as error:
            # Without its first words it is no export at all.
            assert error.exit_code in (ExitCode.FAILURE, ExitCode.USAGE)  # noqa: PT017
            assert str(damaged) in error.message  # noqa: PT017


def test_an_export_that_is_cut_short_is_reported(odd_log_dir: Path, file: Path) -> None:
    export(LogDirectories([odd_log_dir]), file)
    data = file.read_bytes()
    for length in (0, 1, 3, 4, 100, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:length])

        with pytest.raises(TieredctlError, match="cannot be read as an export"):
            records_of(ExportFile(file))


def test_what_is_not_an_export_is_reported(tmp_path: Path) -> None:
    """Nor is Parquet of another origin, or a folder; one that is missing is wrong usage."""
    contents = {
        **dict.fromkeys([b"", b"\n", b"{}\n", b"[]\n", b"\xff" * 99], ErrorCode.USAGE),
        **dict.fromkeys([b'{"kind": "MetadataExport"}\n', b"PAR1"], ErrorCode.UNREADABLE),
    }
    for number, (content, code) in enumerate(contents.items()):
        file = tmp_path / f"{number}.jsonl"
        file.write_bytes(content)
        with refused_with(code, content):
            ExportFile(file)
    table = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), table)
    codes = {
        table: ErrorCode.USAGE,
        tmp_path: ErrorCode.UNREADABLE,
        tmp_path / "absent.parquet": ErrorCode.PATH_MISSING,
    }
    for place, code in codes.items():
        with refused_with(code, place):
            ExportFile(place)
