"""What an earlier run left is read piece by piece: its size costs no memory, and half a file is no result."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieredctl.errors import TieredctlError
from tieredctl.model.finding_kind import Severity
from tieredctl.ops.status import result_document
from tieredctl.ops.status.last_results import read_results
from tieredctl.ops.status.result_document import read_document

ITEMS = 100_000
MOST_BYTES = 8 << 20
SUMMARY = {
    "orphans": {"objects": 10, "status": {"orphan": {"objects": 3, "bytes": 7}}, "complete": True},
    "verify": {"segments": 5, "skipped": 1, "notLookedAt": 0, "findings": 2, "complete": True, "level": "full"},
}
KINDS = {"orphans": "RemoteObjects", "verify": "Verification"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
KINDS_OF_FINDINGS = st.fixed_dictionaries(
    {},
    optional={
        "severity": st.sampled_from(["error", "warning", 3, None]),
        "code": st.sampled_from(["object-missing", "unheard-of", 3, None]),
    },
)


def document(command: str, items: list[Any]) -> dict[str, Any]:
    source = {"store": "file:/store", "clusterId": "cluster"}
    return {"kind": KINDS[command], "apiVersion": 1, "source": source, "summary": SUMMARY[command], "items": items}


class InSmallPieces(io.StringIO):
    """Gives a character at a time, however much is asked for."""

    def read(self, _size: int | None = -1, /) -> str:
        return super().read(1)


def kind(item: Any) -> tuple[str | None, str | None]:
    code, severity = (item.get("code"), item.get("severity")) if isinstance(item, dict) else (None, None)
    return code if code == "object-missing" else None, severity if isinstance(severity, str) else None


@given(JSON, st.lists(JSON | KINDS_OF_FINDINGS, max_size=5), st.sampled_from([None, 2]))
def test_it_is_what_a_whole_reading_gives(member: Any, items: list[Any], indent: int | None) -> None:
    whole = {"kind": "x", "member": member, "items": items, "last": 12}
    text = json.dumps(whole, indent=indent)

    for file in (io.StringIO(text), InSmallPieces(text)):
        found = read_document(file)

        assert found.members == {name: value for name, value in whole.items() if name != "items"}
        assert found.kinds == Counter(map(kind, items))


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
        assert found.verification.severities[Severity.ERROR] == ITEMS
    else:
        assert found.scan is not None
        assert found.scan.orphans == 3


def _written(command: str) -> Iterator[str]:
    head, _, tail = json.dumps(document(command, ["ITEM"])).partition('"ITEM"')
    item = json.dumps({"severity": "error", "subject": "x" * 200})
    yield head
    yield from (f"{item},\n" for _ in range(ITEMS - 1))
    yield item + tail


def test_an_item_that_never_ends_is_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_document, "_LONGEST_VALUE", 1 << 16)
    monkeypatch.setattr(result_document, "_PIECE", 1 << 12)
    text = io.StringIO('{"items": ["' + "x" * (1 << 20))

    with pytest.raises(ValueError, match="too long"):
        read_document(text)

    assert text.tell() <= 1 << 18
