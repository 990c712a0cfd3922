"""What an earlier run left is read up to its items: its size costs no memory, and half a file is no result."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.model.finding_kind import Severity
from tieredctl.ops.status.last_results import read_results

ITEMS = 100_000
MOST_BYTES = 8 << 20
SUMMARY = {
    "orphans": {"objects": 10, "status": {"orphan": {"objects": 3, "bytes": 7}}, "complete": True},
    "verify": {"segments": 5, "skipped": 1, "notLookedAt": 0, "findings": 2, "complete": True, "level": "full"},
}
KINDS = {"orphans": "RemoteObjects", "verify": "Verification"}


def document(command: str, items: list[Any]) -> dict[str, Any]:
    source = {"store": "file:/store", "clusterId": "cluster"}
    return {"kind": KINDS[command], "apiVersion": 1, "source": source, "summary": SUMMARY[command], "items": items}


@pytest.mark.parametrize("command", KINDS)
def test_a_file_that_ends_anywhere_is_not_a_result(command: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    text = json.dumps(
        document(command, [{"severity": "error", "list": [{"a": []}]}, {"severity": "warning"}]), indent=2
    )
    for end in range(len(text)):
        file.write_text(text[:end])

        with pytest.raises(TieredctlError):
            read_results([file], None, None)

    file.write_text(text)
    found = read_results([file], None, None)
    assert (found.scan is None) == (command == "verify")


@pytest.mark.parametrize(
    "text",
    ["{}x", "{,}", '{"a" 1}', "{1: 2}", '{"items": 3}', '{"items": [1 2]}', "{" * 100_000, "[" * 100_000, '{"a":'],
)
def test_what_is_not_a_document_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(text)

    with pytest.raises(TieredctlError):
        read_results([file], None, None)


@pytest.mark.parametrize("command", KINDS)
def test_many_items_take_no_memory(command: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    with file.open("w") as made:
        made.writelines(_written(command))
    assert file.stat().st_size > 2 * MOST_BYTES

    tracemalloc.start()
    found = read_results([file], None, None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < MOST_BYTES
    if command == "verify":
        assert found.verification is not None
        assert found.verification.severities[Severity.ERROR] == 2
        assert found.verification.is_complete
    else:
        assert found.scan is not None
        assert found.scan.orphans == 3


def _written(command: str) -> Iterator[str]:
    long = document(command, ["ITEM"])
    long["summary"] = long["summary"] | {"codes": {"object-missing": {"error": 2}}}
    head, _, tail = json.dumps(long).partition('"ITEM"')
    item = json.dumps({"severity": "error", "subject": "x" * 200})
    yield head
    yield from (f"{item},\n" for _ in range(ITEMS - 1))
    yield item + tail


def test_what_is_long_and_has_no_summary_before_its_items_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    for text in ("x" * MOST_BYTES, '{"kind": "' + "x" * MOST_BYTES + '"items": []}', '{"items": [' + "3," * MOST_BYTES):
        file.write_text(text)

        with pytest.raises(TieredctlError):
            read_results([file], None, None)


def test_a_long_file_that_ends_within_an_item_is_not_a_result(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text("".join(_written("verify")).removesuffix("}]}") + '"')

    with pytest.raises(TieredctlError):
        read_results([file], None, None)


def test_findings_are_counted_by_the_summary_and_by_the_items_where_an_earlier_release_wrote_no_counts(
    tmp_path: Path,
) -> None:
    file = tmp_path / "result.json"
    items = [{"code": "object-missing", "severity": "critical"}, {"code": "unheard-of", "severity": "error"}]
    told = document("verify", items)
    counted = told | {"summary": told["summary"] | {"codes": {"object-missing": {"critical": 2}}}}
    uncounted = document("verify", items[:1])
    answers = []
    for one in (told, counted, uncounted):
        file.write_text(json.dumps(one))
        last = read_results([file], None, None).verification
        assert last is not None
        answers.append((last.severities[Severity.CRITICAL], last.severities[Severity.ERROR], last.is_complete))

    assert answers == [(1, 1, True), (2, 0, True), (1, 0, False)]
