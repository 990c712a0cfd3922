"""The manifest of a backup set: what it has of a cluster, with checksums, chained to the set before it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.ops.documents import Document

_KIND, _API_VERSION = "BackupManifest", "tieredctl/v1"
_CHECKSUM = "sha256"
CLUSTER_FILE, CLUSTER_DOCUMENT = "cluster.checkpoint", "cluster.json"
"""The cluster's metadata as a KRaft snapshot without its secrets, and the same for people."""
EVENTS_FILE = "remote-log-metadata.parquet"
"""What is new in `__remote_log_metadata`, as `metadata export` writes it."""
WITHOUT_SET = 0
"""The number of a manifest that no set has: what it says is derived from the keys of objects."""
OFFSETS_FILE, GROUPS_FILE, SETTINGS_FILE = "offsets.json", "groups.json", "settings.json"


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
    """Of the set: the first has 1; `WITHOUT_SET` of none."""
    folder: str
    """Where its files are, below the cluster's folder."""
    created_ms: int
    previous: str | None
    """The SHA-256 of the manifest before this one; None of the first."""
    base: int
    """The number of the set with which the events of the metadata topic begin."""
    metadata_topic_id: str | None
    events: Mapping[int, EventRange]
    """By metadata partition."""
    metadata_log_end: int
    """Up to where, exclusive, the cluster's metadata log is in it."""
    unread: Sequence[str]
    """What could not be read, and why."""
    left_out: Sequence[str]
    """Secrets that are not in it: who needs a new password, which settings need a value."""
    files: Sequence[SetFile]

    def encode(self) -> bytes:
        """One JSON document, with its own checksum."""
        document = self._document()
        return _json(document | {_CHECKSUM: sha256(_json(document)).hexdigest()})

    def file(self, name: str) -> SetFile | None:
        """The file of this name; None where the set has none."""
        return next((one for one in self.files if one.name == name), None)

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
            "files": [{"name": one.name, "size": one.size, "sha256": one.sha256} for one in self.files],
        }


def manifest_sha256(data: bytes) -> str:
    """What the next manifest has as `previous`."""
    return sha256(data).hexdigest()


def read_manifest(data: bytes) -> Manifest:
    """Raises DecodeError for what no release of tieredctl wrote, or was altered since."""
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document.get("kind") != _KIND:
            raise DecodeError("not the manifest of a backup set", 0)
        if document.get("apiVersion") != _API_VERSION:
            raise DecodeError(f"manifest of version {document.get('apiVersion')}, not {_API_VERSION}", 0)
        stated = document.pop(_CHECKSUM, None)
        if stated != sha256(_json(document)).hexdigest():
            raise DecodeError("the manifest was altered", 0)
        return _manifest(document)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DecodeError(f"the manifest has a wrong {error}", 0) from None


def _manifest(document: Mapping[str, Any]) -> Manifest:
    files = [SetFile(str(one["name"]), int(one["size"]), str(one["sha256"])) for one in document["files"]]
    return Manifest(
        str(document["clusterId"]),
        int(document["set"]),
        str(document["folder"]),
        int(document["createdMs"]),
        document["previous"],
        int(document["base"]),
        document["metadataTopicId"],
        {int(number): EventRange(*map(int, ends)) for number, ends in document["events"].items()},
        int(document["metadataLogEnd"]),
        tuple(map(str, document["unread"])),
        tuple(map(str, document["leftOut"])),
        tuple(files),
    )


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode("ascii")
