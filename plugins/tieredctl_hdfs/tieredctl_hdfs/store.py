"""A folder of HDFS as an object store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import UNFINISHED, Capability, Deletion, DeletionOutcome, StoredObject
from tieredctl.process.progress import begin_listing, note_listed
from tieredctl.storage.bucket_address import encodable
from tieredctl.storage.bucket_store import BucketStore, concurrently, date_ms
from tieredctl.storage.no_multipart_uploads import NoMultipartUploads
from tieredctl.storage.refusals import demand_batch, incapable, key_impossible, object_missing, replaced_while_read
from tieredctl.storage.unversioned import UnversionedStore
from tieredctl.storage.upload_parts import NoUploads
from tieredctl_hdfs.connection import (
    NO_PARAMETERS,
    Answer,
    Body,
    HdfsConnection,
    HdfsFailure,
    Operation,
    Parameters,
    not_understood,
)

CAPABILITIES: frozenset[Capability] = frozenset()
"""HDFS makes a file or renames it only if there is none, but replaces and deletes whatever there is."""

_LONGEST_PART_BYTES = 255
_OF_NAMES = {"InvalidPathException", "PathComponentTooLongException"}
"""The reasons by which HDFS refuses a name."""
_NO_PARTS = {"", ".", "..", ".reserved", ".snapshot"}
_IMPOSSIBLE = (":", "\0")


@dataclass(frozen=True, slots=True)
class HdfsStore(NoMultipartUploads, NoUploads, BucketStore[HdfsConnection], UnversionedStore):
    """The files below a folder; the address's bucket is the namenode.

    A file's version is its inode with its length and time. Bytes are written under another name and then renamed, so
    that nobody sees half of them. Folders are made when keys need them, and stay.
    """

    capabilities: frozenset[Capability] = CAPABILITIES

    def _listing(self, prefix: str, start_after: str) -> Iterator[StoredObject]:
        begin_listing(prefix, start_after)
        folder, slash, _ = prefix.rpartition("/")
        if slash and self._name(folder) is None:
            return
        # What is still to be visited, the next one last. A folder's key ends in "/", which is also how it sorts.
        pending = self._in_folder(folder + slash, prefix, start_after)
        while pending:
            key, stored = pending.pop()
            if stored is None:
                pending += self._in_folder(key, prefix, start_after)
            else:
                yield stored

    def _in_folder(self, folder: str, prefix: str, start_after: str) -> list[tuple[str, StoredObject | None]]:
        """The objects of a folder, and its folders, each with None, that a listing visits; the last one first."""
        found: list[tuple[str, StoredObject | None]] = []
        try:
            for name, kind, status in self._children(folder):
                if kind == "DIRECTORY":
                    found.append((f"{folder}{name}/", None))
                elif kind == "FILE" and name and not name.startswith(UNFINISHED):
                    found.append((folder + name, self._stored(folder + name, status)))
        except HdfsFailure as failure:
            if not failure.is_missing:
                raise
            self._demand_root()
        found = [(key, stored) for key, stored in found if _is_wanted(key, prefix, start_after)]
        return sorted(found, key=lambda one: one[0].encode("utf-8", "surrogatepass"), reverse=True)

    def _children(self, folder: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """The name and the type of each child, and all that HDFS says of it; page by page."""
        asked: dict[str, str | int] = {}
        remaining = True
        while remaining:
            answer = self._told("LISTSTATUS_BATCH", folder, asked)
            try:
                listing = answer["DirectoryListing"]
                page = [
                    (str(status["pathSuffix"]), str(status["type"]), status)
                    for status in listing["partialListing"]["FileStatuses"]["FileStatus"]
                ]
                remaining = int(listing["remainingEntries"]) > 0
            except (KeyError, TypeError, ValueError):
                raise not_understood(self.url) from None
            last = page[-1][0] if page else ""
            if remaining and (not last or last == asked.get("startafter")):
                raise not_understood(self.url)
            note_listed(len(page))
            yield from page
            asked = {"startafter": last}  # Hadoop 3.5 takes it in small letters only

    def head(self, key: str) -> StoredObject | None:
        status = self._status(key)
        return None if status is None else self._stored(key, status)

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        try:
            told = self._told("GETFILECHECKSUM", stored.key)
            found = {str(told["FileChecksum"]["algorithm"]): str(told["FileChecksum"]["bytes"])}
        except HdfsFailure as failure:
            if failure.code is ErrorCode.UNREADABLE:
                return {}
            raise
        except (KeyError, TypeError):
            raise not_understood(self.url) from None
        return found if self.head(stored.key) == stored else {}

    def time_ms(self) -> int | None:
        headers = self._request("GET", "GETFILESTATUS", "").headers
        # Hadoop and its web server both say it.
        return date_ms({"date": headers.get("date", "").partition("GMT")[0] + "GMT"})

    def write(self, key: str, data: bytes) -> StoredObject:
        return self._put(key, data, len(data), {})

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:  # noqa: ARG002
        raise incapable(self.url, Capability.CONDITIONAL_WRITE)

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:  # noqa: ARG002
        raise incapable(self.url, Capability.CONDITIONAL_WRITE)

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:  # noqa: ARG002
        """As every store does, but that the bytes pass through here: HDFS copies nothing itself. The owner of the copy
        is who made it."""
        self._writable_name(key)
        status = self._status(source.key)
        if status is None or self._stored(source.key, status) != source:
            return None
        try:
            return self._put(key, self.stream(source.key), source.size, {"permission": status.get("permission", "644")})
        except TieredctlError:
            if self.head(source.key) != source:
                return None
            raise

    def _put(self, key: str, body: Body, size: int, parameters: Parameters) -> StoredObject:
        name = self._writable_name(key)
        folder, slash, _ = key.rpartition("/")
        unfinished = f"{folder}{slash}{UNFINISHED}{uuid4().hex}"
        try:
            asked = {"overwrite": "false", **parameters}
            self._request("PUT", "CREATE", unfinished, asked, body, size)
            written = self.head(unfinished)
            if written is None or written.size != size:
                raise HdfsFailure(ErrorCode.STORE_UNREACHABLE, f"{self.url} did not keep all bytes of {key!r}.")
            asked = {"destination": f"/{name}", "renameoptions": "OVERWRITE"}
            self._request("PUT", "RENAME", unfinished, asked)
            made = written._replace(key=key)
            if self.head(key) != made:  # a gateway may answer that all is well where nothing was renamed
                raise TieredctlError(ErrorCode.UNWRITABLE, f"{self.url} holds another {key!r} than was written.")
        except BaseException as error:
            with suppress(TieredctlError):
                self._remove(unfinished)
            if isinstance(error, HdfsFailure) and error.code is ErrorCode.UNREADABLE and error.reason:
                raise self._refused(key, error.reason) from None
            raise
        return made

    def _refused(self, key: str, reason: str) -> TieredctlError:
        """Why an object was not written, by the name of Hadoop's exception."""
        if reason in _OF_NAMES:
            return key_impossible(self.url, key)
        return TieredctlError(ErrorCode.UNWRITABLE, f"{self.url} refused to write {key!r} ({reason}).")

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        demand_batch(objects)
        return concurrently(self._deletion, objects)

    def _deletion(self, stored: StoredObject) -> Deletion:
        if self._name(stored.key) is None:
            return Deletion(stored, DeletionOutcome.FAILED, key_impossible(self.url, stored.key))
        try:
            self._remove(stored.key)
        except TieredctlError as error:
            return Deletion(stored, DeletionOutcome.FAILED, error)
        return Deletion(stored, DeletionOutcome.GONE)

    def _remove(self, key: str) -> None:
        """Does nothing where there is no such file."""
        self._request("DELETE", "DELETE", key, {"recursive": "false"})

    def _status(self, key: str) -> dict[str, Any] | None:
        """What HDFS says of a file; None where there is none."""
        if self._name(key) is None:
            return None
        try:
            answer = self._told("GETFILESTATUS", key)
        except HdfsFailure as failure:
            if failure.is_missing:
                self._demand_root()
                return None
            raise
        try:
            status: dict[str, Any] = answer["FileStatus"]
            return status if status["type"] == "FILE" else None
        except (KeyError, TypeError):
            raise not_understood(self.url) from None

    def _read(self, key: str, start: int, end: int | None, version: str | None = None) -> bytes:
        if self._name(key) is None:
            raise object_missing(self.url, key)
        asked: dict[str, str | int] = {"offset": start}
        if end is not None:
            asked["length"] = end - start
        try:
            data = self._request("GET", "OPEN", key, asked).body
        except HdfsFailure as failure:
            if failure.code is ErrorCode.UNREADABLE and start >= self._existing(key).size:
                return b""
            if failure.is_missing:
                raise object_missing(self.url, key) from None
            raise
        # Inodes are never used twice: what is the same afterwards was so meanwhile.
        if version is not None and self._existing(key).version != version:
            raise replaced_while_read(self.url, key)
        return data

    def _told(self, name: str, key: str, parameters: Parameters = NO_PARAMETERS) -> Any:
        """The answer to a question, which is JSON."""
        try:
            return json.loads(self._request("GET", name, key, parameters).body)
        except ValueError:
            raise not_understood(self.url) from None

    def _request(
        self,
        method: str,
        name: str,
        key: str,
        parameters: Parameters = NO_PARAMETERS,
        body: Body | None = None,
        size: int = 0,
    ) -> Answer:
        path = f"/{self.address.root}{key}".rstrip("/") or "/"
        return self.connection.request(Operation(method, name, path, parameters, body, size), self.url)

    def _demand_root(self) -> None:
        """Raises TieredctlError `path-missing` where there is no such folder: then nothing is known to be missing."""
        try:
            answer = self._told("GETFILESTATUS", "")
        except HdfsFailure as failure:
            if not failure.is_missing:
                raise
            raise HdfsFailure(ErrorCode.PATH_MISSING, f"There is no folder {self.url}.") from None
        try:
            is_folder = answer["FileStatus"]["type"] == "DIRECTORY"
        except (KeyError, TypeError):
            raise not_understood(self.url) from None
        if not is_folder:
            raise HdfsFailure(ErrorCode.PATH_MISSING, f"{self.url} is not a folder.")

    def _stored(self, key: str, status: Mapping[str, Any]) -> StoredObject:
        try:
            size, modified_ms = int(status["length"]), int(status["modificationTime"])
            return StoredObject(key, size, modified_ms, f"{int(status['fileId'])}-{modified_ms}-{size}")
        except (KeyError, TypeError, ValueError):
            raise not_understood(self.url) from None

    def _name(self, key: str) -> str | None:
        # Without limits of length: HDFS has them as settings, and answers for what it holds.
        name = self.address.root + key
        if not key or not encodable(name) or any(one in name for one in _IMPOSSIBLE):
            return None
        return name if _NO_PARTS.isdisjoint(name.split("/")) else None

    def _writable_name(self, key: str) -> str:
        name = self._name(key)
        if name is None or self.address.name(key) is None:
            raise key_impossible(self.url, key)
        if any(len(part.encode()) > _LONGEST_PART_BYTES for part in name.split("/")):
            raise key_impossible(self.url, key)
        return name


def _is_wanted(key: str, prefix: str, start_after: str) -> bool:
    """Whether an object is part of a listing, or a folder may have some."""
    if not key.startswith(prefix):
        return key.endswith("/") and prefix.startswith(key)
    return key > start_after or (key.endswith("/") and start_after.startswith(key))
