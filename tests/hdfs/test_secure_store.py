"""A store in an HDFS that wants Kerberos and speaks TLS, reached with a delegation token (`SecureHdfsCluster`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tieredctl_hdfs.connection import TOKEN_VARIABLE

from tests.rigs.availability import rig_unavailable
from tests.rigs.prerequisites import RigMissing
from tests.rigs.secure_hdfs import SecureHdfsCluster
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import DeletionOutcome, WritableObjectStore
from tieredctl.storage.registry import open_writable_store

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def cluster() -> Iterator[SecureHdfsCluster]:
    try:
        with SecureHdfsCluster() as started:
            yield started
    except RigMissing as missing:
        rig_unavailable(str(missing))


def opened(cluster: SecureHdfsCluster, **options: str) -> WritableObjectStore:
    return open_writable_store("swebhdfs://localhost/stores/a", {"namenode": cluster.namenode, **options})


@pytest.fixture
def store(cluster: SecureHdfsCluster, monkeypatch: pytest.MonkeyPatch) -> WritableObjectStore:
    monkeypatch.setenv(TOKEN_VARIABLE, cluster.token)
    return opened(cluster, **{"ca-bundle": str(cluster.authority)})


def test_who_shows_a_token_reads_and_writes(store: WritableObjectStore) -> None:
    store.write("a/1", bytes(range(256)))

    (written,) = store.list()
    store.copy(written, "b/2")
    (deletion,) = store.delete([written])

    assert store.read("b/2", 3, 5) == b"\3\4"
    assert deletion.outcome is DeletionOutcome.GONE
    assert [one.key for one in store.list()] == ["b/2"]


def test_who_shows_none_or_a_wrong_one_is_told_in_one_sentence(
    store: WritableObjectStore, cluster: SecureHdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for token in ("", "x", cluster.token.replace(cluster.token[40:44], "AAAA")):
        monkeypatch.setenv(TOKEN_VARIABLE, token)

        with pytest.raises(TieredctlError) as refused:
            store.head("a/1")

        assert refused.value.code is ErrorCode.NO_CREDENTIALS, str(refused.value)
        assert TOKEN_VARIABLE in (refused.value.hint or "")


@pytest.mark.usefixtures("store")
def test_a_certificate_of_an_unknown_authority_is_not_trusted(cluster: SecureHdfsCluster) -> None:
    with pytest.raises(TieredctlError, match="is not trusted") as refused:
        opened(cluster).head("a/1")

    assert refused.value.code is ErrorCode.STORE_UNREACHABLE
