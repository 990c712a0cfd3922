"""Plans and receipts: what is written is read again, and a plan that anybody touched is none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.removal_files import (
    PLAN_HEADER,
    PLAN_TOTALS,
    RECEIPT,
    RECEIPTS_HEADER,
    decode_planned,
    decode_seal,
    encode_planned,
    encode_seal,
)
from tieredctl.model.removal import (
    PLAN_ID,
    PlanHeader,
    Planned,
    PlannedObject,
    PlannedUpload,
    PlanTotals,
    QuarantinedCopy,
    Receipt,
    ReceiptsHeader,
    ReceiptStep,
    RemovalMode,
    Seal,
)
from tieredctl.ops.orphan_removal.limits import demand_signed
from tieredctl.ops.orphan_removal.plan_file import PlanFile, read_plan, written_plan
from tieredctl.ops.orphan_removal.receipts import ReceiptFile

# A name that is no UTF-8 comes as lone surrogates of this range.
NAMES = st.text(st.characters(exclude_categories=["Cs"]) | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAN_IDS = st.from_regex(PLAN_ID, fullmatch=True)
NUMBERS = st.integers(0, (1 << 63) - 1)
OFTEN = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])

HEADERS = st.builds(
    PlanHeader,
    plan_id=PLAN_IDS,
    created_ms=NUMBERS,
    valid_until_ms=NUMBERS,
    cluster_id=TEXTS,
    store=NAMES,
    layout=TEXTS,
    mode=st.sampled_from(RemovalMode),
    min_age_ms=NUMBERS,
    max_percent=st.floats(0, 100),
    metadata_end_offsets=st.dictionaries(st.integers(0, 1_000), NUMBERS, max_size=5),
    foreign_topic_ids=st.frozensets(TEXTS, max_size=3),
    unknown_keys=st.frozensets(NAMES, max_size=3),
)
EVIDENCE = st.none() | st.dictionaries(TEXTS, st.none() | NUMBERS | TEXTS, max_size=3)
OBJECTS = st.builds(PlannedObject, NAMES, NUMBERS, NUMBERS, st.none() | TEXTS, TEXTS, st.none() | TEXTS, EVIDENCE)
UPLOADS = st.builds(PlannedUpload, NAMES, TEXTS, NUMBERS, NUMBERS)
COPIES = st.builds(QuarantinedCopy, NAMES, NUMBERS, NUMBERS, TEXTS)
RECEIPTS = st.builds(
    Receipt,
    st.sampled_from(ReceiptStep),
    NAMES,
    NUMBERS,
    NUMBERS,
    st.none() | COPIES,
    st.none() | TEXTS,
    st.none() | NAMES,
)
RECEIPTS_HEADERS = st.builds(ReceiptsHeader, PLAN_IDS, TEXTS, TEXTS, NAMES, TEXTS, st.sampled_from(RemovalMode))

HEADER = PlanHeader(
    "0123",
    1_000,
    2_000,
    "rTFWgbQKRvehFNx-PhMpIg",
    "file:/store",
    "aiven",
    RemovalMode.QUARANTINE,
    3_600_000,
    10.0,
    {0: 7},
)
LINES: Sequence[Planned] = (
    PlannedObject("t-1/0/a.log", 12, 900, "etag", "orphan", "no-metadata", {"noEventBefore": 7}),
    PlannedObject("t-1/0/b.log", 30, 900, None, "unknown", None, None),
    PlannedUpload("t-1/0/c.log", "upload-1", 900, 5),
)
DECODERS: Sequence[Callable[[bytes], object]] = (
    PLAN_HEADER.decode,
    decode_planned,
    decode_seal,
    RECEIPTS_HEADER.decode,
    RECEIPT.decode,
)


KEY, OTHER_KEY = b"k" * 32, b"o" * 32


def write(path: Path, header: PlanHeader, lines: Sequence[Planned], key: bytes | None = KEY) -> PlanTotals:
    with written_plan(path, key, force=True) as writer:
        writer.begin(header)
        for line in lines:
            writer.add(line)
        return writer.end(listed_objects=99)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan"
    write(path, HEADER, LINES)
    return path


@OFTEN
@given(header=HEADERS, lines=st.lists(OBJECTS | UPLOADS, max_size=4))
def test_a_plan_is_read_as_it_was_written(tmp_path: Path, header: PlanHeader, lines: list[Planned]) -> None:
    totals = write(tmp_path / "plan", header, lines)

    found = read_plan(tmp_path / "plan")

    assert (found.header, list(found.planned()), found.totals) == (header, lines, totals)
    assert totals.objects == sum(isinstance(line, PlannedObject) for line in lines)


@OFTEN
@given(header=RECEIPTS_HEADERS, receipts=st.lists(RECEIPTS, max_size=4))
def test_receipts_are_read_as_they_were_written(
    tmp_path: Path, header: ReceiptsHeader, receipts: list[Receipt]
) -> None:
    path = tmp_path / "receipts"
    path.unlink(missing_ok=True)

    ReceiptFile.begun(path, header).append(receipts)

    assert (ReceiptFile.opened(path).header, list(ReceiptFile.opened(path).entries())) == (header, receipts)


@OFTEN
@given(receipts=st.lists(RECEIPTS, min_size=1, max_size=3), cut=st.integers(1, 40))
def test_a_receipt_that_was_cut_off_is_dropped(tmp_path: Path, receipts: list[Receipt], cut: int) -> None:
    path = tmp_path / "receipts"
    path.unlink(missing_ok=True)
    header = ReceiptsHeader("0123", "digest", "cluster", "file:/store", "aiven", RemovalMode.QUARANTINE)
    ReceiptFile.begun(path, header).append(receipts)
    path.write_bytes(path.read_bytes()[:-cut])

    ReceiptFile.begun(path, header).append(receipts[-1:])

    assert list(ReceiptFile.opened(path).entries()) == receipts


def test_a_header_of_receipts_that_was_cut_off_is_written_again(tmp_path: Path) -> None:
    header = ReceiptsHeader("0123", "digest", "cluster", "file:/store", "aiven", RemovalMode.QUARANTINE)
    for cut in range(0, 200, 7):
        (tmp_path / "receipts").write_bytes(RECEIPTS_HEADER.encode(header)[:cut])

        ReceiptFile.begun(tmp_path / "receipts", header)

        assert ReceiptFile.opened(tmp_path / "receipts").header == header, cut


def altered(plan: Path, data: bytes) -> str:
    """What is said of a plan that has these bytes now."""
    plan.write_bytes(data)
    with pytest.raises(TieredctlError) as refused:
        demand_signed(read_plan(plan, KEY))
    return refused.value.code


def test_a_plan_of_which_any_bit_was_turned_is_refused(plan: Path) -> None:
    data = plan.read_bytes()

    codes = {
        altered(plan, data[:position] + bytes([data[position] ^ 1 << position % 8]) + data[position + 1 :])
        for position in range(len(data))
    }

    assert codes == {"plan-altered", "plan-unsigned"}


def test_a_plan_that_was_not_signed_with_the_key_is_readable_and_refused(plan: Path) -> None:
    for key in (None, OTHER_KEY):
        write(plan, HEADER, LINES, key)

        assert not read_plan(plan, KEY).is_signed, key
        assert altered(plan, plan.read_bytes()) == "plan-unsigned", key
        assert not read_plan(plan, None).is_signed, key


def test_lines_that_were_sealed_again_without_the_key_are_not_signed(plan: Path) -> None:
    lines = plan.read_bytes().splitlines(keepends=True)
    forged = b"".join([*lines[:2], *lines[1:-1]])
    signature = json.loads(lines[-1])["hmacSha256"]

    for seal in (Seal(hashlib.sha256(forged).hexdigest(), signature), Seal(hashlib.sha256(forged).hexdigest(), None)):
        assert altered(plan, forged + encode_seal(seal)) == "plan-unsigned"


def test_a_plan_that_was_cut_short_or_added_to_is_refused(plan: Path, tmp_path: Path) -> None:
    data = plan.read_bytes()
    lines = data.splitlines(keepends=True)
    write(tmp_path / "other", replace(HEADER, plan_id="4567"), LINES)
    digest_of_another = (tmp_path / "other").read_bytes().splitlines(keepends=True)[-1]

    assert {altered(plan, data[:end]) for end in range(len(data))} == {"plan-altered"}
    for more in (b"\n", b" ", b"{}\n", encode_planned(LINES[0])):
        assert altered(plan, data + more) == "plan-altered", more
    for line in range(5):
        assert altered(plan, b"".join(lines[:line] + lines[line + 1 :])) == "plan-altered", line
        assert altered(plan, b"".join(lines[: line + 1] + lines[line:])) == "plan-altered", line
    assert altered(plan, b"".join([*lines[:-1], digest_of_another])) == "plan-altered"


def test_a_plan_that_another_took_the_place_of_is_not_read_on(plan: Path) -> None:
    found: PlanFile = read_plan(plan)
    write(plan, replace(HEADER, plan_id="4567"), LINES)

    with pytest.raises(TieredctlError) as refused:
        list(found.planned())

    assert refused.value.code == "plan-altered"


def test_a_plan_that_names_very_many_keys_is_read(tmp_path: Path) -> None:
    header = replace(HEADER, unknown_keys=frozenset(f"{number:01000}" for number in range(2_000)))
    write(tmp_path / "plan", header, LINES)

    assert read_plan(tmp_path / "plan").header == header


@settings(max_examples=examples(600))
@given(
    line=st.one_of(
        HEADERS.map(PLAN_HEADER.encode),
        (OBJECTS | UPLOADS).map(encode_planned),
        st.builds(PlanTotals, NUMBERS, NUMBERS, NUMBERS, NUMBERS).map(PLAN_TOTALS.encode),
        RECEIPTS.map(RECEIPT.encode),
        RECEIPTS_HEADERS.map(RECEIPTS_HEADER.encode),
    ),
    at=NUMBERS,
    put=st.binary(max_size=8) | st.sampled_from([b"null", b"[]", b"{}", b"-1", b"1e999", b"NaN", b'"', b"[" * 9_999]),
    instead_of=st.integers(0, 12),
)
def test_lines_of_which_something_was_replaced_are_read_or_refused(
    line: bytes, at: int, put: bytes, instead_of: int
) -> None:
    position = at % len(line)
    damaged = line[:position] + put + line[position + instead_of :]

    for decode in DECODERS:
        with suppress(DecodeError):
            decode(damaged)
