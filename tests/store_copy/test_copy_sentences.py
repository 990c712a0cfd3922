"""What `store copy` says of a copy, beside its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import this_process
from tests.cli.crashed_cluster import CLUSTER_ID
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.store_copy import comparison
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved

LOOKS = 2
"""One listing of each store comes before anything is copied."""


def test_stores_that_could_not_be_listed_again_are_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []

    def listed_at_first(store: ObjectStore) -> Iterator[StoredObject]:
        listed.append(store.url)
        if len(listed) > LOOKS:
            raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "No answer.")
        return list_unreserved(store)

    monkeypatch.setattr(comparison, "list_unreserved", listed_at_first)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "here" / "a").write_bytes(b"1")
    words = ("--store", f"file:{tmp_path / 'here'}", "--to", f"file:{tmp_path / 'there'}", "--apply", "--yes")

    copied = this_process("store", "copy", *words, "--cluster-id", CLUSTER_ID, "-o", "json")

    assert copied.exit_code != 0
    summary = copied.document()["summary"]
    assert (summary["done"], "No answer" in copied.err) == (1, True)
    assert (summary["same"], summary["complete"]) == (0, False)
    assert "Compared by size until it stopped: nothing." in copied.err
    assert "both are empty" not in copied.err
