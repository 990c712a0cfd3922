"""A store that stops answering ends `verify` after some segments, and all that were not looked at are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT, Cluster, EventsInMemory, captured, exit_code
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.object_servers import ObjectServer
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import MOST_SEGMENTS_IN_A_ROW, LocalEngine, Silence
from tieredctl.ops.verification.object_check import unreferenced
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.verify import still_there, verify
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.retrying import RetryingStore, RetryPolicy
from tieredctl.storage.s3 import S3Store
from tieredctl.storage.s3_connection import S3Connection

ROOT = "silent/"
OBJECTS = f"/{BUCKET}/{ROOT}"
LISTING = "list-type=2"
MOST_REQUESTS = 400
"""For less than half of the segments there are."""


@pytest.fixture(scope="module")
def cluster(captures: Path) -> Cluster:
    return captured(captures / "kafka-4.3.1")


@dataclass(frozen=True)
class Bucket:
    """The cluster's, behind a proxy."""

    cluster: Cluster
    proxy: FaultyProxy

    @property
    def store(self) -> RetryingStore:
        connection = S3Connection(self.proxy.endpoint, "us-east-1", addressing_style="path")
        store = S3Store(BucketAddress("s3", BUCKET, ROOT), connection)
        return RetryingStore(store, RetryPolicy(attempts=2, sleep=lambda _: None))

    def verify(self, level: Level) -> Verification:
        options = VerifyOptions(level, Clock(self.cluster.last_event_ms, 1 << 40), local_logs=self.cluster.local_logs)
        return verify(EventStream(EventsInMemory(self.cluster.events)), self.store, LAYOUT, LocalEngine(), options)

    def fail(self, status: int, path: str = OBJECTS, first: int = 1) -> None:
        """From the `first` request of either kind on."""

        def refuse(_request: Request, _server: Server) -> Reply:
            return Reply(status, [], b"")

        self.proxy.rules += [Rule(refuse, method, path, first=first) for method in ("GET", "HEAD")]


@pytest.fixture
def bucket(moto: ObjectServer, cluster: Cluster) -> Iterator[Bucket]:
    filled = S3Bucket(moto.endpoint)
    if not filled.names(ROOT):
        for key, data in cluster.objects.items():
            filled.put(ROOT + key, data)
    with FaultyProxy(moto.endpoint) as proxy:
        yield Bucket(cluster, proxy)


def test_a_store_that_answers_is_verified_whole(bucket: Bucket) -> None:
    result = bucket.verify(Level.HEADERS)

    assert (result.segments, result.not_looked_at) == (len(bucket.cluster.finished()), 0)
    assert result.complete


@pytest.mark.parametrize("status", [503, 500])
@pytest.mark.parametrize("first", [1, 100])
@pytest.mark.parametrize("level", [Level.HEADERS, Level.FULL])
def test_one_that_stops_answering_is_not_asked_for_every_segment(
    bucket: Bucket, level: Level, first: int, status: int
) -> None:
    bucket.fail(status, first=first)

    result = bucket.verify(level)

    assert result.not_looked_at > len(bucket.cluster.finished()) // 2
    assert result.segments + result.not_looked_at == len(bucket.cluster.finished())
    assert len(bucket.proxy.requests) < MOST_REQUESTS
    assert (exit_code(result.findings), result.summary()["complete"]) == (ExitCode.INCOMPLETE, False)
    assert {finding.code for finding in result.findings} == {"unreadable"}
    (left,) = [finding for finding in result.findings if "segments" in finding.evidence]
    assert left.evidence["segments"] == result.not_looked_at
    assert f"{result.not_looked_at} segments were not checked, after 16 in a row that could not be read" in left.message
    assert left.remedy == Finding.read(left.document()).remedy == "tieredctl remote ls …"


def cut_off_after_some_objects(request: Request, server: Server) -> Reply:
    """A first page of a listing that says that there is more."""
    reply = server(request)
    first, *_ = reply.body.partition(b"<Contents>")
    contents = reply.body.split(b"<Contents>")[1:4]
    more = b"<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>"
    first = first.replace(b"<IsTruncated>false</IsTruncated>", b"")
    last = contents[-1].partition(b"</Contents>")[0] + b"</Contents>"
    return Reply(200, [], first + b"".join(b"<Contents>" + one for one in [*contents[:-1], last]) + more)


@pytest.mark.parametrize("level", list(Level))
def test_what_was_not_listed_is_neither_missing_nor_asked_for_for_ever(bucket: Bucket, level: Level) -> None:
    bucket.proxy.rules.append(Rule(cut_off_after_some_objects, "GET", LISTING, most=1))
    bucket.fail(503, LISTING)
    bucket.fail(503)

    result = bucket.verify(level)

    assert result.not_looked_at > len(bucket.cluster.finished()) // 2
    assert len(bucket.proxy.requests) < MOST_REQUESTS
    assert exit_code(result.findings) is ExitCode.INCOMPLETE
    assert {finding.code for finding in result.findings} == {"unreadable"}


def test_failures_between_answers_do_not_add_up() -> None:
    silence, silent = Silence(), TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")

    for _ in range(10):
        for _ in range(MOST_SEGMENTS_IN_A_ROW - 1):
            silence.note(silent)
        silence.note(None)

    assert not silence.is_final


def test_a_refusal_may_be_of_one_prefix_alone() -> None:
    silence = Silence()

    for _ in range(10 * MOST_SEGMENTS_IN_A_ROW):
        silence.note(TieredctlError(ErrorCode.STORE_FORBIDDEN, "It may not be used this way."))

    assert not silence.is_final


def test_nothing_is_called_unreferenced_that_could_not_be_looked_at_again(bucket: Bucket) -> None:
    keys = sorted(bucket.cluster.objects)[:20]
    found = [unreferenced(StoredObject(key, 1, 0, ""), LAYOUT.explain(key)) for key in keys]
    bucket.fail(503)

    (left,) = still_there(found, bucket.store)

    assert (left.code, left.kind.incomplete) == ("unreadable", True)
    assert "it is unknown whether 20 objects that no segment explains are still there" in left.message
