"""Where the copy of a removed object is kept, and what its key says: the cluster, the plan that removed it, and the
original. The quarantine alone is enough to undo a removal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote

from tieredctl.model.removal import QuarantinedCopy, ReceiptsHeader
from tieredctl.ops.guards.own_objects import QUARANTINE
from tieredctl.ports.object_store import ObjectStore, StoredObject

_BY_CLUSTER = QUARANTINE + "clusters/"
_UNKNOWN_CLUSTER = "-"
_NO_VERSION = ""
_SUFFIX = re.compile(r"(?P<key>.+)~(?P<size>[0-9]{1,18})~(?P<time>-?[0-9]{1,18})~(?P<version>[^~/]*)", re.DOTALL)


class Original(Protocol):
    """An object as it was: size in bytes, time in ms since the epoch."""

    @property
    def key(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def last_modified_ms(self) -> int: ...
    @property
    def version(self) -> str | None: ...


class Quarantined(NamedTuple):
    """What the key of a copy says about its original. None for what the release that made it did not record."""

    plan_id: str
    key: str
    cluster_id: str | None = None
    size: int | None = None
    last_modified_ms: int | None = None
    version: str | None = None


def quarantine_key(cluster_id: str | None, plan_id: str, original: Original) -> str:
    """The key for the copy of an object that a plan removes; `cluster_id` is None if it is not known."""
    version = _quoted(original.version or _NO_VERSION)
    name = f"{original.key}~{original.size}~{original.last_modified_ms}~{version}"
    return f"{_BY_CLUSTER}{_quoted(cluster_id or _UNKNOWN_CLUSTER)}/{plan_id}/{name}"


def folders_of(cluster_id: str | None, plan_id: str) -> tuple[str, ...]:
    """The prefixes of the copies that a plan made, older releases' included; of any cluster if `cluster_id` is None."""
    of_clusters = _BY_CLUSTER if cluster_id is None else f"{_BY_CLUSTER}{_quoted(cluster_id)}/{plan_id}/"
    return of_clusters, f"{QUARANTINE}{plan_id}/"


def quarantined(key: str) -> Quarantined | None:
    """What a key below QUARANTINE is a copy of; None for what no plan put there."""
    if not key.startswith(_BY_CLUSTER):
        plan_id, slash, original = key.removeprefix(QUARANTINE).partition("/")
        return Quarantined(plan_id, original) if slash and original else None
    parts = key.removeprefix(_BY_CLUSTER).split("/", 2)
    match = _SUFFIX.fullmatch(parts[2]) if len(parts) == 3 else None
    if match is None:
        return None
    cluster_id = unquote(parts[0])
    return Quarantined(
        parts[1],
        match["key"],
        None if cluster_id == _UNKNOWN_CLUSTER else cluster_id,
        int(match["size"]),
        int(match["time"]),
        unquote(match["version"]) or None,
    )


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape").replace("~", "%7E")


def copies_in_quarantine(store: ObjectStore) -> Iterator[tuple[StoredObject, Quarantined]]:
    """All copies, each with what its key says, by ascending key. Streams."""
    return _copies_below(store, QUARANTINE)


def copies_by_plan(
    store: ObjectStore, cluster_id: str | None, plan_id: str
) -> Iterator[tuple[StoredObject, Quarantined]]:
    """The copies that a plan made; of any cluster if `cluster_id` is None. Streams."""
    for folder in folders_of(cluster_id, plan_id):
        for copy, original in _copies_below(store, folder):
            if original.plan_id == plan_id:
                yield copy, original


def copies_of(store: ObjectStore, plan: ReceiptsHeader) -> dict[str, list[QuarantinedCopy]]:
    """The copies that a plan made, by the keys of their originals. A copy whose size differs from its original's does
    not count."""
    copies: dict[str, list[QuarantinedCopy]] = {}
    for copy, original in copies_by_plan(store, plan.cluster_id or None, plan.plan_id):
        if original.size in (None, copy.size):
            kept = QuarantinedCopy(copy.key, copy.size, copy.last_modified_ms, copy.version)
            copies.setdefault(original.key, []).append(kept)
    return copies


def _copies_below(store: ObjectStore, folder: str) -> Iterator[tuple[StoredObject, Quarantined]]:
    for copy in store.list(folder):
        if original := quarantined(copy.key):
            yield copy, original
