"""One store copied to another with its data keys wrapped again, without a command line: killed anywhere, lied to, with
damaged manifests and plain ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from Crypto.PublicKey import RSA

from tests.rigs.mortal_store import MortalStore
from tests.store_copy.copies import Copied, contents, copied, killed_at_each_boundary, store_of
from tieredctl.layouts.registry import layout_named
from tieredctl.ops.store_copy.comparison import By, Mark, StoreComparison
from tieredctl.ops.store_copy.copying import CopyResult, ObjectCopier
from tieredctl.ports.layout import Rewrapping, RewrappingLayout
from tieredctl.ports.object_store import UPLOAD_PART_BYTES, ObjectStore, Pieces, StoredObject
from tieredctl.ports.read_only_store import ReadOnlyStore
from tieredctl.storage.memory import MemoryStore

MANIFEST = ".rsm-manifest"
AFTER_THE_LEASE_MS = 3_600_000


@pytest.fixture(scope="module")
def objects(captures: Path) -> Mapping[str, bytes]:
    """Two encrypted segments and a plain one, of real brokers."""
    found = {}
    for capture, segments in (("aiven-zstd-encrypted-4.3.1", 2), ("aiven-plain-4.3.1", 1)):
        folder = captures / capture / "bucket"
        for manifest in sorted(folder.rglob(f"*{MANIFEST}"))[:segments]:
            for path in sorted(manifest.parent.glob(f"{manifest.name.removesuffix(MANIFEST)}.*")):
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    assert len(found) == 9
    return found


@pytest.fixture(scope="module")
def new_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "new.pem"
    file.write_bytes(RSA.generate(2_048).export_key(pkcs=8))
    return file


@pytest.fixture
def source(objects: Mapping[str, bytes]) -> MemoryStore:
    return store_of(objects)


@pytest.fixture
def rewrapping(captures: Path, source: MemoryStore, new_key: Path) -> Rewrapping:
    old = captures / "aiven-zstd-encrypted-4.3.1/keys/private.pem"
    layout = layout_named("aiven", {"private-key": str(old)}).settled_in(source)
    assert isinstance(layout, RewrappingLayout)
    return layout.rewrapping(source, {"private-key": str(new_key), "key-pair-id": "key2"}, may_grow=False)


def manifests(store: ObjectStore, *, encrypted: bool = True) -> list[str]:
    found = [key for key in contents(store) if key.endswith(MANIFEST)]
    return [key for key in found if ("encryption" in json.loads(store.read(key))) is encrypted]


def wrapped_key(manifest: bytes) -> bytes:
    return bytes(json.loads(manifest)["encryption"]["dataKey"].encode())


def marks(source: ObjectStore, destination: ObjectStore, rewrapping: Rewrapping, by: By) -> dict[str, str]:
    compared = StoreComparison(source, destination, by, rewrapping=rewrapping).compared()
    return {row.key: row.mark for _, row in compared}


def is_whole(source: ObjectStore, destination: ObjectStore, rewrapping: Rewrapping) -> bool:
    return set(marks(source, destination, rewrapping, By.CONTENT).values()) == {Mark.SAME.value}


def test_plain_manifests_and_segments_are_copied_byte_for_byte(source: MemoryStore, rewrapping: Rewrapping) -> None:
    destination = MemoryStore()

    done = copied(source, destination, rewrapping=rewrapping)

    assert done.run.exit_code() == 0
    wrapped, before, after = manifests(source), contents(source), contents(destination)
    assert len(wrapped) == 2
    assert {key for key in before if before[key] != after[key]} == set(wrapped)
    assert {row.key for row in done.rows if row.checked_by == "opened"} == set(wrapped)
    assert [len(before[key]) for key in wrapped] == [len(after[key]) for key in wrapped]
    assert all(is_whole(source, destination, rewrapping) for _ in By)


def test_a_shorter_key_pair_id_leaves_a_manifest_its_size(source: MemoryStore, captures: Path, new_key: Path) -> None:
    old = captures / "aiven-zstd-encrypted-4.3.1/keys/private.pem"
    layout = layout_named("aiven", {"private-key": str(old)}).settled_in(source)
    assert isinstance(layout, RewrappingLayout)
    shorter = layout.rewrapping(source, {"private-key": str(new_key), "key-pair-id": "k"}, may_grow=False)
    destination = MemoryStore()

    assert copied(source, destination, rewrapping=shorter).run.exit_code() == 0

    for key in manifests(source):
        data = destination.read(key)
        assert len(data) == len(source.read(key))
        assert json.loads(data)["encryption"]["dataKey"].startswith("k:")


def test_the_service_is_not_asked_to_copy_manifests(source: MemoryStore, rewrapping: Rewrapping) -> None:
    destination, asked = MemoryStore(), list[str]()

    def within(stored: StoredObject) -> StoredObject | None:
        asked.append(stored.key)
        return destination.put_if_absent(stored.key, source.read(stored.key))

    copier = ObjectCopier(ReadOnlyStore(source), destination, lambda _: None, within, rewrapping)
    rows = [copier.copy(stored) or copier.look_at(stored) for stored in list(source.list())]

    assert {row.result for row in rows} == {"copied"}
    assert sorted(asked) == sorted(key for key in contents(source) if not key.endswith(MANIFEST))
    assert is_whole(source, destination, rewrapping)


def test_killed_anywhere_each_manifest_is_whole_and_a_second_run_ends_where_one_would(
    source: MemoryStore, rewrapping: Rewrapping
) -> None:
    def run(store: MortalStore, now_ms: int = 0) -> Copied:
        store.now_ms = now_ms
        return copied(source, store, clock_ms=store.clock_ms, rewrapping=rewrapping)

    before = contents(source)

    for store in killed_at_each_boundary(run):
        there = contents(store)
        assert set(marks(source, store, rewrapping, By.CONTENT).values()) <= {"=", "+"}
        done = run(store, AFTER_THE_LEASE_MS)

        assert (done.run.exit_code(), is_whole(source, store, rewrapping)) == (0, True)
        assert there.items() <= contents(store).items(), "nothing was replaced"
    assert contents(source) == before


@pytest.mark.parametrize("kept", ["another id", "the source's", "another field", "longer", "shorter"])
def test_a_destination_that_keeps_another_manifest_is_found_out(
    kept: str, source: MemoryStore, rewrapping: Rewrapping
) -> None:
    victim = manifests(source)[0]

    class Lying(MemoryStore):
        def upload(
            self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES
        ) -> StoredObject | None:
            if key != victim:
                return super().upload(key, size, pieces, part_bytes)
            written = b"".join(pieces())
            stored = {
                "another id": written.replace(b'"key2:', b'"key1:'),
                "the source's": source.read(key),
                "another field": written.replace(b'"startOffset":', b'"startoffset":'),
                "longer": written + b" ",
                "shorter": written[:-1],
            }[kept]
            return super().upload(key, len(stored), lambda: iter((stored,)))

    destination = Lying()
    done = copied(source, destination, rewrapping=rewrapping)

    assert {row.result for row in done.rows if row.key == victim} == {CopyResult.FAILED.value}
    assert (done.run.exit_code(), destination.head(victim)) == (5, None)
    assert contents(destination).keys() == contents(source).keys() - {victim}


@pytest.mark.parametrize("damage", ["cut", "altered", "twice", "empty", "in other letters"])
def test_a_manifest_that_cannot_be_opened_keeps_no_other_from_being_copied(
    damage: str, source: MemoryStore, rewrapping: Rewrapping
) -> None:
    victim, destination = manifests(source)[0], MemoryStore()
    data = source.read(victim)
    damaged = {
        "cut": data[:-1],
        "altered": data.replace(b'"dataKey":"key1:', b'"dataKey":"key1:AAAA'),
        "twice": data.replace(b'"dataKey":', b'"dataKey":"key1","dataKey":'),
        "empty": b"",
        "in other letters": data.replace(b'"key1:', b'"\\u006bey1:'),
    }[damage]
    source.put(victim, damaged)

    done = copied(source, destination, rewrapping=rewrapping)

    assert {row.result for row in done.rows if row.key == victim} == {CopyResult.FAILED.value}
    assert (done.run.exit_code(), destination.head(victim)) == (5, None)
    assert contents(destination).keys() == contents(source).keys() - {victim}


def test_manifests_of_others_in_the_destination_are_judged_by_what_they_open_to(
    source: MemoryStore, rewrapping: Rewrapping
) -> None:
    first, second = manifests(source)
    destination = MemoryStore()
    assert copied(source, destination, rewrapping=rewrapping).run.exit_code() == 0
    document = json.loads(destination.read(first))
    written = destination.read(first), destination.read(second)

    for data, mark in (
        (rewrapping.rewrapped(first, source.read(first)), "="),
        (json.dumps(document, indent=1).encode(), "="),
        (written[1], "*"),
        (written[0].replace(wrapped_key(written[0]), wrapped_key(written[1])), "*"),
        (written[0].replace(b'"key2:', b'"key3:'), "*"),
        (source.read(first), "*"),
        (written[0][:-1], "*"),
        (json.dumps(document | {"compression": 1}).encode(), "*"),
        (json.dumps(document | {"more": None}).encode(), "*"),
        (json.dumps({name: value for name, value in document.items() if name != "encryption"}).encode(), "*"),
        (written[0].replace(b'"aad":"', b'"aad":"AAAA'), "*"),
    ):
        destination.put(first, data or b"")

        for by in By:
            found = marks(source, destination, rewrapping, by)
            assert (found.pop(first), set(found.values())) == (mark, {"="}), data
        done = copied(source, destination, rewrapping=rewrapping)
        assert (done.run.exit_code(), done.rows) == (0 if mark == "=" else 3, [])
        assert destination.read(first) == data


def test_a_manifest_that_is_replaced_while_it_is_wrapped_is_copied_as_it_is_then(
    source: MemoryStore, rewrapping: Rewrapping
) -> None:
    first, second = manifests(source)
    destination, later = MemoryStore(), source.read(second)

    class Overtaken(ReadOnlyStore):
        def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
            data = super().read(key, start, end)
            if key == first and source.read(first) != later and destination.head(second) is not None:
                source.put(first, later)
            return data

    copier = ObjectCopier(Overtaken(source), destination, lambda _: None, None, rewrapping)
    rows = [
        copier.copy(stored) or copier.look_at(stored)
        for stored in sorted(source.list(), key=lambda one: one.key == first)
    ]

    assert [row.result for row in rows if row.key == first] == [CopyResult.CHANGED.value]
    assert destination.head(first) is None
