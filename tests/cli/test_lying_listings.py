"""A store whose listings or answers are not so: nothing is called orphaned, missing or damaged by them alone, since all
of it is asked for by name before it is said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_bucket import STUCK, UNFINISHED, FilledBucket, broker_of_bucket, crashed_contents, store_words
from tests.cli.crashed_cluster import ENOUGH, NO_AGE, CrashedCluster, objects_in, planned_keys
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.lies import altered, half, left_out
from tests.rigs.object_servers import AZURE_ACCOUNT, ObjectServer

LISTINGS = {"s3": "list-type=2", "az": "comp=list"}
"""How each kind of server is asked for one."""
TOPIC = "slow7"
ROOT = "answers/"
SEGMENT_BYTES = re.compile(rb"<(Size|Content-Length)>(\d+)</")
SEGMENT_ID = re.compile(rb"(\d{20}-)([A-Za-z0-9_-]{4})")


def with_sizes_one_more(page: bytes) -> bytes:
    return SEGMENT_BYTES.sub(lambda size: b"<%s>%d</" % (size[1], int(size[2]) + 1), page)


def with_other_segments(page: bytes) -> bytes:
    """Keys of segments that never were, each a little later than the key that it stands for."""
    return SEGMENT_ID.sub(rb"\1zzzz", page)


def of_long_ago(page: bytes) -> bytes:
    return re.sub(rb"(<Last-?Modified>(?:\w+, \d+ \w+ )?)20\d\d", rb"\g<1>2001", page)


def said_not_to_be_there(_request: Request, _server: Server) -> Reply:
    return Reply(404, [], b"")


LISTING_LIES = {
    "logs are left out": left_out(".log"),
    "everything is left out": left_out(""),
    "sizes are one more": altered(with_sizes_one_more),
    "segments have other ids": altered(with_other_segments),
}


@pytest.fixture(scope="module", params=["moto", pytest.param("azurite", marks=pytest.mark.exhaustive)])
def server(request: pytest.FixtureRequest) -> ObjectServer:
    running: ObjectServer = request.getfixturevalue(request.param)
    return running


@pytest.fixture(scope="module")
def bucket(server: ObjectServer) -> Bucket:
    return (AzureContainer if AZURE_ACCOUNT in server.endpoint else S3Bucket)(server.endpoint)


@pytest.fixture
def listings(bucket: Bucket) -> str:
    return LISTINGS[bucket.scheme]


@pytest.fixture(scope="module")
def topic(bucket: Bucket, captures: Path) -> Bucket:
    """All that a sound cluster has of a topic in its store."""
    objects = objects_in(captures / "kafka-4.3.1/remote/kafka-tiered-storage")
    for key, data in objects.items():
        if key.startswith(TOPIC):
            bucket.put(ROOT + key, data)
    return bucket


@pytest.fixture
def proxy(server: ObjectServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.endpoint) as proxy:
        yield proxy


def through(bucket: Bucket, proxy: FaultyProxy) -> str:
    """The server's endpoint by way of the proxy."""
    return proxy.endpoint + urlsplit(bucket.options["endpoint"]).path


def words(bucket: Bucket, proxy: FaultyProxy) -> Sequence[str]:
    options = bucket.options | {"endpoint": through(bucket, proxy)}
    settings = [word for name, value in options.items() for word in ("--store-option", f"{name}={value}")]
    return ("--store", f"{bucket.scheme}://{BUCKET}/{ROOT}", *settings, "--layout", "local")


LEVELS = ["full", pytest.param("listing", marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("level", LEVELS)
def test_a_sound_topic_is_sound_whatever_its_listing_says(
    tieredctl: Tieredctl, captures: Path, topic: Bucket, proxy: FaultyProxy, listings: str, level: str
) -> None:
    where = (*words(topic, proxy), "--log-dir", captures / "kafka-4.3.1/data", "--topic", TOPIC)
    verify = ("verify", *where, "--older-than", "99999d", "--level", level, "-o", "json")
    for case, lie in LISTING_LIES.items():
        proxy.rules = [rule := Rule(lie, "GET", listings)]

        outcome = tieredctl(*verify)

        assert rule.met > 0, case
        assert (outcome.exit_code, [item["code"] for item in outcome.document()["items"]]) == (0, []), case
    # What is neither listed nor described, and can be read, is not missing.
    proxy.rules = [Rule(left_out(".log"), "GET", listings), Rule(said_not_to_be_there, "HEAD", ".log")]
    outcome = tieredctl(*verify)
    assert (outcome.exit_code, {item["code"] for item in outcome.document()["items"]}) == (5, {"unreadable"})


def test_what_is_cut_on_its_way_is_neither_written_nor_shown(
    tieredctl: Tieredctl, captures: Path, topic: Bucket, proxy: FaultyProxy, listings: str, tmp_path: Path
) -> None:
    log = next(key for key in topic.names(ROOT) if key.endswith(".log"))
    proxy.rules = [Rule(altered(half), "GET", f"/{BUCKET}/{ROOT}")]

    read = ("remote", "read", log.removesuffix(".log")[-22:], "--to", tmp_path / "part", *words(topic, proxy))
    outcome = tieredctl(*read, "--log-dir", captures / "kafka-4.3.1/data")

    assert (outcome.exit_code in (1, 4, 5), (tmp_path / "part").exists()) == (True, False)
    for change in (half, lambda page: SEGMENT_BYTES.sub(rb"<\1>-\2</", page)):
        proxy.rules = [Rule(altered(change), "GET", listings)]
        listed = tieredctl("remote", "ls", *words(topic, proxy), "-o", "json")
        assert (listed.exit_code, listed.out, "Traceback" in listed.err) == (1, "", False)


@pytest.fixture(scope="module")
def filled(bucket: Bucket, captures: Path) -> FilledBucket:
    filled = FilledBucket(bucket, crashed_contents(captures))
    filled.refill()
    return filled


@pytest.fixture
def cluster(
    tieredctl: Tieredctl, captures: Path, filled: FilledBucket, proxy: FaultyProxy, tmp_path: Path
) -> CrashedCluster:
    store = store_words(filled.bucket, through(filled.bucket, proxy))
    return CrashedCluster(tieredctl, broker_of_bucket(captures, filled.contents), tmp_path, store)


def orphaned(scanned: Outcome) -> set[str]:
    return {line["key"] for line in scanned.lines() if line["status"] == "orphan"}


def test_only_what_is_orphaned_is_scanned_and_planned_as_such(
    cluster: CrashedCluster, proxy: FaultyProxy, listings: str
) -> None:
    honest = orphaned(cluster.scan("-o", "jsonl"))
    assert len(honest) == STUCK + UNFINISHED
    for case, lie in LISTING_LIES.items():
        proxy.rules = [rule := Rule(lie, "GET", listings)]
        cluster.plan_file.unlink(missing_ok=True)

        scanned = cluster.scan("-o", "jsonl")
        planned = cluster.plan(*ENOUGH, *NO_AGE)

        assert rule.met > 0, case
        assert orphaned(scanned) <= honest, case
        assert scanned.exit_code in (0, 1, 2, 3, 5), case
        # No plan is written of nothing.
        is_none = planned.exit_code != 0 or not cluster.plan_file.exists()
        assert is_none or planned_keys(cluster.plan_file) <= honest, case


def test_what_a_listing_makes_older_than_it_is_is_not_an_orphan(
    cluster: CrashedCluster, proxy: FaultyProxy, listings: str
) -> None:
    words = ("--min-age", "1h", "-o", "jsonl")
    honest = orphaned(cluster.scan(*words))
    proxy.rules = [Rule(altered(of_long_ago), "GET", listings)]

    assert (honest, orphaned(cluster.scan(*words))) == (set(), set())
