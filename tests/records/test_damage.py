"""Nothing wrong is returned as right, and nothing is missing unless it is reported with its offsets."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import inputs
from tests.faults.segments_made import all_shapes
from tests.records.kafka_records import rows_of
from tests.records.one_segment import OneSegment, of_log
from tests.shares import divided
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.compression import Codec
from tieredctl.formats.record_batches import HEADER_BYTES, Record, RecordHeader, encode_batch
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import exit_code_of
from tieredctl.ports.layout import Part
from tieredctl.records.lost_records import LostRecords
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.request import Isolation, Moment, OnDamage, RecordRequest
from tieredctl.storage.memory import MemoryStore

SEGMENTS = {name: OneSegment(made.metadata, made.parts) for name, made in all_shapes().items()}
MUTANTS = 5_000
Row = tuple[Any, ...]


def skipping(isolation: Isolation = Isolation.READ_UNCOMMITTED) -> RecordRequest:
    return RecordRequest(isolation=isolation, on_damage=OnDamage.SKIP)


@pytest.fixture(scope="module")
def sound() -> dict[tuple[str, Isolation], list[Row]]:
    """The records of each segment as it was written, by isolation level."""
    return {
        (name, isolation): rows_of(segment.read(RecordRequest(isolation=isolation)))
        for name, segment in SEGMENTS.items()
        for isolation in Isolation
    }


def missing(records: PartitionRecords) -> set[int]:
    """The offsets that findings report."""
    ranges = (finding.evidence.get("offsets") for finding in records.findings)
    found: set[int] = set()
    for one in ranges:
        if isinstance(one, list):
            found.update(range(one[0], one[1] + 1))
    return found


def demand_true(segment: OneSegment, isolation: Isolation, rows: list[Row], where: object) -> PartitionRecords:
    """What is read of an altered segment are records of the sound one, and the others are reported."""
    records = segment.read(skipping(isolation))
    got = rows_of(records)
    kept = set(got)
    assert [row for row in rows if row in kept] == got, where
    lost = {row[0] for row in rows} - {row[0] for row in got}
    if records.open_transaction_from is not None:
        lost = {offset for offset in lost if offset < records.open_transaction_from}
    assert lost <= missing(records), where
    return records


def altered(data: bytes, draw: random.Random) -> bytes:
    """The bytes altered in some way: a bit, some bytes, cut, longer, a part moved."""
    while True:
        at = draw.randrange(len(data))
        mutant = bytearray(data)
        match draw.randrange(6):
            case 0 | 1 | 2:
                mutant[at] ^= 1 << draw.randrange(8)
            case 3:
                mutant[at : at + draw.randrange(1, 40)] = draw.randbytes(draw.randrange(40))
            case 4:
                del mutant[at:]
            case 5:
                other = draw.randrange(len(data))
                mutant[at : at + 100] = data[other : other + 100]
        if mutant != data:
            return bytes(mutant)


@pytest.mark.parametrize("name", SEGMENTS)
def test_altered_parts_lose_nothing_in_silence(name: str, sound: dict[tuple[str, Isolation], list[Row]]) -> None:
    segment = SEGMENTS[name]
    parts = [part for part in segment.parts if segment.parts[part]]
    weights = [8 if part is Part.LOG else 1 for part in parts]
    for number in divided(range(inputs(MUTANTS // len(SEGMENTS)))):
        draw = random.Random(f"{name} {number}")
        (part,) = draw.choices(parts, weights)
        isolation = draw.choice(list(Isolation))
        mutant = segment.with_part(part, altered(segment.parts[part], draw))
        demand_true(mutant, isolation, sound[name, isolation], (name, part, number))


def middle_of(segment: OneSegment) -> int:
    return len(segment.parts[Part.LOG]) // 2 + 200


def with_a_bit_flipped(segment: OneSegment) -> OneSegment:
    log = bytearray(segment.parts[Part.LOG])
    log[middle_of(segment)] ^= 1
    return segment.with_part(Part.LOG, bytes(log))


def test_reading_ends_with_the_place_of_what_is_damaged() -> None:
    damaged = with_a_bit_flipped(SEGMENTS["indexed_by_batch"])

    with pytest.raises(LostRecords, match=r"batch-corrupt: made.* offsets \d+ to \d+ are not returned") as lost:
        list(damaged.read())

    assert lost.value.exit_code is ExitCode.CORRUPTION
    evidence = lost.value.finding.evidence
    assert evidence["part"] == "log"
    assert isinstance(evidence["position"], int)
    assert 0 <= middle_of(damaged) - evidence["position"] < 2_000


def test_what_is_damaged_is_skipped_and_counted() -> None:
    whole = rows_of(SEGMENTS["indexed_by_batch"].read())
    records = with_a_bit_flipped(SEGMENTS["indexed_by_batch"]).read(skipping())

    rows = rows_of(records)

    assert [finding.code for finding in records.findings] == [FindingCode.BATCH_CORRUPT]
    assert records.lost_offsets == len(whole) - len(rows) == 3


def test_a_row_stands_for_what_is_damaged() -> None:
    records = with_a_bit_flipped(SEGMENTS["indexed_by_batch"]).read(RecordRequest(on_damage=OnDamage.ROW))

    rows = [row for batch in records for row in batch.to_pylist()]

    (damage,) = [row for row in rows if row["damage"] is not None]
    (offsets,) = [finding.evidence["offsets"] for finding in records.findings]
    assert isinstance(offsets, list)
    assert (damage["offset"], damage["key"], damage["value"]) == (offsets[0], None, None)
    assert damage["damage"].startswith("batch-corrupt: CRC-32C does not match")
    assert [row["offset"] for row in rows] == sorted(row["offset"] for row in rows)


def test_a_missing_log_loses_all_of_its_offsets() -> None:
    segment = SEGMENTS["large_batches"]
    records = segment.without_part(Part.LOG).read(skipping())

    assert rows_of(records) == []
    assert [finding.code for finding in records.findings] == [FindingCode.OBJECT_MISSING]
    assert ".:" not in records.findings[0].message
    assert records.lost_offsets == segment.metadata.end_offset - segment.metadata.start_offset + 1
    assert exit_code_of(records.findings) is ExitCode.CORRUPTION


@pytest.mark.parametrize("change", [-100, 100])
def test_a_size_that_lies_is_reported_and_loses_nothing_in_silence(change: int) -> None:
    segment = SEGMENTS["single_batch"]
    size = segment.metadata.segment_size_in_bytes + change
    lying = replace(segment, metadata=replace(segment.metadata, segment_size_in_bytes=size))

    records = lying.read(skipping())

    rows = rows_of(records)
    assert {finding.code for finding in records.findings} <= {FindingCode.SIZE_MISMATCH, FindingCode.BATCH_CORRUPT}
    assert records.findings
    assert len(rows) + records.lost_offsets >= 4


def test_a_store_that_answers_nothing_is_no_loss() -> None:
    segment = SEGMENTS["single_batch"]

    with pytest.raises(TieredctlError) as error:
        list(segment.read(skipping(), store=_Unreachable()))

    assert error.value.code is ErrorCode.STORE_UNREACHABLE


class _Unreachable(MemoryStore):
    def read(self, *_: Any, **__: Any) -> bytes:
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")

    stream = read  # type: ignore[assignment]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_that_unfolds_too_far_is_not_read_and_not_called_damaged(codec: Codec) -> None:
    log = encode_batch([Record(0, 0, None, bytes(80 << 20))], codec=codec, partition_leader_epoch=3)
    sound = encode_batch([Record(1, 0, None, b"sound")], partition_leader_epoch=3)
    assert len(log) < 1 << 23

    records = of_log(log + sound, 0, 1).read(skipping())

    expects_bomb = len(log) * 64 < 80 << 20
    assert [row[0] for row in rows_of(records)] == ([1] if expects_bomb else [0, 1])
    assert [finding.code for finding in records.findings] == [FindingCode.UNREADABLE] * expects_bomb
    assert all("unfolds beyond" in finding.message for finding in records.findings)
    assert exit_code_of(records.findings) is (ExitCode.INCOMPLETE if expects_bomb else ExitCode.CLEAN)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_it_is_read_where_as_much_is_allowed(codec: Codec) -> None:
    section_of = len(encode_batch([Record(0, 0, None, bytes(80 << 20))])) - HEADER_BYTES
    log = encode_batch([Record(0, 0, None, bytes(80 << 20))], codec=codec, partition_leader_epoch=3)

    for allowed, is_read in ((section_of, True), (section_of - 1, False)):
        records = of_log(log, 0, 0).read(replace(skipping(), most_unfolded=allowed))

        assert [row[4] for row in rows_of(records)] == [bytes(80 << 20)] * is_read
        assert [finding.code for finding in records.findings] == [FindingCode.UNREADABLE] * (not is_read)


@pytest.mark.parametrize("on_damage", OnDamage)
def test_a_time_that_is_in_a_batch_that_cannot_be_read_loses_it_aloud(on_damage: OnDamage) -> None:
    before, after = (encode_batch([Record(at, at, None, b"sound")], partition_leader_epoch=3) for at in (0, 3))
    bomb = encode_batch(
        [Record(1, 1, None, b""), Record(2, 2, None, bytes(80 << 20))], codec=Codec.ZSTD, partition_leader_epoch=3
    )
    segment = of_log(before + bomb + after, 0, 3)
    for request, sound in (
        (RecordRequest(Moment(2)), [3]),
        (RecordRequest(end=Moment(2)), [0]),
        (RecordRequest(Moment(1), Moment(2)), []),
    ):
        records = segment.read(replace(request, on_damage=on_damage))

        if on_damage is OnDamage.FAIL:
            with pytest.raises(LostRecords):
                rows_of(records)
        else:
            rows = [row for batch in records for row in batch.to_pylist()]
            assert [row["offset"] for row in rows if row.get("damage") is None] == sound
        assert missing(records) == {1, 2}


def test_so_is_an_old_message_that_unfolds_too_far() -> None:
    def message(offset: int, value: bytes, attributes: int = 0) -> bytes:
        body = struct.pack(">bbqii", 1, attributes, 0, -1, len(value)) + value
        return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body

    bomb = gzip.compress(message(0, bytes(80 << 20)))
    altered = bytearray(message(3, b"altered"))
    altered[-1] ^= 1
    bombs, sound = message(0, bomb, 1) + message(1, bomb, 1), message(2, b"sound")
    read = of_log(bombs, 0, 1).read(replace(skipping(), most_unfolded=81 << 20))
    assert [len(row[4]) for row in rows_of(read)] == [80 << 20] * 2
    for last, following in ((1, b""), (2, sound), (4, sound + bytes(altered) + message(4, b"sound"))):
        records = of_log(bombs + following, 0, last).read(skipping())

        assert [row[0] for row in rows_of(records)] == [at for at in (2, 4) if at <= last]
        damaged = [FindingCode.BATCH_CORRUPT] if last == 4 else []
        assert [finding.code for finding in records.findings] == [FindingCode.UNREADABLE] * 2 + damaged
        assert exit_code_of(records.findings) is (ExitCode.CORRUPTION if damaged else ExitCode.INCOMPLETE)


@pytest.mark.parametrize(("records", "headers"), [(1, 1 << 17), (17, 1 << 16)])
def test_so_is_a_batch_of_too_many_headers(records: int, headers: int) -> None:
    many = (RecordHeader("", None),) * headers
    log = encode_batch(
        [Record(at, 0, None, None, many) for at in range(records)], codec=Codec.ZSTD, partition_leader_epoch=3
    )
    sound = encode_batch([Record(records, 0, None, b"sound", many[:9])], partition_leader_epoch=3)
    assert len(log) < 10_000

    found = of_log(log + sound, 0, records).read(skipping())

    assert [row[0] for row in rows_of(found)] == [records]
    assert [finding.code for finding in found.findings] == [FindingCode.UNREADABLE]
    assert "unfolds beyond 1048576 headers" in found.findings[0].message
    assert found.lost_offsets == records
