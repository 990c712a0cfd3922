"""A store that is asked again: real servers, with trouble on the way to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.refusals import refused_with
from tests.rigs.buckets import BUCKET, Bucket, GcsBucket, S3Bucket
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


TroubleOn = Callable[[ObjectServer, type[Bucket], Callable[[str, str], S3Store | GcsStore]], Trip]


@pytest.fixture
def troubled() -> Iterator[TroubleOn]:
    """Puts three objects below a prefix of a server, and trouble on the way to them."""
    with ExitStack() as proxies:

        def on(server: ObjectServer, bucket: type[Bucket], store_at: Callable[[str, str], S3Store | GcsStore]) -> Trip:
            proxy = proxies.enter_context(FaultyProxy(server.endpoint))
            store = store_at(proxy.endpoint, f"{proxy.endpoint[-5:]}/")
            for key in ("a", "b", "c"):
                bucket(server.endpoint).put(store.address.root + key, key.encode() * 100)
            return Trip(proxy, store)

        yield on


@pytest.fixture
def s3(moto: ObjectServer, troubled: TroubleOn) -> Trip:
    def store_at(endpoint: str, root: str) -> S3Store:
        connection = S3Connection(endpoint, "us-east-1", addressing_style="path")
        return S3Store(BucketAddress("s3", BUCKET, root), connection)

    return troubled(moto, S3Bucket, store_at)


@pytest.fixture
def gcs(gcp_storage_emulator: ObjectServer, troubled: TroubleOn) -> Trip:
    def store_at(endpoint: str, root: str) -> GcsStore:
        return GcsStore(BucketAddress("gs", BUCKET, root), GcsConnection(endpoint), frozenset())

    return troubled(gcp_storage_emulator, GcsBucket, store_at)


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


def test_what_passes_is_waited_for(s3: Trip, gcs: Trip) -> None:
    for fault in (SLOW_DOWN, INTERNAL_ERROR, Trouble.NOT_DELIVERED, Trouble.ANSWER_LOST):
        s3.trouble(fault, fault)
        assert s3.store.read("a") == b"a" * 100, fault
        assert s3.methods() == ["GET"] * 3, fault
    for status in (429, 503, 500, 502):
        gcs.trouble(Answer(status), Answer(status))
        assert gcs.store.read("a") == b"a" * 100, status
    assert (len(s3.pauses), len(gcs.pauses)) == (8, 8)


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

    with refused_with("store-throttled"):
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


def test_a_refusal_is_final_and_a_bare_store_asks_once(s3: Trip) -> None:
    s3.trouble(DENIED)
    with refused_with("store-forbidden"):
        s3.store.read("a")
    assert (len(s3.proxy.requests), s3.pauses) == (1, [])

    s3.trouble(SLOW_DOWN)
    with refused_with("store-throttled"):
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


@pytest.mark.parametrize("server", ["s3", "gcs"])
def test_a_lost_answer_to_a_deletion_counts_as_done(server: str, request: pytest.FixtureRequest) -> None:
    trip: Trip = request.getfixturevalue(server)
    wanted = head(trip, "a")
    trip.trouble(Trouble.ANSWER_LOST)

    (deletion,) = trip.store.delete([wanted])

    assert deletion.outcome is GONE
    assert trip.methods().count("DELETE") == 2


def test_a_lost_answer_to_a_batch_counts_as_done(s3: Trip) -> None:
    trip = in_one_request(s3)
    wanted = list(trip.store.list())
    trip.trouble(Trouble.ANSWER_LOST)

    deletions = trip.store.delete(wanted)

    assert [deletion.outcome for deletion in deletions] == [GONE] * 3
    assert list(trip.store.list()) == []


def of_a_batch(trip: Trip, gone: str, refused: str, code: str) -> Answer:
    """Of these keys one is refused."""
    root = trip.asking_once.address.root
    deleted = "".join(f"<Deleted><Key>{root}{key}</Key></Deleted>" for key in gone)
    error = f"<Error><Key>{root}{refused}</Key><Code>{code}</Code></Error>"
    return Answer(200, f"<DeleteResult>{deleted}{error}</DeleteResult>".encode())


def test_of_a_batch_only_what_is_not_confirmed_is_asked_for_again(s3: Trip) -> None:
    trip = in_one_request(s3)
    wanted = list(trip.store.list())
    root = trip.asking_once.address.root
    trip.trouble(of_a_batch(trip, "a", "b", "SlowDown"))

    deletions = trip.store.delete(wanted)

    asked = [re.findall(rf"<Key>{root}(.)</Key>", request.body.decode()) for request in trip.proxy.requests]
    assert asked == [["a", "b", "c"], ["b", "c"]]
    assert [deletion.outcome for deletion in deletions] == [GONE] * 3
    assert 0.5 <= trip.pauses[0] <= 1.0


def test_a_key_that_is_refused_fails_alone(s3: Trip) -> None:
    trip = in_one_request(s3)
    wanted = list(trip.store.list())
    trip.trouble(of_a_batch(trip, "ac", "b", "AccessDenied"))

    deletions = trip.store.delete(wanted)

    assert [(one.outcome, one.error and one.error.code) for one in deletions] == [
        (GONE, None),
        (FAILED, "store-forbidden"),
        (GONE, None),
    ]
    assert len(trip.proxy.requests) == 1


def test_a_deletion_that_never_gets_through_is_reported_to_have_failed(s3: Trip) -> None:
    wanted = head(s3, "a")
    s3.trouble(*[Trouble.NOT_DELIVERED] * 4)

    (deletion,) = s3.store.delete([wanted])

    assert (deletion.outcome, deletion.error and deletion.error.code) == (FAILED, "store-unreachable")
    assert s3.store.head("a") == wanted


def test_a_lost_answer_to_a_write_a_replacement_or_a_copy_is_known_for_ones_own(s3: Trip) -> None:
    source = head(s3, "a")

    def ask(change: Callable[[], StoredObject | None]) -> StoredObject:
        s3.trouble(Trouble.ANSWER_LOST, applies=lambda request: request.method == "PUT")
        made = change()
        assert s3.methods().count("PUT") == 2
        assert made is not None
        return made

    lock = ask(lambda: s3.store.put_if_absent("lock", b"holder 1"))
    assert lock == s3.store.head("lock")
    assert ask(lambda: s3.store.upload("log", 3, lambda: iter((b"log",)))) == s3.store.head("log")
    replacement = ask(lambda: s3.store.replace(lock, b"lease 2"))
    assert (replacement, s3.store.read("lock")) == (s3.store.head("lock"), b"lease 2")
    assert ask(lambda: s3.store.copy(source, "copy")) == s3.store.head("copy")


def test_a_lost_answer_to_the_end_of_an_upload_in_parts_is_known_for_ones_own(s3: Trip) -> None:
    s3.trouble(Trouble.ANSWER_LOST, applies=lambda request: "?uploadId=" in request.path and request.method == "POST")

    made = s3.store.upload("log", 3, lambda: iter((b"log",)), part_bytes=3)

    assert made == s3.store.head("log")
    assert s3.methods().count("POST") == 4
    assert list(s3.asking_once.multipart_uploads()) == []


def test_a_write_that_another_was_faster_with_is_refused_after_a_lost_request_too(s3: Trip) -> None:
    s3.asking_once.put_if_absent("lock", b"holder 2")
    s3.trouble(Trouble.NOT_DELIVERED)

    assert s3.store.put_if_absent("lock", b"holder 1") is None
    assert s3.store.read("lock") == b"holder 2"


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

    with refused_with("store-unreachable"):
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

    with refused_with("unreadable"):
        list(RetryingStore(rewritten, RetryPolicy(sleep=lambda _: None)).stream("a"))
