"""What every store promises that can be changed (tieredctl.ports.object_store), tried on each of them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.storage.answers import keys_of
from tests.storage.conftest import SERVERS, STORES, BucketWith, WritableWith
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import (
    MOST_DELETED_AT_ONCE,
    Capability,
    Deletion,
    DeletionOutcome,
    StoredObject,
    WritableObjectStore,
)
from tieredctl.storage.registry import open_writable_store
from tieredctl.storage.trial import TRIAL_FOLDER

CAPABILITIES = {
    "file": set(Capability) - {Capability.MULTIPART_UPLOADS},
    "memory": set(Capability) - {Capability.MULTIPART_UPLOADS},
    # Takes a copy's condition, and does not keep it.
    "moto": {Capability.CONDITIONAL_WRITE, Capability.CONDITIONAL_DELETE, Capability.MULTIPART_UPLOADS},
    "versitygw": set(Capability) - {Capability.MODIFICATION_TIMES},
    # Takes conditions of copies and deletions, and does not keep them.
    "fake-gcs-server": {Capability.CONDITIONAL_WRITE},
    # Takes all conditions, and keeps none.
    "gcp-storage-emulator": set[Capability](),
}
GONE, CHANGED = DeletionOutcome.GONE, DeletionOutcome.CHANGED


def where(capability: Capability, present: bool = True, but: str | None = None) -> pytest.MarkDecorator:
    """On the stores that have the capability, or on those that lack it; not on the one that `but` names.

    moto looks and writes in two steps, and lets a second writer in between on a busy machine.
    """
    kinds = [kind for kind in STORES if (capability in CAPABILITIES[kind]) == present and kind != but]
    return pytest.mark.parametrize("store_kind", kinds)


def head(store: WritableObjectStore, key: str) -> StoredObject:
    stored = store.head(key)
    assert stored is not None
    return stored


def outcomes(deletions: Sequence[Deletion]) -> list[DeletionOutcome]:
    return [deletion.outcome for deletion in deletions]


def test_a_store_says_what_it_can(store_kind: str, writable_with: WritableWith) -> None:
    assert writable_with({}).capabilities == CAPABILITIES[store_kind]


def test_finding_that_out_leaves_nothing_behind(writable_with: WritableWith) -> None:
    store = writable_with({"kept": b""})

    assert keys_of(store) == ["kept"]
    assert list(store.list(TRIAL_FOLDER)) == []


def test_a_pickled_store_can_still_be_changed(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"1"})

    copy: WritableObjectStore = pickle.loads(pickle.dumps(store))

    assert copy.capabilities == store.capabilities
    assert outcomes(copy.delete([head(copy, "a")])) == [GONE]


@where(Capability.CONDITIONAL_WRITE)
def test_what_is_put_is_there(writable_with: WritableWith) -> None:
    store = writable_with({})

    made = store.put_if_absent("locks/cluster", b"mine")

    assert made == head(store, "locks/cluster")
    assert store.read("locks/cluster") == b"mine"


@where(Capability.CONDITIONAL_WRITE)
def test_what_is_there_is_not_put_again(writable_with: WritableWith) -> None:
    store = writable_with({"lock": b"theirs"})
    before = head(store, "lock")

    assert store.put_if_absent("lock", b"mine") is None
    assert head(store, "lock") == before
    assert store.read("lock") == b"theirs"


@pytest.mark.parametrize("store_kind", STORES)
@pytest.mark.parametrize("there", [{}, {"a/b": b"before"}], ids=["new", "over another"])
def test_what_is_written_is_there_whatever_was(writable_with: WritableWith, there: Mapping[str, bytes]) -> None:
    store = writable_with(there)

    written = store.write("a/b", b"data")

    assert (written, store.read("a/b")) == (store.head("a/b"), b"data")


@where(Capability.CONDITIONAL_WRITE)
def test_an_empty_object_can_be_put(writable_with: WritableWith) -> None:
    store = writable_with({})

    store.put_if_absent("marker", b"")

    assert store.read("marker") == b""


@where(Capability.CONDITIONAL_WRITE, but="moto")
def test_of_writers_at_once_one_makes_the_object(writable_with: WritableWith) -> None:
    store = writable_with({})

    with ThreadPoolExecutor(8) as writers:
        made = list(writers.map(lambda writer: store.put_if_absent("lock", b"%d" % writer), range(8)))

    winners = [writer for writer, stored in enumerate(made) if stored is not None]
    assert len(winners) == 1
    assert store.read("lock") == b"%d" % winners[0]


@where(Capability.CONDITIONAL_WRITE)
def test_the_current_version_is_replaced(writable_with: WritableWith) -> None:
    store = writable_with({"lock": b"lease 1"})

    made = store.replace(head(store, "lock"), b"lease two")

    assert made == head(store, "lock")
    assert store.read("lock") == b"lease two"


@where(Capability.CONDITIONAL_WRITE)
def test_a_past_version_is_not_replaced(writable_with: WritableWith) -> None:
    store = writable_with({"lock": b"lease 1"})
    past = head(store, "lock")
    store.replace(past, b"lease two")

    assert store.replace(past, b"lease of another") is None
    assert store.read("lock") == b"lease two"


@where(Capability.CONDITIONAL_WRITE)
def test_what_is_gone_is_not_replaced(writable_with: WritableWith) -> None:
    store = writable_with({"lock": b"lease 1"})
    past = head(store, "lock")
    store.delete([past])

    assert store.replace(past, b"lease two") is None
    assert keys_of(store) == []


@where(Capability.CONDITIONAL_WRITE, but="moto")
def test_of_writers_at_once_one_replaces_the_version(writable_with: WritableWith) -> None:
    store = writable_with({"lock": b"free"})
    free = head(store, "lock")

    with ThreadPoolExecutor(8) as writers:
        made = list(writers.map(lambda writer: store.replace(free, b"writer %d" % writer), range(8)))

    winners = [writer for writer, stored in enumerate(made) if stored is not None]
    assert len(winners) == 1
    assert store.read("lock") == b"writer %d" % winners[0]


@where(Capability.CONDITIONAL_WRITE, present=False)
def test_a_server_that_keeps_no_condition_is_asked_for_none(writable_with: WritableWith) -> None:
    store = writable_with({"lock": b"theirs"})

    with pytest.raises(TieredctlError) as put:
        store.put_if_absent("other", b"mine")
    with pytest.raises(TieredctlError) as replaced:
        store.replace(head(store, "lock"), b"mine")

    assert [put.value.kind.code, replaced.value.kind.code] == ["store-incapable"] * 2
    assert keys_of(store) == ["lock"]
    assert store.read("lock") == b"theirs"


def test_a_copy_holds_the_same_bytes(writable_with: WritableWith) -> None:
    store = writable_with({"orders-0/1.log": b"0123456789"})

    made = store.copy(head(store, "orders-0/1.log"), "quarantine/orders-0/1.log")

    assert made == head(store, "quarantine/orders-0/1.log")
    assert keys_of(store) == ["orders-0/1.log", "quarantine/orders-0/1.log"]
    assert store.read("quarantine/orders-0/1.log") == b"0123456789"


@pytest.mark.parametrize("store_kind", ["file", "memory"])
def test_a_copy_has_the_time_that_it_is_given_where_times_can_be_set(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"0"})

    made = store.copy(head(store, "a"), "b", 1_600_000_000_123)

    assert made == head(store, "b")
    assert made.last_modified_ms == 1_600_000_000_123


def test_an_empty_object_can_be_copied(writable_with: WritableWith) -> None:
    store = writable_with({"a": b""})

    store.copy(head(store, "a"), "b")

    assert store.read("b") == b""


def test_a_copy_replaces_what_is_there(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"new", "b": b"former"})

    store.copy(head(store, "a"), "b")

    assert store.read("b") == b"new"


def test_what_is_gone_is_not_copied(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"1"})
    past = head(store, "a")
    store.delete([past])

    assert store.copy(past, "b") is None
    assert keys_of(store) == []


def test_a_past_version_is_not_copied(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"past", "b": b"the present"})
    past = head(store, "a")
    store.copy(head(store, "b"), "a")

    assert store.copy(past, "c") is None
    assert keys_of(store) == ["a", "b"]


def test_checksums_of_a_copy_never_contradict_its_bytes(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"0123456789", "b": b"012345678x"})
    store.copy(head(store, "a"), "copy")

    kept, of_copy, of_other = (store.checksums(head(store, key)) for key in ("a", "copy", "b"))

    assert not {name for name in kept if name in of_other and kept[name] == of_other[name]}
    assert {name: of_copy[name] for name in kept if name in of_copy} == {name: kept[name] for name in of_copy}
    assert kept.get("md5") in (None, "781e5e245d69b566979b86e28d23f2c7")


@pytest.mark.parametrize("store_kind", ["moto", "versitygw", "fake-gcs-server"])
def test_a_server_keeps_a_checksum_of_a_copy_and_its_original(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"0123456789"})
    store.copy(head(store, "a"), "copy")

    kept, of_copy = store.checksums(head(store, "a")), store.checksums(head(store, "copy"))

    assert kept.items() & of_copy.items()


def test_there_are_no_checksums_of_a_version_that_is_past(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"past", "b": b"the present"})
    past = head(store, "a")
    store.copy(head(store, "b"), "a")

    assert store.checksums(past) == {}


@pytest.mark.parametrize("store_kind", SERVERS)
def test_a_copy_keeps_content_type_and_metadata(bucket_with: BucketWith) -> None:
    place = bucket_with({})
    place.put("a.log", b"1", content_type="application/x-kafka", segment="7")
    store = open_writable_store(place.url, place.options)

    store.copy(head(store, "a.log"), "b.log")

    assert place.described("b.log") == ("application/x-kafka", {"segment": "7"})


def test_each_deletion_is_reported(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"1", "b": b"2", "c": b"3"})
    wanted = [head(store, "c"), head(store, "a")]

    deletions = store.delete(wanted)

    assert deletions == [Deletion(stored, GONE) for stored in wanted]
    assert keys_of(store) == ["b"]


def test_what_is_gone_already_is_gone(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"1"})
    stored = head(store, "a")
    store.delete([stored])

    assert outcomes(store.delete([stored])) == [GONE]


def test_nothing_to_delete_is_not_a_request(writable_with: WritableWith) -> None:
    assert list(writable_with({"a": b"1"}).delete([])) == []


@where(Capability.CONDITIONAL_DELETE)
def test_a_version_that_is_past_is_left_alone(writable_with: WritableWith) -> None:
    store = writable_with({"a": b"1", "b": b"2"})
    past, other = head(store, "a"), head(store, "b")
    store.replace(past, b"written again")

    assert outcomes(store.delete([past, other])) == [CHANGED, GONE]
    assert store.read("a") == b"written again"


def test_only_the_key_itself_is_deleted(writable_with: WritableWith) -> None:
    store = writable_with({"a/1": b"", "a/10": b""})

    store.delete([head(store, "a/1")])

    assert keys_of(store) == ["a/10"]


@pytest.mark.parametrize("store_kind", ["file", "memory", "versitygw", "fake-gcs-server"])
def test_a_whole_batch_is_deleted(writable_with: WritableWith) -> None:
    store = writable_with({f"{number:04}": b"" for number in range(MOST_DELETED_AT_ONCE)})

    deletions = store.delete(list(store.list()))

    assert outcomes(deletions) == [GONE] * MOST_DELETED_AT_ONCE
    assert keys_of(store) == []


def test_more_than_a_batch_is_refused(writable_with: WritableWith) -> None:
    store = writable_with({"a": b""})

    with pytest.raises(ValueError, match="1001 objects"):
        store.delete([head(store, "a")] * (MOST_DELETED_AT_ONCE + 1))


@pytest.mark.parametrize("key", ["a b+c%41&?#=", "é/\U0001f600", "a*b\\c:|\"'<>~", "[a]{b}^`", "a\tb", " a "])
def test_odd_keys_are_listed_read_copied_and_deleted(writable_with: WritableWith, key: str) -> None:
    store = writable_with({key: b"odd", "other": b""})

    store.copy(head(store, key), "copies/" + key)
    outcome = outcomes(store.delete([head(store, key)]))

    assert outcome == [GONE]
    assert sorted(keys_of(store)) == sorted(["copies/" + key, "other"])
    assert store.read("copies/" + key) == b"odd"


@pytest.mark.parametrize("key", ["", "n" * 1_025, "\ud800"])
@pytest.mark.parametrize("store_kind", ["file", *SERVERS])
def test_a_key_that_cannot_be_is_not_written(writable_with: WritableWith, key: str) -> None:
    store = writable_with({"a": b"1"})

    with pytest.raises(TieredctlError) as raised:
        store.copy(head(store, "a"), key)

    assert raised.value.kind.code == "unwritable"
    assert keys_of(store) == ["a"]


@where(Capability.MULTIPART_UPLOADS, present=False)
def test_a_store_without_uploads_in_parts_says_so(writable_with: WritableWith) -> None:
    store = writable_with({})

    with pytest.raises(TieredctlError) as raised:
        next(store.multipart_uploads())

    assert raised.value.kind.code == "store-incapable"
