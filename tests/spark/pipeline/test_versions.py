"""How tables become current: all together, once, and what no version names is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tieredctl_spark.backfill.run import waiting_place
from tieredctl_spark.catalogs.place import CatalogPlace
from tieredctl_spark.tables.due import due_documents, events_due, first_kept_day
from tieredctl_spark.tables.files import file_rows, folder_files
from tieredctl_spark.tables.kinds import EVENTS, FINDINGS
from tieredctl_spark.tables.manifest import DataFile, Looked, Manifest, TableState
from tieredctl_spark.tables.table_store import (
    READABLE_VERSIONS,
    TablesPlace,
    commit,
    current,
    current_tables,
    data_file_key,
    demand_apart,
    demand_current,
    demand_no_tables,
    remove_leftovers,
)
from tieredctl_spark.tables.writing import TableWriter

from tests.rigs.lies import half, one_bit_flipped, zeros
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import StoredObject, WritableObjectStore
from tieredctl.storage.memory import MemoryStore

DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS
LOOKED = Looked("file:/store", "local", None, None, {"0": (0, 7)}, "listing", NOW_MS, 1_000, 30 * DAY_MS, True, 0)


@pytest.fixture
def store(tmp_path: Path) -> WritableObjectStore:
    return TablesPlace.given(str(tmp_path / "tables"), {}).open_writable()


def written(store: WritableObjectStore, version: int, run_id: str) -> DataFile:
    key = data_file_key(FINDINGS, version, run_id, None)
    store.write(key, b"rows")
    return DataFile(key, 1, 4)


def manifest(version: int, run_id: str, parent: str, *files: DataFile) -> Manifest:
    return Manifest(version, run_id, parent, NOW_MS, LOOKED, {FINDINGS.name: TableState(files, run_id, NOW_MS)})


def test_a_version_is_read_as_it_was_written(store: WritableObjectStore) -> None:
    made = manifest(1, "a", "", written(store, 1, "a"))

    commit(store, made)

    assert current(store) == made


def test_of_two_runs_at_once_one_is_refused(store: WritableObjectStore) -> None:
    commit(store, manifest(1, "a", ""))

    with pytest.raises(TieredctlError) as raised:
        commit(store, manifest(1, "b", ""))

    assert raised.value.code is ErrorCode.LOCKED
    assert demand_current(store).run_id == "a"


def test_a_run_whose_answer_was_lost_is_not_refused(store: WritableObjectStore) -> None:
    made = manifest(1, "a", "")
    commit(store, made)

    commit(store, made)

    assert current(store) == made


def test_a_version_that_a_run_made_before_is_not_taken_for_the_one_that_it_makes_now(
    store: WritableObjectStore,
) -> None:
    """As it does where it knows of its own last version by a listing that lacks it."""
    first = manifest(1, "a", "", written(store, 1, "a"))
    commit(store, first)

    with pytest.raises(TieredctlError) as refused:
        commit(store, manifest(1, "a", "", written(store, 1, "a")))

    assert refused.value.code is ErrorCode.LOCKED
    assert current(store) == first


def test_a_run_that_slept_while_its_version_was_made_and_forgotten_is_refused(store: WritableObjectStore) -> None:
    for version in range(2, 4):
        commit(store, manifest(version, f"run{version}", f"run{version - 1}"))

    with pytest.raises(TieredctlError) as raised:
        commit(store, manifest(1, "sleeper", ""))

    assert raised.value.code is ErrorCode.LOCKED


def test_what_runs_left_that_died_is_removed_and_what_may_be_read_stays(store: WritableObjectStore) -> None:
    kept = [written(store, 1, "run1")]
    commit(store, manifest(1, "run1", "", *kept))
    dead, of_next = written(store, 2, "dead"), written(store, 3, "at-work")
    last = manifest(2, "run2", "run1", written(store, 2, "run2"))
    commit(store, last)

    removed = remove_leftovers(store, last)

    keys = {stored.key for stored in store.list(f"{FINDINGS.name}/")}
    assert removed == 1
    assert dead.path not in keys
    assert keys == {kept[0].path, of_next.path, *(one.path for one in folder_files(last.tables, FINDINGS.name))}


class ForgetfulStore(MemoryStore):
    """Its next listings lack the manifests of some versions."""

    def __init__(self) -> None:
        super().__init__()
        self.lacked = frozenset[int]()
        self.listings = 0

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        lacked = {f"_manifests/{version:012d}.json" for version in self.lacked} if self.listings else set()
        self.listings = max(self.listings - 1, 0)
        return (stored for stored in super().list(prefix, start_after) if stored.key not in lacked)


@pytest.mark.parametrize("lacked", [{1, 2, 3}, {3}, {1}], ids=["all", "the newest", "the oldest"])
def test_no_file_of_a_version_is_removed_whose_manifest_a_listing_lacks(lacked: set[int]) -> None:
    store, made = ForgetfulStore(), list[Manifest]()
    for version in range(1, 4):
        made.append(manifest(version, f"run{version}", f"run{version - 1}", written(store, version, f"run{version}")))
        commit(store, made[-1])
    dead, keys = written(store, 3, "dead"), {stored.key for stored in store.list(f"{FINDINGS.name}/")}
    store.lacked = frozenset(lacked)

    store.listings = 1_000
    in_doubt = remove_leftovers(store, made[-1])
    kept = {stored.key for stored in store.list(f"{FINDINGS.name}/")}
    store.listings = 1  # and the next one has them
    removed = remove_leftovers(store, made[-1])

    assert (in_doubt, kept) == (0, keys)
    assert removed == 1
    assert {stored.key for stored in store.list(f"{FINDINGS.name}/")} == keys - {dead.path}


@pytest.mark.parametrize("lacked", [{1, 2, 3}, {2, 3}, {3}], ids=["all", "two", "the newest"])
def test_the_newest_version_is_current_also_where_listings_lack_it(lacked: set[int]) -> None:
    store, made = ForgetfulStore(), [manifest(version, "run", "run" if version > 1 else "") for version in (1, 2, 3)]
    for one in made:
        commit(store, one)
    store.lacked, store.listings = frozenset(lacked), 1_000

    assert current(store) == made[-1]
    assert current_tables(store) == made[-1].tables
    with pytest.raises(TieredctlError) as refused:
        demand_no_tables(store)
    assert refused.value.code is ErrorCode.USAGE


def test_what_waits_for_another_namespace_stays(tmp_path: Path) -> None:
    folder = TablesPlace.given(str(tmp_path), {})
    orders, payments = (
        waiting_place(folder, CatalogPlace("lake", name)).open_writable() for name in ("orders", "payments")
    )
    waiting = [written(one, 1, "a") for one in (orders, payments)]

    assert remove_leftovers(orders, manifest(1, "b", "")) == 1

    assert [stored.key for stored in payments.list("")] == [waiting[1].path]


def test_files_of_versions_that_nobody_reads_any_more_are_removed(store: WritableObjectStore) -> None:
    first = written(store, 1, "run1")
    commit(store, manifest(1, "run1", "", first))
    for version in range(2, READABLE_VERSIONS + 2):
        made = manifest(version, f"run{version}", f"run{version - 1}")
        commit(store, made)
        assert first.path in {stored.key for stored in store.list("")}
        remove_leftovers(store, made)

    assert first.path not in {stored.key for stored in store.list("")}


class AlteringStore(MemoryStore):
    """So many answers have other bytes than the object, or deny it."""

    def __init__(self, alter: Callable[[bytes], bytes | None]) -> None:
        super().__init__()
        self.alter, self.answers = alter, 0

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        self.answers -= 1
        told = self.alter(data) if self.answers >= 0 else data
        if told is None:
            raise TieredctlError(ErrorCode.OBJECT_MISSING, key)
        return told


ALTERED = {"one bit flipped": one_bit_flipped, "cut short": half, "zeros": zeros, "denied": lambda _: None}


@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
def test_a_table_is_what_two_answers_say(alter: Callable[[bytes], bytes | None]) -> None:
    store, names = AlteringStore(alter), [f"subject-{number}" for number in range(5_000)]
    rows = pa.Table.from_pylist([{"subject": name} for name in names], FINDINGS.columns)
    file = TableWriter(store, 1, "run1", None, "2026-11-30").write(FINDINGS, rows)
    commit(store, manifest(1, "run1", "", file))

    store.answers = 1
    found = file_rows(store, FINDINGS, [file])
    store.answers = 1_000
    with pytest.raises(TieredctlError) as refused:
        file_rows(store, FINDINGS, [file])

    assert found["subject"].to_pylist() == names
    assert refused.value.code in (ErrorCode.UNREADABLE, ErrorCode.OBJECT_MISSING)


@pytest.mark.parametrize("alter", [half, zeros, lambda _: None], ids=["cut short", "zeros", "denied"])
def test_a_manifest_is_what_two_answers_say(alter: Callable[[bytes], bytes | None]) -> None:
    store, made = AlteringStore(alter), manifest(1, "run1", "")
    commit(store, made)

    store.answers = 1
    found = current(store)
    store.answers = 1
    tables = current_tables(store)

    assert (found, tables) == (made, made.tables)


def test_a_manifest_of_another_program_is_refused(store: WritableObjectStore) -> None:
    store.write("_manifests/000000000001.json", b'{"kind": "Other"}')

    with pytest.raises(TieredctlError) as raised:
        demand_current(store)

    assert raised.value.code is ErrorCode.UNDECODABLE


def test_a_folder_without_tables_is_named(store: WritableObjectStore) -> None:
    with pytest.raises(TieredctlError) as raised:
        demand_current(store)

    assert raised.value.code is ErrorCode.PATH_MISSING


@pytest.mark.parametrize("folder", ["/store", "/store/tables"])
def test_tables_among_the_objects_of_the_store_are_refused(folder: str) -> None:
    with pytest.raises(TieredctlError, match="in the store itself"):
        demand_apart(TablesPlace(f"file:{folder}"), "file:/store")


def test_tables_beside_the_store_are_not() -> None:
    demand_apart(TablesPlace("file:/store-tables"), "file:/store")


def test_events_are_kept_by_whole_days_and_scattered_days_are_compacted() -> None:
    def files(day: str, count: int) -> list[DataFile]:
        return [DataFile(f"{day}-{number}", 10, 1, day) for number in range(count)]

    # 20,000 days after the epoch is 2024-10-04.
    old, last, scattered, today = (
        files("2024-09-03", 1),
        files("2024-09-04", 1),
        files("2024-10-03", 5),
        files("2024-10-04", 9),
    )
    compacted = [replace(one, is_compacted=True) for one in files("2024-10-02", 9)]

    first_kept = first_kept_day(30 * DAY_MS, NOW_MS, NOW_MS)
    due = events_due([*old, *last, *compacted, *scattered, *today], first_kept, NOW_MS)

    assert due.expired == tuple(old)
    assert due.scattered == {"2024-10-03": tuple(scattered)}


def test_what_is_due_is_said() -> None:
    events = TableState((DataFile("a", 10, 1, "2024-09-03"),))
    made = replace(manifest(1, "a", ""), tables={EVENTS.name: events})

    assert [one["task"] for one in due_documents(made, NOW_MS + 2_000)] == ["listing", "retention"]
    assert due_documents(made, NOW_MS)[1:] == []


def test_a_listing_of_a_time_to_come_is_due_again() -> None:
    (listing,) = due_documents(manifest(1, "a", ""), NOW_MS - 1)

    assert (listing["task"], "a time to come" in str(listing["why"])) == ("listing", True)
