"""What is current of all tables, as one small object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self

from tieredctl.errors import ErrorCode, TieredctlError

_PIPELINE, _BACKFILL, _LEDGER = "PipelineManifest", "BackfillManifest", "LedgerManifest"
_API_VERSION = "tieredctl/v1"


class AnyManifest(Protocol):
    """A version of some tables, whoever writes them."""

    @property
    def version(self) -> int: ...
    @property
    def run_id(self) -> str: ...
    @property
    def parent_run_id(self) -> str: ...
    @property
    def tables(self) -> Mapping[str, State]: ...

    def to_bytes(self) -> bytes: ...
    @classmethod
    def read(cls, data: bytes, name: str) -> Self: ...


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    """Its key, below the folder of all tables."""
    rows: int
    bytes: int
    day: str | None = None
    """YYYY-MM-DD, in tables by day."""
    is_compacted: bool = False
    """Whether it has what several files of its day had."""


@dataclass(frozen=True, slots=True)
class TableState:
    """The files of a table, and the run that changed them last, in ms since the epoch."""

    files: tuple[DataFile, ...] = ()
    run_id: str = ""
    changed_ms: int = 0
    schema_version: int = 1

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.files)

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.files)

    @property
    def file_count(self) -> int:
        return len(self.files)

    @property
    def first_day(self) -> str | None:
        return min((one.day for one in self.files if one.day is not None), default=None)

    @property
    def last_day(self) -> str | None:
        return max((one.day for one in self.files if one.day is not None), default=None)


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """A table of a catalog as a run left it, and the run that changed it last."""

    snapshot: str
    """What `VERSION AS OF` takes."""
    rows: int
    bytes: int
    file_count: int
    first_day: str | None
    last_day: str | None
    run_id: str
    changed_ms: int
    schema_version: int = 1


State = TableState | SnapshotState


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look saw of the sources: what has to differ for another one to find anything new."""

    store: str
    """The URL, without secrets."""
    layout: str
    cluster_id: str | None
    metadata_topic_id: str | None
    offsets: Mapping[str, tuple[int, int]]
    """The first offset that the log of each metadata partition held, and the one after the last, by its number."""
    level: str
    """How deep segments were verified."""
    listed_ms: int
    list_every_ms: int
    """Without news, the store is listed again after this time."""
    keep_events_ms: int
    complete: bool
    """Whether everything that was asked for was looked at."""
    exit_code: int
    """The one of the look, by its findings."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A version of all tables."""

    version: int
    run_id: str
    parent_run_id: str
    """The run that wrote the version before; empty for the first."""
    looked_ms: int
    """When a run saw that this is how things are."""
    looked: Looked
    tables: Mapping[str, State] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """As JSON."""
        return _written(_PIPELINE, self)

    @classmethod
    def read(cls, data: bytes, name: str) -> Manifest:
        """What `to_bytes` wrote. Raises TieredctlError `undecodable` for anything else."""
        with _decoding(name):
            document = _document(data, _PIPELINE)
            looked = document.pop("looked")
            looked["offsets"] = {number: tuple(offsets) for number, offsets in looked["offsets"].items()}
            return cls(**document, looked=Looked(**looked))


@dataclass(frozen=True, slots=True)
class BackfillManifest:
    """A version of the tables of a topic's history."""

    version: int
    run_id: str
    parent_run_id: str
    topic: str
    topic_id: str
    isolation: str
    next_offsets: Mapping[str, int]
    """The offset of each partition, by its number, up to which (exclusive) all was read."""
    lost_offsets: int
    """How many of these offsets could not be read."""
    exit_code: int
    """The worst one of what could not be read."""
    tables: Mapping[str, State] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """As JSON."""
        return _written(_BACKFILL, self)

    @classmethod
    def read(cls, data: bytes, name: str) -> BackfillManifest:
        """What `to_bytes` wrote. Raises TieredctlError `undecodable` for anything else."""
        with _decoding(name):
            return cls(**_document(data, _BACKFILL))


@dataclass(frozen=True, slots=True)
class LedgerManifest:
    """A version of the verification ledger."""

    version: int
    run_id: str
    parent_run_id: str
    at_work: Mapping[str, int] = field(default_factory=dict)
    """The runs that may enter more, with the time in ms at which each last did."""
    imported: tuple[str, ...] = ()
    """The ledgers in Spark's own folders that were taken over, by the run id that their rows got."""
    tables: Mapping[str, TableState] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """As JSON."""
        return _written(_LEDGER, self)

    @classmethod
    def read(cls, data: bytes, name: str) -> LedgerManifest:
        """What `to_bytes` wrote. Raises TieredctlError `undecodable` for anything else."""
        with _decoding(name):
            document = _document(data, _LEDGER)
            return cls(**{**document, "imported": tuple(document["imported"])})


def tables_in(data: bytes, name: str) -> Mapping[str, State]:
    """The tables of a manifest of any kind. Raises TieredctlError `undecodable` for anything else."""
    with _decoding(name):
        found: Mapping[str, State] = _document(data, _PIPELINE, _BACKFILL, _LEDGER)["tables"]
        return found


def _written(kind: str, manifest: Manifest | BackfillManifest | LedgerManifest) -> bytes:
    return json.dumps({"kind": kind, "apiVersion": _API_VERSION, **asdict(manifest)}).encode()


def _document(data: bytes, *kinds: str) -> dict[str, Any]:
    """The fields of a manifest."""
    document = json.loads(data)
    if document.pop("kind") not in kinds or document.pop("apiVersion") != _API_VERSION:
        raise ValueError
    return {**document, "tables": {name: _state(state) for name, state in document["tables"].items()}}


def _state(document: Mapping[str, Any]) -> State:
    if "snapshot" in document:
        return SnapshotState(**document)
    return TableState(**{**document, "files": tuple(DataFile(**one) for one in document["files"])})


@contextmanager
def _decoding(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        hint = "These tables were written by another program, or a later tieredctl; name another folder."
        message = f"{name} is not a manifest that this tieredctl reads."
        raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=hint) from None
