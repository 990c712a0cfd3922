"""Copies within one service: its server makes them, where it was seen to replace nothing; else bytes pass through
here. Either way they are proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from tests.rigs.buckets import BUCKET, GcsBucket, S3Bucket
from tests.rigs.faulty_proxy import Answer, FaultyProxy
from tests.rigs.object_servers import ObjectServer
from tests.store_copy.copies import contents
from tieredctl.ops.store_copy.copying import CopiedObject, ObjectCopier
from tieredctl.ports.object_store import UPLOAD_PART_BYTES, ObjectStore, StoredObject, WritableObjectStore
from tieredctl.ports.read_only_store import ReadOnlyStore
from tieredctl.ports.server_side_copies import CopiesFromOthers
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.registry import open_writable_store
from tieredctl.storage.s3 import S3Store
from tieredctl.storage.server_side import ServerSideCopies, server_side_copies
from tieredctl.testing.server_side_copies import ServerSideCopiesContract

pytestmark = pytest.mark.integration
LARGE = bytes(range(256)) * (UPLOAD_PART_BYTES // 256) + b"and a part that is not whole"
_prefixes = count()


def two_stores(bucket: S3Bucket | GcsBucket) -> tuple[WritableObjectStore, ...]:
    """Of one server."""
    of_this_test = f"{bucket.scheme}://{BUCKET}/within-{next(_prefixes)}"
    return tuple(open_writable_store(f"{of_this_test}/{name}", bucket.options) for name in ("source", "destination"))


def asked(source: ObjectStore, destination: WritableObjectStore) -> ServerSideCopies:
    within = server_side_copies(ReadOnlyStore(source), destination)
    assert within is not None
    assert isinstance(within.destination, S3Store)
    # The test's server copies no part above 5 MiB.
    within.destination = replace(within.destination, largest_copy_at_once=5 << 20)
    return within


def copied(
    source: ObjectStore,
    destination: WritableObjectStore,
    stored: StoredObject,
    within: Callable[[StoredObject], StoredObject | None],
) -> CopiedObject:
    copier = ObjectCopier(ReadOnlyStore(source), destination, lambda _: None, within)
    return copier.copy(stored) or copier.look_at(stored)


def test_a_server_copies_large_objects_in_parts_and_replaces_nothing(versitygw: ObjectServer) -> None:
    source, destination = two_stores(S3Bucket(versitygw.endpoint))
    within = asked(source, destination)
    for key in ("new", "taken"):
        source.write(key, LARGE)
    destination.write("taken", b"theirs")
    sent: list[int] = []

    copier = ObjectCopier(ReadOnlyStore(source), destination, sent.append, within.copy)
    rows = [copier.copy(stored) for stored in list(source.list())]

    assert [(row.key, row.result) for row in rows if row is not None] == [("new", "copied"), ("taken", "exists")]
    assert contents(destination) == {"new": LARGE, "taken": b"theirs"}
    assert sent[:2] == [len(LARGE)] * 2, "no byte of the first one passed through here"
    assert not within.is_refused
    assert list(destination.multipart_uploads()) == []


def test_servers_that_would_copy_over_what_is_there_are_found_out(
    versitygw: ObjectServer, moto: ObjectServer, fake_gcs_server: ObjectServer
) -> None:
    for bucket, most in (
        (S3Bucket(versitygw.endpoint), UPLOAD_PART_BYTES),
        (S3Bucket(moto.endpoint), None),
        (GcsBucket(fake_gcs_server.endpoint), None),
    ):
        source, destination = two_stores(bucket)

        within = server_side_copies(source, destination)

        assert (within and within.smallest) == most, bucket.options
        assert list(destination.list()) == [], "nothing is left of the trial"


class TestCopiesInParts(ServerSideCopiesContract):
    """Of a server that completes them only where nothing is."""

    @pytest.fixture
    def of_one_service(self, versitygw: ObjectServer) -> tuple[ObjectStore, CopiesFromOthers]:
        within = asked(*two_stores(S3Bucket(versitygw.endpoint)))
        return within.source, within.destination


def test_a_service_that_refuses_is_not_asked_again_and_bytes_pass_through_here(versitygw: ObjectServer) -> None:
    denied = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
    unknown = Answer(501, b"<Error><Code>NotImplemented</Code></Error>")
    for refusal in (denied, unknown):
        with FaultyProxy(versitygw.endpoint) as proxy:
            source, destination = two_stores(S3Bucket(proxy.endpoint))
            within = asked(source, destination)
            stored = [source.write(key, LARGE) for key in ("a", "b")]
            proxy.faults += [refusal] * 8
            proxy.applies = lambda request: "x-amz-copy-source" in request.headers

            rows = [copied(source, destination, one, within.copy) for one in stored]

            assert {row.result for row in rows} == {"copied"}
            assert within.is_refused
            assert contents(destination) == {"a": LARGE, "b": LARGE}
            assert list(destination.multipart_uploads()) == []


def test_a_copy_whose_answer_is_lost_is_found_to_be_done(versitygw: ObjectServer) -> None:
    source, destination = two_stores(S3Bucket(versitygw.endpoint))
    within = asked(source, destination)
    stored = source.write("a", LARGE)

    def lost(one: StoredObject) -> None:
        assert within.copy(one) is not None

    assert copied(source, destination, stored, lost).result == "copied"
    assert contents(destination) == {"a": LARGE}


def test_a_service_that_makes_other_bytes_is_found_out() -> None:
    source, destination = MemoryStore(), MemoryStore()
    stored = source.put("a", b"1234")
    vanished = stored._replace(key="gone")

    assert copied(source, destination, stored, lambda _: destination.put("a", b"1235")).result == "failed"
    assert copied(source, destination, stored, lambda one: one).result == "failed"
    assert copied(source, destination, vanished, lambda _: destination.put("gone", b"1234")).result == "changed"


def test_stores_of_two_services_are_not_asked(versitygw: ObjectServer, moto: ObjectServer) -> None:
    source, _ = two_stores(S3Bucket(versitygw.endpoint))
    for destination in (two_stores(S3Bucket(moto.endpoint))[1], MemoryStore()):
        assert server_side_copies(source, destination) is None
