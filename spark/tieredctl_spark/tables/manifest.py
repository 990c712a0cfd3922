"""What is current of all tables, as one small object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError

_KIND, _API_VERSION = "PipelineManifest", "tieredctl/v1"


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
    """Of each metadata partition, by its number, the first offset that its log held and the one after the last."""
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
        return json.dumps({"kind": _KIND, "apiVersion": _API_VERSION, **asdict(self)}).encode()

    @classmethod
    def read(cls, data: bytes, name: str) -> Manifest:
        """What `to_bytes` wrote. Raises TieredctlError `undecodable` for anything else."""
        try:
            document = json.loads(data)
            if (document["kind"], document["apiVersion"]) != (_KIND, _API_VERSION):
                raise ValueError
            return _read(document)
        except (ValueError, KeyError, TypeError, AttributeError):
            hint = "These tables were written by another program, or a later tieredctl; name another folder."
            message = f"{name} is not a manifest that this tieredctl reads."
            raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=hint) from None


def _read(document: Mapping[str, Any]) -> Manifest:
    looked = dict(document["looked"])
    looked["offsets"] = {number: tuple(offsets) for number, offsets in looked["offsets"].items()}
    tables = {name: _state(state) for name, state in document["tables"].items()}
    named = {name: document[name] for name in ("version", "run_id", "parent_run_id", "looked_ms")}
    return Manifest(**named, looked=Looked(**looked), tables=tables)


def _state(document: Mapping[str, Any]) -> State:
    if "snapshot" in document:
        return SnapshotState(**document)
    return TableState(**{**document, "files": tuple(DataFile(**one) for one in document["files"])})
