"""A folder of HDFS as a store, at Hadoop's own mini cluster (`hdfs_cluster`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pytest
from tieredctl_hdfs.connection import TOKEN_VARIABLE
from tieredctl_hdfs.kinds import HDFS, SWEBHDFS, WEBHDFS

from tests.refusals import refused_with
from tests.rigs.faulty_proxy import Answer, Fault, FaultyProxy, Reply, Request, Rule, Server, Trouble
from tests.rigs.hdfs import SUPERUSER, HdfsCluster
from tests.rigs.ports import free_ports
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import DeletionOutcome, ObjectStore, StoredObject, WritableObjectStore
from tieredctl.storage.registry import open_store, open_writable_store
from tieredctl.storage.retrying import RetryingStore, RetryPolicy
from tieredctl.testing.store_changes import ODD
from tieredctl.testing.store_reading import keys_of
from tieredctl.testing.stores import StoreContract

NewUrl = Callable[[], str]


class TestHdfs(StoreContract):
    @pytest.fixture
    def options(self, reached: Mapping[str, str]) -> Mapping[str, str]:
        return reached

    @pytest.fixture
    def odd_keys(self) -> Collection[str]:
        return [key.replace(":", "") for key in ODD]

    @pytest.fixture
    def impossible_keys(self) -> Collection[str]:
        return ("", "n" * 256, "a//b", "a/../b", "a:b", "\ud800")

    @pytest.fixture
    def largest_batch(self) -> int:
        return 30  # filling takes four requests an object


@pytest.fixture
def filled(new_url: NewUrl, reached: Mapping[str, str]) -> WritableObjectStore:
    """A store with two objects,"""
    store = open_writable_store(new_url(), reached)
    for key in ("a/1", "a/2"):
        store.write(key, key.encode())
    return store


def reached_by(filled: WritableObjectStore, namenode: str) -> ObjectStore:
    """read by way of one namenode, or of a proxy in front of it."""
    store = HDFS.open(filled.url.partition(":")[2], {"namenode": namenode, "user": "kafka"}, frozenset())
    return RetryingStore(store, RetryPolicy(sleep=lambda _seconds: None))


def test_a_namenode_on_standby_alone_answers_nothing(filled: WritableObjectStore, hdfs_cluster: HdfsCluster) -> None:
    store = reached_by(filled, hdfs_cluster.standby)

    for ask in (lambda: list(store.list()), lambda: store.head("a/1"), lambda: store.read("a/1")):
        with refused_with("store-unreachable"):
            ask()


def test_a_store_goes_on_when_the_other_namenode_becomes_active(
    filled: WritableObjectStore, hdfs_cluster: HdfsCluster
) -> None:
    assert filled.read("a/1") == b"a/1"

    hdfs_cluster.fail_over()

    assert (keys_of(filled), filled.read("a/1")) == (["a/1", "a/2"], b"a/1")
    assert filled.write("a/3", b"since") == filled.head("a/3")


def test_a_damaged_block_concerns_its_file_alone(filled: WritableObjectStore, hdfs_cluster: HdfsCluster) -> None:
    filled.write("damaged", bytes(12_345))
    (block,) = hdfs_cluster.blocks(12_345)
    data = bytearray(block.read_bytes())
    data[-1] ^= 1
    block.write_bytes(data)

    with refused_with("unreadable"):
        filled.read("damaged")
    assert filled.read("a/1") == b"a/1"


def test_a_namenode_that_is_down_is_passed_over(filled: WritableObjectStore, hdfs_cluster: HdfsCluster) -> None:
    (nobody,) = free_ports(1)

    store = open_store(filled.url, {"namenode": f"http://127.0.0.1:{nobody},{hdfs_cluster.active}"})

    assert keys_of(store) == ["a/1", "a/2"]


def test_what_may_not_be_seen_is_not_called_missing(
    filled: WritableObjectStore, hdfs_cluster: HdfsCluster, reached: Mapping[str, str]
) -> None:
    folder = filled.url.partition(":8020")[2] + "/a"
    hdfs_cluster.ask("PUT", folder, "SETPERMISSION", SUPERUSER, permission="0")
    store = open_store(filled.url, reached)

    for ask in (
        lambda: list(store.list()),
        lambda: store.head("a/1"),
        lambda: store.head("a/3"),
        lambda: store.read("a/1"),
    ):
        with refused_with("store-forbidden"):
            ask()
    (deletion,) = filled.delete([StoredObject("a/1", 3, 0, "")])
    assert (deletion.outcome, deletion.error and deletion.error.code) == (DeletionOutcome.FAILED, "store-forbidden")
    hdfs_cluster.ask("PUT", folder, "SETPERMISSION", SUPERUSER, permission="755")


def test_a_folder_that_is_not_there_does_not_look_empty(new_url: NewUrl, reached: Mapping[str, str]) -> None:
    store = open_writable_store(new_url() + "/gone", reached)

    for ask in (
        lambda: list(store.list()),
        lambda: store.head("a"),
        lambda: store.read("a"),
        lambda: list(store.stream("a")),
    ):
        with refused_with("path-missing"):
            ask()


def test_what_is_longer_than_one_request_comes_back(filled: WritableObjectStore) -> None:
    data = bytes(range(256)) * (9 << 12)

    filled.write("long", data)

    assert b"".join(filled.stream("long")) == filled.read("long") == data
    assert filled.checksums(filled.head("long"))  # type: ignore[arg-type]


def test_names_that_differ_in_how_characters_are_composed_are_of_two_files(
    new_url: NewUrl, reached: Mapping[str, str]
) -> None:
    """Namenodes compose them where they send whoever wants bytes."""
    store = open_writable_store(f"{new_url()}/e\u0301", reached)
    written = {key: f"{key} has these".encode("utf-16") for key in ("\u00e9/1", "e\u0301/1", "\u212b", "\u00c5")}

    for key, data in written.items():
        store.write(key, data)

    assert {stored.key: store.read(stored.key) for stored in store.list()} == written


def test_what_is_still_being_written_is_no_object(filled: WritableObjectStore) -> None:
    filled.write("a/.tieredctl-unfinished-1", b"")

    assert keys_of(filled) == ["a/1", "a/2"]


def test_a_request_without_an_answer_is_made_again(filled: WritableObjectStore, hdfs_cluster: HdfsCluster) -> None:
    faults: list[Fault] = [Trouble.NOT_DELIVERED, Trouble.ANSWER_CUT, Answer(503), Answer(500), Trouble.ANSWER_LOST]
    with FaultyProxy(hdfs_cluster.active, faults=faults) as proxy:
        store = reached_by(filled, proxy.endpoint)

        assert keys_of(store) == ["a/1", "a/2"]
        assert store.read("a/2") == b"a/2"


def test_a_datanode_that_is_down_is_excluded(filled: WritableObjectStore, hdfs_cluster: HdfsCluster) -> None:
    (nobody,) = free_ports(1)

    def to_nobody(_request: Request, _server: Server) -> Reply:
        return Reply(307, [("Location", f"http://127.0.0.1:{nobody}/webhdfs/v1/")], b"")

    with FaultyProxy(hdfs_cluster.active, rules=[Rule(to_nobody, "GET", "op=OPEN", most=1)]) as proxy:
        assert reached_by(filled, proxy.endpoint).read("a/1") == b"a/1"

        assert [f"excludedatanodes=127.0.0.1%3A{nobody}" in one.path for one in proxy.requests] == [False, True]


def test_the_answer_of_another_server_is_neither_empty_nor_missing(
    filled: WritableObjectStore, hdfs_cluster: HdfsCluster
) -> None:
    odd = b'{"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": [%s]}}, "remainingEntries": 0}}'
    odd_children = [(200, odd % child) for child in (b"1", b"{}", b'{"pathSuffix": 1, "type": "FILE"}')]
    for status, body in ((404, b"nginx"), (200, b"<html>"), (200, b"{}"), (200, b"[]"), *odd_children):
        with FaultyProxy(hdfs_cluster.active, faults=[Answer(status, body)] * 2) as proxy:
            store = reached_by(filled, proxy.endpoint)
            with refused_with("unreadable"):
                list(store.list())
            with refused_with("unreadable"):
                store.head("a/1")


def test_a_listing_whose_pages_never_end_is_refused(filled: WritableObjectStore, hdfs_cluster: HdfsCluster) -> None:
    def again(request: Request, server: Server) -> Reply:
        reply = server(request._replace(path=request.path.partition("&startafter")[0]))
        return reply._replace(body=reply.body.replace(b'"remainingEntries":0', b'"remainingEntries":1'))

    rules = [Rule(again, "GET", "LISTSTATUS_BATCH")]
    with FaultyProxy(hdfs_cluster.active, rules=rules) as proxy, refused_with("unreadable"):
        list(reached_by(filled, proxy.endpoint).list())


def test_an_object_that_was_not_renamed_is_not_written(filled: WritableObjectStore, hdfs_cluster: HdfsCluster) -> None:
    def renaming(status: int, body: bytes) -> list[Rule]:
        return [Rule(lambda _request, _server: Reply(status, [], body), "PUT", "op=RENAME")]

    said = {}
    for status, body in (
        (200, b'{"boolean": false}'),
        (200, b""),
        (403, b'{"RemoteException": {"exception": "IOException"}}'),
        (400, b'{"RemoteException": {"exception": "InvalidPathException"}}'),
    ):
        with FaultyProxy(hdfs_cluster.active, rules=renaming(status, body)) as proxy:
            store = open_writable_store(filled.url, {"namenode": proxy.endpoint, "user": "kafka"})
            with pytest.raises(TieredctlError) as raised:
                store.write("a/1", b"another")
        assert raised.value.code == "unwritable", body
        said[body] = str(raised.value)

    assert ["cannot hold" in one for one in said.values()] == [False, False, False, True]
    assert "(IOException)" in [*said.values()][2]
    assert [(one.key, filled.read(one.key)) for one in filled.list()] == [("a/1", b"a/1"), ("a/2", b"a/2")]


def test_a_name_that_is_longer_than_hdfs_takes_by_default_is_not_missing(
    filled: WritableObjectStore, hdfs_cluster: HdfsCluster
) -> None:
    folder, long = filled.url.partition(":8020")[2], "b/" + "n" * 280
    hdfs_cluster.ask("PUT", f"{folder}/b", "MKDIRS")
    hdfs_cluster.ask("PUT", f"{folder}/a/1", "RENAME", destination=f"{folder}/{long}")

    assert (filled.head(long), filled.read(long)) == (next(iter(filled.list("b/"))), b"a/1")


def test_a_token_is_sent_instead_of_a_name(
    filled: WritableObjectStore, hdfs_cluster: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "not-to-be-seen")
    with FaultyProxy(hdfs_cluster.active, faults=[Answer(401)]) as proxy, pytest.raises(TieredctlError) as raised:
        reached_by(filled, proxy.endpoint).head("a/1")

    (request,) = proxy.requests
    assert "delegation=not-to-be-seen" in request.path
    assert "user.name" not in request.path
    assert raised.value.code == "no-credentials"
    assert "not-to-be-seen" not in str(raised.value)


def test_only_urls_and_options_that_name_a_server_are_taken() -> None:
    for url in (
        "hdfs://",
        "hdfs:/a",
        "hdfs://user:secret@host/a",
        "hdfs://host/../a",
        "hdfs://host:port/a",
        "hdfs://host//a",
    ):
        with pytest.raises(TieredctlError) as raised:
            open_store(url, {})
        assert (raised.value.code, "secret" in str(raised.value)) == ("no-store", False), url
    for namenode in ("host:9870", "http://", "http://user:secret@host", "ftp://host", "http://a,", "http://a:0"):
        with pytest.raises(TieredctlError) as raised:
            open_store("hdfs://host/a", {"namenode": namenode})
        assert (raised.value.code, "secret" in str(raised.value)) == ("usage", False), namenode


def test_each_scheme_has_its_own_port() -> None:
    opened = (
        (HDFS, "//nn:8020/a", ("http://nn:9870",)),
        (WEBHDFS, "//nn:50070", ("http://nn:50070",)),
        (WEBHDFS, "//nn/a/", ("http://nn:9870",)),
        (SWEBHDFS, "//nn/a", ("https://nn:9871",)),
    )
    for kind, rest, namenodes in opened:
        store = kind.open(rest, {}, frozenset())
        assert store.connection.namenodes == namenodes  # type: ignore[attr-defined]
        assert store.url == f"{kind.scheme}:{rest.rstrip('/')}"
