"""The manifest of a backup set: what it has of a cluster, with checksums, chained to the set before it; and the note of
with which set they begin since earlier ones were pruned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.ops.documents import Document

_KIND, _BEGINNING_KIND, _API_VERSION = "BackupManifest", "BackupBeginning", "tieredctl/v1"
_CHECKSUM = "sha256"
_OF_KIND = {"credential": "the password of", "delegation-token": "delegation token", "config": "the value of"}
CLUSTER_FILE, CLUSTER_DOCUMENT = "cluster.checkpoint", "cluster.json"
"""The cluster's metadata as a KRaft snapshot without its secrets, and the same for people."""
EVENTS_FILE = "remote-log-metadata.parquet"
"""What is new in `__remote_log_metadata`, as `metadata export` writes it."""
WITHOUT_SET = 0
"""The number of a manifest that no set has: what it says is derived from the keys of objects."""
OFFSETS_FILE, GROUPS_FILE, SETTINGS_FILE = "offsets.json", "groups.json", "settings.json"
SECRETS_FILE = "secrets.sealed"
"""The secrets that `CLUSTER_FILE` lacks, encrypted to the keys of `--recipient`."""
FILES = (CLUSTER_FILE, CLUSTER_DOCUMENT, SECRETS_FILE, EVENTS_FILE, OFFSETS_FILE, GROUPS_FILE, SETTINGS_FILE)
"""All that a set may have."""


class NamedSecret(NamedTuple):
    """A secret by the kind and the name of what it is of (`kraft.entries.Kind`); never its value."""

    kind: str
    subject: str

    @property
    def sentence(self) -> str:
        """What is to be given again where it does not come back."""
        return f"{_OF_KIND.get(self.kind, self.kind)} {self.subject}"


@dataclass(frozen=True, slots=True)
class SetFile:
    """A file of a set: its name, its size in bytes, and the SHA-256 of its bytes in hexadecimal digits."""

    name: str
    size: int
    sha256: str

    @classmethod
    def of(cls, name: str, data: bytes) -> SetFile:
        """The file with these bytes."""
        return cls(name, len(data), sha256(data).hexdigest())


@dataclass(frozen=True, slots=True)
class EventRange:
    """The events of a metadata partition that a set has: from `start_offset` to `end_offset`, exclusive."""

    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a set says of itself. `created_ms` is when the backup began, by the clock of its machine."""

    cluster_id: str
    number: int
    """The number of the set: the first has 1; `WITHOUT_SET` of none."""
    folder: str
    """Where its files are, below the cluster's folder."""
    created_ms: int
    previous: str | None
    """The SHA-256 of the manifest before this one; None of the first."""
    base: int
    """The number of the set with which the events of the metadata topic begin."""
    metadata_topic_id: str | None
    events: Mapping[int, EventRange]
    """The ranges of events, by metadata partition."""
    metadata_log_end: int
    """Up to where, exclusive, the cluster's metadata log is in it."""
    unread: Sequence[str]
    """What could not be read, and why."""
    left_out: Sequence[str]
    """Secrets that it does not have in the clear: who needs a new password, which settings need a value."""
    files: Sequence[SetFile]
    encrypted: Sequence[NamedSecret] = ()
    """Those left out that `SECRETS_FILE` has, encrypted."""

    def encode(self) -> bytes:
        """One JSON document, with its own checksum."""
        return _sealed(self._document())

    def file(self, name: str) -> SetFile | None:
        """The file of this name; None where the set has none."""
        return next((one for one in self.files if one.name == name), None)

    def to_give_again(self, *, is_opened: bool) -> list[str]:
        """Secrets that a restore does not bring back; `is_opened` where those that are encrypted can be read."""
        opened = {one.sentence for one in self.encrypted} if is_opened else set()
        return [one for one in self.left_out if one not in opened]

    def _document(self) -> Document:
        return {
            "kind": _KIND,
            "apiVersion": _API_VERSION,
            "clusterId": self.cluster_id,
            "set": self.number,
            "folder": self.folder,
            "createdMs": self.created_ms,
            "previous": self.previous,
            "base": self.base,
            "metadataTopicId": self.metadata_topic_id,
            "events": {str(number): [one.start_offset, one.end_offset] for number, one in sorted(self.events.items())},
            "metadataLogEnd": self.metadata_log_end,
            "unread": list(self.unread),
            "leftOut": list(self.left_out),
            "encrypted": [one._asdict() for one in self.encrypted],
            "files": [{"name": one.name, "size": one.size, "sha256": one.sha256} for one in self.files],
        }


@dataclass(frozen=True, slots=True)
class Beginning:
    """The set with which a cluster's sets begin, since those before it were pruned: it needs none of them."""

    cluster_id: str
    number: int
    sha256: str
    """The SHA-256 of its manifest."""

    def encode(self) -> bytes:
        """One JSON document, with its own checksum."""
        named = {"clusterId": self.cluster_id, "set": self.number, "manifest": self.sha256}
        return _sealed({"kind": _BEGINNING_KIND, "apiVersion": _API_VERSION, **named})


def manifest_sha256(data: bytes) -> str:
    """What the next manifest has as `previous`."""
    return sha256(data).hexdigest()


def read_manifest(data: bytes) -> Manifest:
    """Raises DecodeError for what no release of tieredctl wrote, or was altered since."""
    with _in_one_error("manifest"):
        return _manifest(_opened(data, _KIND, "manifest"))


def read_beginning(data: bytes) -> Beginning:
    """Raises DecodeError as `read_manifest` does."""
    with _in_one_error("note"):
        document = _opened(data, _BEGINNING_KIND, "note")
        return Beginning(str(document["clusterId"]), int(document["set"]), str(document["manifest"]))


@contextmanager
def _in_one_error(what: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DecodeError(f"the {what} has a wrong {error}", 0) from None


def _sealed(document: Document) -> bytes:
    return _json(document | {_CHECKSUM: sha256(_json(document)).hexdigest()})


def _opened(data: bytes, kind: str, what: str) -> Document:
    document = json.loads(data)
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise DecodeError(f"not the {what} of a backup set", 0)
    if document.get("apiVersion") != _API_VERSION:
        raise DecodeError(f"{what} of version {document.get('apiVersion')}, not {_API_VERSION}", 0)
    stated = document.pop(_CHECKSUM, None)
    if stated != sha256(_json(document)).hexdigest():
        raise DecodeError(f"the {what} was altered", 0)
    return document


def _manifest(document: Mapping[str, Any]) -> Manifest:
    files = [SetFile(str(one["name"]), _number(one["size"]), str(one["sha256"])) for one in document["files"]]
    return Manifest(
        str(document["clusterId"]),
        _number(document["set"]),
        str(document["folder"]),
        _number(document["createdMs"]),
        document["previous"],
        _number(document["base"]),
        document["metadataTopicId"],
        {int(number): EventRange(*map(_number, ends)) for number, ends in document["events"].items()},
        _number(document["metadataLogEnd"]),
        tuple(map(str, document["unread"])),
        tuple(map(str, document["leftOut"])),
        tuple(files),
        tuple(NamedSecret(str(one["kind"]), str(one["subject"])) for one in document.get("encrypted", ())),
    )


def _number(value: Any) -> int:
    """An offset, a size or a time as Kafka has it: of 64 bits, and never below 0."""
    number = int(value)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"number {number}")
    return number


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode("ascii")
