"""Stores whose listings are older than their objects, or whose answers are altered on the way once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backup.captured_sets import CapturedSets
from tests.backup.small_sets import CLUSTER_ID, SmallSets, WatchedStore, two_chains
from tests.cli.command_line import Tieredctl
from tests.refusals import refused_with
from tests.rigs.lies import one_bit_flipped
from tieredctl.ops.backup.sets import ClusterSets, the_cluster
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.storage.file import FileStore
from tieredctl.storage.refusals import object_missing
from tieredctl.wiring.backup import newest_restorable


@pytest.mark.parametrize("unlisted", ["slow7-0-", "/00000000000000000126-", "-GO1yWZckTOapkLtIH_MiCg.log"])
def test_a_promised_segment_that_a_listing_lacks_is_not_lost_and_its_offsets_are_not_given_again(
    sets: CapturedSets, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, unlisted: str
) -> None:
    words = ["restore", "plan", *sets.words("1"), "-o", "json"]
    listed = FileStore.list

    def lagging(store: FileStore, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        return (one for one in listed(store, prefix, start_after) if unlisted not in one.key)

    before = tieredctl(*words).document()
    monkeypatch.setattr(FileStore, "list", lagging)

    after = tieredctl(*words).document()

    assert after["items"] == before["items"]
    assert after["summary"] == before["summary"]


class OnceAltered(WatchedStore):
    """Whose first answer about each object has a byte less, and is none where the object has `gone` in its key."""

    gone = "no key"

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        if key in self.asked:
            return data
        self.asked.add(key)
        if self.gone in key:
            raise object_missing(self.url, key)
        return data[:-1]


class Lagging(WatchedStore):
    """Which lists nothing with this in its key."""

    unlisted = "no key"

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        return (one for one in super().list(prefix, start_after) if self.unlisted not in one.key)


def two_chains_in(store: WatchedStore) -> ClusterSets[ObjectStore]:
    small = two_chains()
    for key, data in small.store.objects().items():
        store.put(key, data)
    return ClusterSets(store, small.cluster_id)


@pytest.mark.parametrize("gone", ["manifests/", "sets/", "no key"])
def test_what_a_second_reading_finds_is_neither_damaged_nor_missing(gone: str) -> None:
    store = OnceAltered()
    sets = two_chains_in(store)
    store.gone = gone

    findings, known = sets.examined()

    assert (findings, [*known]) == ([], [1, 2, 3, 4, 5])
    store.asked.clear()
    assert [one.manifest.number for one in sets.chain(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    "unlisted", ["manifests/00000001", "manifests/00000002", "manifests/00000005", "sets/00000005"]
)
def test_a_set_that_a_listing_lacks_is_asked_for_by_name(unlisted: str) -> None:
    store = Lagging()
    sets = two_chains_in(store)
    store.unlisted = unlisted

    assert sets.numbers() == [1, 2, 3, 4, 5]
    assert sets.examined()[0] == []
    assert newest_restorable(sets)[1:] == (5, [])


class OnceEmpty(WatchedStore):
    """Which lists nothing of what has this in its key, one time of several."""

    unlisted = "no key"
    left_out_at = 1
    listings = 0

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        self.listings += self.unlisted in prefix
        is_empty = self.unlisted in prefix and self.listings == self.left_out_at
        return iter(()) if is_empty else super().list(prefix, start_after)


@pytest.mark.parametrize("unlisted", ["manifests/", "beginnings/"])
@pytest.mark.parametrize("left_out_at", range(1, 7))
def test_a_listing_that_is_empty_once_hides_no_set_from_any_command(unlisted: str, left_out_at: int) -> None:
    store = OnceEmpty()
    two_chains_in(store)
    small = SmallSets(store)
    small.prune(last=1)
    small.add()
    store.unlisted, store.left_out_at = unlisted, left_out_at

    store.listings = 0
    assert newest_restorable(ClusterSets(store, CLUSTER_ID))[1:] == (6, [])
    store.listings = 0
    assert small.sets.examined()[0] == []
    store.listings = 0
    assert [small.add().number, small.add().number] == [7, 8]
    small.demand_whole()


def test_a_cluster_is_found_in_a_store_whose_listing_is_empty_once() -> None:
    store = OnceEmpty()
    two_chains_in(store)
    store.unlisted = ""

    assert the_cluster(store, None) == CLUSTER_ID


class Forgetful(WatchedStore):
    """Which says that it wrote manifests, and does not, or cuts them."""

    cuts = False

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        made = super().put_if_absent(key, data)
        if made is not None and "/manifests/" in key:
            self.delete([made])
            if self.cuts:
                super().put_if_absent(key, data[:-1])
        return made


@pytest.mark.parametrize(("cuts", "code"), [(False, "object-missing"), (True, "undecodable")])
def test_a_set_whose_manifest_the_store_does_not_have_is_not_written(cuts: bool, code: str) -> None:
    store = Forgetful()
    store.cuts = cuts

    with refused_with(code):
        SmallSets(store).add()


@pytest.mark.parametrize("part", ["GO1yWZckTOapkLtIH_MiCg.log", ".leader_epoch_checkpoint"])
def test_a_segment_that_only_one_reading_finds_damaged_is_restored(
    sets: CapturedSets, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    at = ["--store", f"file:{sets.store}", "--node", "1", "--cluster-id", sets.cluster_id]
    words = ["restore", "plan", "--without-backup", *at, "--metadata-partitions", "4", "-o", "json"]
    streamed, read, altered = FileStore.stream, FileStore.read, set[str]()

    def is_first(key: str) -> bool:
        is_it = key.endswith(part) and key not in altered
        altered.add(key)
        return is_it

    def stream_altered(store: FileStore, key: str, *where: int) -> Iterator[bytes]:
        data = b"".join(streamed(store, key, *where))
        yield one_bit_flipped(data) if is_first(key) else data

    def read_altered(store: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = read(store, key, start, end)
        return one_bit_flipped(data) if is_first(key) else data

    before = tieredctl(*words).document()
    monkeypatch.setattr(FileStore, "stream", stream_altered)
    monkeypatch.setattr(FileStore, "read", read_altered)

    after = tieredctl(*words).document()

    assert (after["items"], after["summary"]) == (before["items"], before["summary"])
