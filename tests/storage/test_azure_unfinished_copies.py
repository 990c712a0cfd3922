"""Copies that Azure does not finish: no empty blob stays under their keys, which may be a segment's own.

Azurite copies at once and never reports a copy as pending. The proxy does, and makes the empty blob that Azure makes
before it copies; everything that is then done to that blob, conditions included, is Azurite's.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256

import pytest

from tests.refusals import refused_with
from tests.rigs.faulty_proxy import FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.object_servers import ObjectServer
from tests.storage.test_azure_store import AzurePlace, behind
from tieredctl.errors import TieredctlError
from tieredctl.model.removal import QuarantinedCopy, Receipt, ReceiptStep
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.orphan_removal.preparation import Evidence
from tieredctl.ops.orphan_removal.putting_back import put_back
from tieredctl.ports.object_store import Capability
from tieredctl.storage.azure import AzureStore

COPY_ID = "7"
PLAN_ID = "11112222333344445555666677778888"


@dataclass
class UnfinishedCopies:
    """What Azure says of a copy to `b`, and does."""

    place: AzurePlace
    status: str = "pending"
    is_aborted: bool = True
    """Whether it can be aborted."""
    before_abortion: Callable[[], None] = lambda: None
    before_deletion: Callable[[], None] = lambda: None
    """What others do meanwhile."""
    refuses_deletion: bool = False
    copy_id: str = COPY_ID
    """Of the copy that the blob was written by last."""

    @contextmanager
    def store(self) -> Iterator[tuple[AzureStore, FaultyProxy]]:
        rules = (
            Rule(self._begin, "PUT", header="x-ms-copy-source"),
            Rule(self._abort, "PUT", "comp=copy"),
            Rule(self._describe, "HEAD", f"{self.place.root}b"),
            Rule(self._delete, "POST", "comp=batch"),
        )
        with behind(self.place, *rules) as proxied:
            yield proxied

    def keys(self) -> list[str]:
        return [stored.key for stored in self.place.store.list()]

    def _begin(self, _request: Request, _server: Server) -> Reply:
        self.place.container.put(self.place.root + "b", b"")
        return Reply(202, [("x-ms-copy-id", COPY_ID), ("x-ms-copy-status", "pending")], b"")

    def _abort(self, _request: Request, _server: Server) -> Reply:
        self.before_abortion()
        if not self.is_aborted:
            return Reply(409, [("x-ms-error-code", "NoPendingCopyOperation")], b"")
        self.status = "aborted"
        return Reply(204, [], b"")

    def _describe(self, request: Request, server: Server) -> Reply:
        status, headers, body = server(request)
        if status != 200:
            return Reply(status, headers, body)
        return Reply(status, [*headers, ("x-ms-copy-id", self.copy_id), ("x-ms-copy-status", self.status)], body)

    def _delete(self, request: Request, server: Server) -> Reply:
        self.before_deletion()
        if self.refuses_deletion:
            return Reply(403, [("x-ms-error-code", "AuthorizationPermissionMismatch")], b"")
        return server(request)


@pytest.fixture
def copies(azurite: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> UnfinishedCopies:
    monkeypatch.setattr("tieredctl.storage.azure._COPY_SECONDS", 0)
    place = AzurePlace(azurite)
    place.put("a")
    return UnfinishedCopies(place)


def test_a_copy_that_takes_too_long_is_aborted_and_leaves_nothing(copies: UnfinishedCopies) -> None:
    with copies.store() as (store, proxy), refused_with("store-unreachable"):
        store.copy(copies.place.head("a"), "b")

    aborted = [one for one in proxy.requests if one.path.partition("?")[2] == f"comp=copy&copyid={COPY_ID}"]
    assert [one.method for one in aborted] == ["PUT"]
    assert copies.keys() == ["a"]


@pytest.mark.parametrize("status", ["failed", "aborted"])
def test_a_copy_that_azure_gives_up_leaves_nothing(
    copies: UnfinishedCopies, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setattr("tieredctl.storage.azure._COPY_SECONDS", 60)
    copies.status, copies.is_aborted = status, False

    with copies.store() as (store, _), refused_with("unreadable"):
        store.copy(copies.place.head("a"), "b")

    assert copies.keys() == ["a"]


def test_an_interrupted_wait_leaves_nothing(copies: UnfinishedCopies, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tieredctl.storage.azure._COPY_SECONDS", 60)
    monkeypatch.setattr("tieredctl.storage.azure.pause", interrupted)

    with copies.store() as (store, _), pytest.raises(KeyboardInterrupt):
        store.copy(copies.place.head("a"), "b")

    assert copies.keys() == ["a"]


def test_what_others_write_to_the_key_meanwhile_stays(copies: UnfinishedCopies) -> None:
    copies.before_deletion = lambda: copies.place.container.put(copies.place.root + "b", b"another's")

    with copies.store() as (store, _), refused_with("store-unreachable"):
        store.copy(copies.place.head("a"), "b")

    assert copies.place.store.read("b") == b"another's"


@pytest.mark.parametrize(("status", "copy_id"), [("success", COPY_ID), ("aborted", COPY_ID), ("aborted", "8")])
def test_what_is_not_an_empty_blob_of_this_copy_stays(copies: UnfinishedCopies, status: str, copy_id: str) -> None:
    """It ended just now, or holds bytes, or is another copy's."""

    def go_on() -> None:
        copies.place.container.put(copies.place.root + "b", b"bytes")
        copies.status, copies.copy_id, copies.is_aborted = status, copy_id, False

    copies.before_abortion = go_on

    with copies.store() as (store, _), refused_with("store-unreachable"):
        store.copy(copies.place.head("a"), "b")

    assert copies.place.store.read("b") == b"bytes"


def test_what_could_not_be_put_back_is_put_back_by_the_next_run(copies: UnfinishedCopies) -> None:
    (removed,) = copies.place.put("b")
    copy = copies.place.store.copy(removed, quarantine_key("cluster", PLAN_ID, removed))
    assert copy is not None
    copies.place.store.delete([removed])
    kept = QuarantinedCopy(copy.key, copy.size, copy.last_modified_ms, copy.version)
    digest = b64encode(sha256(b"b").digest()).decode()
    receipt = Receipt(ReceiptStep.COPIED, "b", 0, 1, kept, checksums={"sha256": digest})

    def put_back_by(store: AzureStore) -> ReceiptStep:
        return put_back(store, receipt, 0, Evidence(store, None, PLAN_ID, receipts_in_store=False)).receipt.step

    with copies.store() as (store, _):
        failed = put_back_by(store)
    again = put_back_by(copies.place.store)

    assert (failed, again) == (ReceiptStep.FAILED, ReceiptStep.RESTORED)
    assert copies.place.store.read("b") == b"b"


def test_where_it_cannot_be_deleted_that_is_told(copies: UnfinishedCopies) -> None:
    told = []
    for change in ("refused", "without conditions", "not aborted"):
        copies.status, copies.refuses_deletion, copies.is_aborted = (
            "pending",
            change == "refused",
            change != "not aborted",
        )
        with copies.store() as (store, _):
            lacking = {Capability.CONDITIONAL_DELETE} if change == "without conditions" else set()
            with pytest.raises(TieredctlError) as raised:
                replace(store, capabilities=store.capabilities - lacking).copy(copies.place.head("a"), "b")
        told.append((raised.value.code, "empty blob" in raised.value.message))
        assert copies.keys() == ["a", "b"], change
    assert told == [("store-unreachable", True)] * 3
