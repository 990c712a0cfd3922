"""Stores that do not write what they say they wrote, and listings that lack what is there: no table is made of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.pipeline import objects
from tieredctl_spark.tables.kinds import FINDINGS, OBJECTS_DAILY
from tieredctl_spark.tables.manifest import LedgerManifest
from tieredctl_spark.tables.table_store import commit, newest
from tieredctl_spark.tables.writing import TableWriter

from tests.rigs.lies import half, one_bit_flipped, zeros
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.layouts.registry import layout_named
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.storage.memory import MemoryStore
from tieredctl.wiring.places import Remote

ROWS = pa.Table.from_pylist([{"subject": f"subject-{number}"} for number in range(100)], FINDINGS.columns)
BYTES = 7


class DishonestStore(MemoryStore):
    """Says that it wrote what it was given, and has what `lie` makes of it; None is nothing."""

    def __init__(self, lie: Callable[[bytes], bytes | None]) -> None:
        super().__init__()
        self.lie = lie

    def put(self, key: str, data: bytes, last_modified_ms: int = 0) -> StoredObject:
        told = super().put(key, data, last_modified_ms)
        has = self.lie(data)
        if has is None:
            self.delete([told])
        else:
            self._objects[key] = (told._replace(size=len(has)), has)
        return told


LIES = {"one bit flipped": one_bit_flipped, "cut short": half, "zeros": zeros, "nothing": lambda _: None}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_no_table_names_what_is_not_stored(lie: Callable[[bytes], bytes | None]) -> None:
    store = DishonestStore(lie)

    with pytest.raises(TieredctlError) as refused:
        TableWriter(store, 1, "run1", None, "2026-11-30").write(FINDINGS, ROWS)

    assert refused.value.code is ErrorCode.UNWRITABLE


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_version_that_is_not_stored_is_not_said_to_be_current(lie: Callable[[bytes], bytes | None]) -> None:
    store = DishonestStore(lie)

    with pytest.raises(TieredctlError) as refused:
        commit(store, LedgerManifest(1, "run1", ""))

    assert (refused.value.code, "_manifests/000000000001.json" in str(refused.value.hint)) == (
        ErrorCode.UNWRITABLE,
        True,
    )
    with suppress(TieredctlError, json.JSONDecodeError):
        assert newest(store, LedgerManifest) is None


def listed(objects: int) -> pa.Table:
    """A listing of so many objects, by the part of the segment that they are."""
    rows = [{"part": "log", "objects": objects, "bytes": objects * BYTES}] if objects else []
    return pa.Table.from_pylist(rows, OBJECTS_DAILY.columns)


@pytest.mark.parametrize(
    ("listings", "counted"),
    [
        pytest.param([30], 30, id="as the scan listed"),
        pytest.param([0, 30], 30, id="all left out"),
        pytest.param([25, 30], 30, id="some left out"),
        pytest.param([29, 29], 29, id="one deleted since"),
        pytest.param([31, 20], 31, id="one added since, and some left out"),
    ],
)
def test_what_one_listing_lacks_is_counted(monkeypatch: pytest.MonkeyPatch, listings: list[int], counted: int) -> None:
    told = iter(listings)
    monkeypatch.setattr(objects, "_listed", lambda *_: listed(next(told)))
    remote = Remote[ObjectStore](MemoryStore(), layout_named("local"))

    found = objects.stored_objects(cast("SparkSession", None), remote, objects.Stored(30, 30 * BYTES))

    assert (pc.sum(found["objects"]).as_py(), list(told)) == (counted, [])
