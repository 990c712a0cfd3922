"""A store that is asked again: real servers, with trouble on the way to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.rigs.buckets import BUCKET, GcsBucket, S3Bucket
from tests.rigs.faulty_proxy import Answer, Fault, FaultyProxy, Request, Trouble
from tests.rigs.object_servers import ObjectServer
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import Capability, DeletionOutcome, StoredObject
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.gcs import GcsStore
from tieredctl.storage.gcs_connection import GcsConnection
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.retrying import RetryingStore, RetryPolicy
from tieredctl.storage.s3 import S3Store
from tieredctl.storage.s3_connection import S3Connection

SLOW_DOWN = Answer(503, b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
INTERNAL_ERROR = Answer(500, b"<Error><Code>InternalError</Code></Error>")
DENIED = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
GONE, FAILED = DeletionOutcome.GONE, DeletionOutcome.FAILED


class Trip:
    """A retrying store at the end of a troubled line, and how long it waited."""

    def __init__(self, proxy: FaultyProxy, store: S3Store | GcsStore) -> None:
        self.proxy = proxy
        self.pauses: list[float] = []
        self.asking_once = store
        self.store = RetryingStore(store, RetryPolicy(attempts=4, sleep=self.pauses.append))

    def trouble(self, *faults: Fault, applies: Callable[[Request], bool] = lambda _: True) -> None:
        self.proxy.requests.clear()
        self.proxy.applies = applies
        self.proxy.faults[:] = faults

    def methods(self) -> list[str]:
        return [request.method for request in self.proxy.requests]


@pytest.fixture
def s3(moto: ObjectServer) -> Iterator[Trip]:
    bucket = S3Bucket(moto.endpoint)
    with FaultyProxy(moto.endpoint) as proxy:
        connection = S3Connection(proxy.endpoint, "us-east-1", addressing_style="path")
        store = S3Store(BucketAddress("s3", BUCKET, f"{proxy.endpoint[-5:]}/"), connection)
        for key in ("a", "b", "c"):
            bucket.put(store.address.root + key, key.encode() * 100)
        yield Trip(proxy, store)


@pytest.fixture
def gcs(gcp_storage_emulator: ObjectServer) -> Iterator[Trip]:
    bucket = GcsBucket(gcp_storage_emulator.endpoint)
    with FaultyProxy(gcp_storage_emulator.endpoint) as proxy:
        store = GcsStore(
            BucketAddress("gs", BUCKET, f"{proxy.endpoint[-5:]}/"), GcsConnection(proxy.endpoint), frozenset()
        )
        for key in ("a", "b", "c"):
            bucket.put(store.address.root + key, key.encode() * 100)
        yield Trip(proxy, store)


def in_one_request(trip: Trip) -> Trip:
    """Deletions of several keys in one request, as where the server knows no condition."""
    assert isinstance(trip.asking_once, S3Store)
    store = replace(trip.asking_once, capabilities=trip.asking_once.capabilities - {Capability.CONDITIONAL_DELETE})
    trip.store = replace(trip.store, store=store)
    return trip


def head(trip: Trip, key: str) -> StoredObject:
    stored = trip.store.head(key)
    assert stored is not None
    return stored


@contextmanager
def failing_with(code: str) -> Iterator[None]:
    with pytest.raises(TieredctlError) as raised:
        yield
    assert raised.value.code == code


@pytest.mark.parametrize("fault", [SLOW_DOWN, INTERNAL_ERROR, Trouble.NOT_DELIVERED, Trouble.ANSWER_LOST])
def test_what_passes_is_waited_for(s3: Trip, fault: Fault) -> None:
    s3.trouble(fault, fault)

    assert s3.store.read("a") == b"a" * 100
    assert s3.methods() == ["GET"] * 3
    assert len(s3.pauses) == 2


@pytest.mark.parametrize("status", [429, 503, 500, 502])
def test_google_is_waited_for_too(gcs: Trip, status: int) -> None:
    gcs.trouble(Answer(status), Answer(status))

    assert gcs.store.read("a") == b"a" * 100
    assert len(gcs.pauses) == 2


def test_a_throttled_store_is_given_more_time_than_one_that_failed(s3: Trip) -> None:
    s3.trouble(SLOW_DOWN)
    s3.store.read("a")
    s3.trouble(INTERNAL_ERROR)
    s3.store.read("a")

    after_throttling, after_failure = s3.pauses
    assert 0.5 <= after_throttling <= 1.0
    assert 0.1 <= after_failure <= 0.2


def test_pauses_grow_and_end(s3: Trip) -> None:
    s3.trouble(*[SLOW_DOWN] * 10)

    with failing_with("store-throttled"):
        s3.store.read("a")

    assert len(s3.proxy.requests) == 4
    first, second, third = s3.pauses
    assert first <= 1.0 <= second <= 2.0 <= third <= 4.0


def test_pauses_differ_between_processes() -> None:
    pauses: list[float] = []
    policy = RetryPolicy(sleep=pauses.append)

    for _ in range(20):
        policy.wait(1, TieredctlError(ErrorCode.STORE_THROTTLED, "patience"))

    assert len(set(pauses)) > 10


def test_a_refusal_is_final(s3: Trip) -> None:
    s3.trouble(DENIED)

    with failing_with("store-forbidden"):
        s3.store.read("a")

    assert (len(s3.proxy.requests), s3.pauses) == (1, [])


def test_a_bare_store_asks_once(s3: Trip) -> None:
    s3.trouble(SLOW_DOWN)

    with failing_with("store-throttled"):
        s3.asking_once.read("a")

    assert len(s3.proxy.requests) == 1


def test_an_answer_that_breaks_off_is_not_taken_for_the_whole(s3: Trip) -> None:
    s3.trouble(Trouble.ANSWER_CUT)

    assert s3.store.read("a") == b"a" * 100
    assert len(s3.pauses) == 1


def test_a_stream_continues_where_it_broke_off(s3: Trip) -> None:
    s3.trouble(Trouble.ANSWER_CUT, Trouble.NOT_DELIVERED, applies=lambda request: request.method == "GET")

    assert b"".join(s3.store.stream("a", start=10, chunk_size=7)) == b"a" * 90
    assert len(s3.pauses) == 2


def test_a_lost_answer_to_a_deletion_counts_as_done(s3: Trip) -> None:
    wanted = head(s3, "a")
    s3.trouble(Trouble.ANSWER_LOST)

    (deletion,) = s3.store.delete([wanted])

    assert deletion.outcome is GONE
    assert s3.methods() == ["DELETE", "DELETE"]


def test_a_lost_answer_to_a_deletion_counts_as_done_at_googles_too(gcs: Trip) -> None:
    wanted = head(gcs, "a")
    gcs.trouble(Trouble.ANSWER_LOST)

    (deletion,) = gcs.store.delete([wanted])

    assert deletion.outcome is GONE
    assert gcs.methods().count("DELETE") == 2


def test_a_lost_answer_to_a_batch_counts_as_done(s3: Trip) -> None:
    trip = in_one_request(s3)
    wanted = list(trip.store.list())
    trip.trouble(Trouble.ANSWER_LOST)

    deletions = trip.store.delete(wanted)

    assert [deletion.outcome for deletion in deletions] == [GONE] * 3
    assert list(trip.store.list()) == []


def test_of_a_batch_only_what_is_not_confirmed_is_asked_for_again(s3: Trip) -> None:
    trip = in_one_request(s3)
    wanted = list(trip.store.list())
    root = trip.asking_once.address.root
    trip.trouble(
        Answer(
            200,
            f"<DeleteResult><Deleted><Key>{root}a</Key></Deleted>"
            f"<Error><Key>{root}b</Key><Code>SlowDown</Code></Error></DeleteResult>".encode(),
        )
    )

    deletions = trip.store.delete(wanted)

    asked = [re.findall(rf"<Key>{root}(.)</Key>", request.body.decode()) for request in trip.proxy.requests]
    assert asked == [["a", "b", "c"], ["b", "c"]]
    assert [deletion.outcome for deletion in deletions] == [GONE] * 3
    assert 0.5 <= trip.pauses[0] <= 1.0


def test_a_key_that_is_refused_fails_alone(s3: Trip) -> None:
    trip = in_one_request(s3)
    wanted = list(trip.store.list())
    root = trip.asking_once.address.root
    trip.trouble(
        Answer(
            200,
            f"<DeleteResult><Deleted><Key>{root}a</Key></Deleted><Deleted><Key>{root}c</Key></Deleted>"
            f"<Error><Key>{root}b</Key><Code>AccessDenied</Code></Error></DeleteResult>".encode(),
        )
    )

    deletions = trip.store.delete(wanted)

    assert [deletion.outcome for deletion in deletions] == [GONE, FAILED, GONE]
    assert deletions[1].error is not None
    assert deletions[1].error.code == "store-forbidden"
    assert len(trip.proxy.requests) == 1


def test_a_deletion_that_never_gets_through_is_reported_to_have_failed(s3: Trip) -> None:
    wanted = head(s3, "a")
    s3.trouble(*[Trouble.NOT_DELIVERED] * 4)

    (deletion,) = s3.store.delete([wanted])

    assert deletion.outcome is FAILED
    assert deletion.error is not None
    assert deletion.error.code == "store-unreachable"
    assert s3.store.head("a") == wanted


def test_a_lost_answer_to_a_write_is_known_for_ones_own(s3: Trip) -> None:
    s3.trouble(Trouble.ANSWER_LOST, applies=lambda request: request.method == "PUT")

    made = s3.store.put_if_absent("lock", b"holder 1")

    assert made == s3.store.head("lock")
    assert s3.methods().count("PUT") == 2


def test_a_write_that_another_was_faster_with_is_refused_after_a_lost_request_too(s3: Trip) -> None:
    s3.asking_once.put_if_absent("lock", b"holder 2")
    s3.trouble(Trouble.NOT_DELIVERED)

    assert s3.store.put_if_absent("lock", b"holder 1") is None
    assert s3.store.read("lock") == b"holder 2"


def test_a_lost_answer_to_a_replacement_is_known_for_ones_own(s3: Trip) -> None:
    lock = s3.store.put_if_absent("lock", b"lease 1")
    assert lock is not None
    s3.trouble(Trouble.ANSWER_LOST, applies=lambda request: request.method == "PUT")

    made = s3.store.replace(lock, b"lease 2")

    assert made == s3.store.head("lock")
    assert s3.store.read("lock") == b"lease 2"


def test_a_lost_answer_to_a_copy_is_asked_for_again(s3: Trip) -> None:
    source = head(s3, "a")
    s3.trouble(Trouble.ANSWER_LOST, applies=lambda request: request.method == "PUT")

    made = s3.store.copy(source, "copy")

    assert made == s3.store.head("copy")


class BreakingStore(MemoryStore):
    """Breaks off each listing after some objects."""

    def __init__(self, listed_at_once: int) -> None:
        super().__init__()
        self._listed_at_once = listed_at_once

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        for number, stored in enumerate(super().list(prefix, start_after)):
            if number == self._listed_at_once:
                raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "gone for a moment")
            yield stored


def test_a_listing_continues_after_the_last_key_it_gave() -> None:
    breaking = BreakingStore(listed_at_once=2)
    for number in range(9):
        breaking.put(f"{number}", b"")

    listed = [stored.key for stored in RetryingStore(breaking, RetryPolicy(sleep=lambda _: None)).list()]

    assert listed == [f"{number}" for number in range(9)]


def test_a_listing_that_never_gets_on_fails() -> None:
    breaking = BreakingStore(listed_at_once=0)
    breaking.put("a", b"")

    with failing_with("store-unreachable"):
        list(RetryingStore(breaking, RetryPolicy(sleep=lambda _: None)).list())


class RewrittenStore(MemoryStore):
    """Breaks off a stream, and has the object rewritten by then."""

    def stream(self, key: str, start: int = 0, chunk_size: int = 1) -> Iterator[bytes]:
        yield self.read(key, start, start + 1)
        self.put(key, b"something else")
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "gone for a moment")


def test_a_stream_does_not_continue_in_another_object() -> None:
    rewritten = RewrittenStore()
    rewritten.put("a", b"0123456789")

    with failing_with("unreadable"):
        list(RetryingStore(rewritten, RetryPolicy(sleep=lambda _: None)).stream("a"))
