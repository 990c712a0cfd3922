"""The bytes of plans and receipts: other releases wrote them, and will read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.removal_files import (
    PLAN_HEADER,
    PLAN_RECORD,
    PLAN_TOTALS,
    RECEIPT,
    RECEIPTS_HEADER,
    decode_planned,
    decode_seal,
    encode_planned,
    encode_seal,
)
from tieredctl.model.removal import (
    PlanHeader,
    PlannedObject,
    PlannedUpload,
    PlanRecord,
    PlanTotals,
    PlanUse,
    QuarantinedCopy,
    Receipt,
    ReceiptsHeader,
    ReceiptStep,
    RemovalMode,
    Seal,
)

_HEADER = PlanHeader(
    *("0123", 1_000, 2_000, "cluster", "file:/store", "aiven", RemovalMode.QUARANTINE, 3_600_000, 10.0),
    *({7: 1, 0: 7}, frozenset({"b", "a"}), frozenset({"k\udc80é"})),
)
_PLAN_HEADER_LINE = (
    b'{"kind":"RemovalPlan","apiVersion":"tieredctl/v1","planId":"0123","createdMs":1000,"validUntilMs":2000,'
    b'"clusterId":"cluster","store":"file:/store","layout":"aiven","mode":"quarantine","minAgeMs":3600000,'
    b'"maxPercent":10.0,"metadataEndOffsets":{"0":7,"7":1},"foreignTopicIds":["a","b"],'
    b'"unknownKeys":["k\\udc80\\u00e9"]}\n'
)
_RECEIPTS_HEADER_LINE = (
    b'{"kind":"RemovalReceipts","apiVersion":"tieredctl/v1","planId":"p","planDigest":"d","clusterId":"c",'
    b'"store":"s","layout":"l","mode":"delete"}\n'
)
_RECEIPT_LINE = (
    b'{"step":"removed","key":"k","atMs":1,"size":2,"copy":{"key":"q","size":2,"last_modified_ms":3,"version":"v"},'
    b'"uploadId":"u","error":"e","comparedBy":"md5","modifiedMs":0}\n'
)
_LINES: list[tuple[Callable[[Any], bytes], Callable[[bytes], Any], object, bytes]] = [
    (PLAN_HEADER.encode, PLAN_HEADER.decode, _HEADER, _PLAN_HEADER_LINE),
    (
        *(encode_planned, decode_planned),
        PlannedObject("a\udc80é", 1, 2, None, "orphan", None, None),
        (
            b'{"key":"a\\udc80\\u00e9","size":1,"lastModifiedMs":2,"version":null,"status":"orphan","cause":null,'
            b'"evidence":null}\n'
        ),
    ),
    (
        *(encode_planned, decode_planned),
        PlannedUpload("k", "u", 3, 4),
        b'{"upload":"u","key":"k","initiatedMs":3,"size":4}\n',
    ),
    (
        *(PLAN_TOTALS.encode, decode_planned),
        PlanTotals(1, 2, 3, 4),
        b'{"objects":1,"bytes":2,"uploads":3,"listedObjects":4}\n',
    ),
    (encode_seal, decode_seal, Seal("ab", None), b'{"sha256":"ab","hmacSha256":null}\n'),
    (
        *(RECEIPTS_HEADER.encode, RECEIPTS_HEADER.decode),
        ReceiptsHeader("p", "d", "c", "s", "l", RemovalMode.DELETE),
        _RECEIPTS_HEADER_LINE,
    ),
    (
        *(RECEIPT.encode, RECEIPT.decode),
        Receipt(ReceiptStep.GONE, "k", 1),
        b'{"step":"gone","key":"k","atMs":1,"size":0}\n',
    ),
    (
        *(RECEIPT.encode, RECEIPT.decode),
        Receipt(ReceiptStep.REMOVED, "k", 1, 2, QuarantinedCopy("q", 2, 3, "v"), "u", "e", "md5", 0),
        _RECEIPT_LINE,
    ),
    (
        *(PLAN_RECORD.encode, PLAN_RECORD.decode),
        PlanRecord(PlanUse.APPLIED, "c", "l", None),
        b'{"use":"applied","digest":null,"clusterId":"c","layout":"l"}\n',
    ),
    (
        *(PLAN_RECORD.encode, PLAN_RECORD.decode),
        PlanRecord(PlanUse.APPLIED, "c", "l", "d", frozenset("ba"), frozenset()),
        b'{"use":"applied","digest":"d","clusterId":"c","layout":"l","foreignTopicIds":["a","b"],"unknownKeys":[]}\n',
    ),
]


def test_every_line_has_the_bytes_that_other_releases_read_and_write() -> None:
    for encode, decode, value, line in _LINES:
        assert encode(value) == line, (encode, decode, value, line)
        assert decode(line) == value, (encode, decode, value, line)
    # A plan of a release without signatures has none.
    assert decode_seal(b'{"sha256":"ab"}\n') == Seal("ab", None)


def test_a_value_of_another_kind_is_refused() -> None:
    # A receipt with a value of another kind is refused.
    for was, now in [
        (b'"uploadId":"u"', b'"uploadId":5'),
        (b'"error":"e"', b'"error":[]'),
        (b'"comparedBy":"md5"', b'"comparedBy":{}'),
        (b'"copy":{"key":"q","size":2,"last_modified_ms":3,"version":"v"}', b'"copy":0'),
    ]:
        assert was in _RECEIPT_LINE, (was, now)
        with pytest.raises(DecodeError):
            RECEIPT.decode(_RECEIPT_LINE.replace(was, now))
    # An id that would be part of other keys is refused: anybody may have changed the file.
    for plan_id in [b"", b"../x", b"a/b", b".", b"x" * 65]:
        with pytest.raises(DecodeError):
            PLAN_HEADER.decode(_PLAN_HEADER_LINE.replace(b'"planId":"0123"', b'"planId":"%s"' % plan_id))
        with pytest.raises(DecodeError):
            RECEIPTS_HEADER.decode(_RECEIPTS_HEADER_LINE.replace(b'"planId":"p"', b'"planId":"%s"' % plan_id))
    # A plan whose share is not one is refused.
    for share in [b"NaN", b'"10"', b"-1", b"1e999", b"true"]:
        with pytest.raises(DecodeError):
            PLAN_HEADER.decode(_PLAN_HEADER_LINE.replace(b'"maxPercent":10.0', b'"maxPercent":' + share))
