"""A container of Azure Blob Storage as an object store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import (
    UPLOAD_PART_BYTES,
    Capability,
    Deletion,
    DeletionOutcome,
    KeptVersion,
    Pieces,
    Retention,
    StoredObject,
)
from tieredctl.process.interruption import pause
from tieredctl.process.progress import begin_listing
from tieredctl.storage.azure_batch import MOST_IN_A_BATCH, delete_together
from tieredctl.storage.azure_connection import Answer, AzureConnection, AzureFailure, located
from tieredctl.storage.azure_listing import blobs_below, first_page_headers
from tieredctl.storage.azure_listing_page import is_folder, quoted, time_ms
from tieredctl.storage.azure_upload import upload_blocks
from tieredctl.storage.azure_versions import (
    container_retention,
    delete_kept,
    read_kept,
    soft_deleted_blobs,
    version_entries,
)
from tieredctl.storage.bucket_store import BucketStore, concurrently, date_ms
from tieredctl.storage.byte_ranges import asked_range
from tieredctl.storage.no_multipart_uploads import NoMultipartUploads
from tieredctl.storage.refusals import (
    demand,
    demand_batch,
    key_impossible,
    object_archived,
    object_missing,
    replaced_while_read,
)
from tieredctl.storage.upload_parts import Upload

AZURE_CAPABILITIES = frozenset(Capability) - {Capability.MULTIPART_UPLOADS, Capability.MODIFICATION_TIMES}
"""Blocks that were never committed are listed without a time, and Azure drops them after a week."""

_CHANGED = {"BlobAlreadyExists", "ConditionNotMet", "SourceConditionNotMet", "TargetConditionNotMet"}
_ARCHIVED = {"BlobArchived", "BlobBeingRehydrated"}
_BEYOND_ITS_END = "InvalidRange"
_UNCOPIED = {"aborted", "failed"}
"""The states in which Azure leaves the blob that it makes, of no bytes, before it copies."""
_COPY_PAUSE_SECONDS, _COPY_SECONDS = 0.5, 60
_PATH_SEGMENTS_REFUSED = {".", ".."}
"""They would lead the request to another blob, as a backslash would, which Azure takes for a slash."""


@dataclass(frozen=True, slots=True)
class AzureStore(NoMultipartUploads, BucketStore[AzureConnection]):
    """An object's version is its ETag, its storage class its access tier."""

    capabilities: frozenset[Capability] = AZURE_CAPABILITIES

    @property
    def container(self) -> str:
        """The URL's, without the account that it may name besides."""
        return self.address.bucket.partition("@")[0]

    def _listing(self, prefix: str, start_after: str) -> Iterator[StoredObject]:
        begin_listing(prefix, start_after)
        start = self.address.start(start_after)
        for stored in blobs_below(self._request_container, self.address, self.address.root + prefix, start):
            yield stored._replace(key=self.address.key(stored.key))

    def head(self, key: str) -> StoredObject | None:
        description = self._description(key)
        return None if description is None else _described(key, description, self.url)

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:  # noqa: ARG002
        # Content-MD5 is a property that writers may set, and that a copy takes over unread: it proves nothing.
        return {}

    def time_ms(self) -> int | None:
        return date_ms(first_page_headers(self._request_container))

    def retention(self) -> Retention:
        return container_retention(self._request_container, self._request_service, self.address)

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        return (kept for kept in self.version_entries(prefix) if kept is not None)

    def version_entries(self, prefix: str = "") -> Iterator[KeptVersion | None]:
        """As `kept_versions`, with None for each blob itself."""
        for kept in version_entries(self._request_container, self.address, self.address.root + prefix):
            yield kept and kept._replace(key=self.address.key(kept.key))

    def read_version(self, kept: KeptVersion) -> bytes:
        try:
            return read_kept(self._request, kept, self.address.root + kept.key).body
        except AzureFailure as failure:
            if failure.is_missing:
                raise object_missing(self.url, kept.key) from None
            if failure.reason in _ARCHIVED:
                raise object_archived(self.url, kept.key) from None
            raise

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        return soft_deleted_blobs(self._request_container, self.address, key)

    def write(self, key: str, data: bytes) -> StoredObject:
        return self._put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        return self._put_if(key, data, {"If-None-Match": "*"})

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        demand(Capability.CONDITIONAL_UPLOAD, self.capabilities, self.url)
        if size < part_bytes:
            data = next(Upload(key, size, pieces).parts(part_bytes))
            return self._put_if(key, data, {"If-None-Match": "*"})
        name = self._writable_name(key)
        try:
            answer = upload_blocks(self._request, name, Upload(key, size, pieces).parts(part_bytes))
        except AzureFailure as failure:
            if failure.reason in _CHANGED:
                return None
            raise
        return self._written(key, size, answer)

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        return self._put_if(current.key, data, {"If-Match": current.version})

    def _put_if(self, key: str, data: bytes, condition: Mapping[str, str]) -> StoredObject | None:
        demand(Capability.CONDITIONAL_WRITE, self.capabilities, self.url)
        try:
            return self._put(key, data, condition)
        except AzureFailure as failure:
            if failure.reason in _CHANGED or failure.is_missing:
                return None
            raise

    def _put(self, key: str, data: bytes, condition: Mapping[str, str] | None = None) -> StoredObject:
        name = self._writable_name(key)
        headers = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream", **(condition or {})}
        return self._written(key, len(data), self._request("PUT", name, headers=headers, body=data))

    def _written(self, key: str, size: int, answer: Answer) -> StoredObject:
        written = _version_and_time(answer.headers, self.url)
        stored = self.head(key)
        if stored and stored.version == written[0]:
            return stored
        # Replaced by another writer since: report what was written all the same.
        return StoredObject(key, size, written[1], written[0])

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:  # noqa: ARG002
        name = self._writable_name(key)
        description = self._description(source.key)
        if description is None:
            return None
        if description.get("x-ms-access-tier") == "Archive":
            # Azure would begin to rehydrate it, for hours.
            raise object_archived(self.url, source.key)
        headers = self._copied(source, description)
        if Capability.CONDITIONAL_COPY in self.capabilities:
            headers["x-ms-source-if-match"] = source.version
        elif quoted(description["etag"]) != source.version:
            return None
        try:
            answer = self._request("PUT", name, headers=headers)
        except AzureFailure as failure:
            if failure.reason in _CHANGED or failure.is_missing:
                return None
            if failure.reason in _ARCHIVED:
                raise object_archived(self.url, source.key) from None
            raise
        self._wait_for_copy(key, answer.headers)
        return self.head(key)

    def _copied(self, source: StoredObject, description: Mapping[str, str]) -> dict[str, str]:
        """The headers of a copy. Content type and its siblings and metadata go along by themselves."""
        account = self.connection.signed_in(self.url)
        where = located(account.endpoint, f"{self.container}/{self.address.root}{source.key}")
        headers = {"x-ms-copy-source": f"{where}?{account.signature}" if account.signature else where}
        tier = description.get("x-ms-access-tier")
        if tier and description.get("x-ms-access-tier-inferred") != "true":
            headers["x-ms-access-tier"] = tier
        if int(description.get("x-ms-tag-count") or 0):
            tags = self._request("GET", self.address.root + source.key, {"comp": "tags"}).body
            headers["x-ms-tags"] = tags_header(tags, self.url)
        return headers

    def _wait_for_copy(self, key: str, answer: Mapping[str, str]) -> None:
        """Until Azure reports that it has copied: within an account at once, as a rule. It would try for two weeks,
        longer than any lease is held: a copy that takes too long is given up. Whatever ends the wait without a copy,
        the empty blob that Azure made for it is deleted."""
        copy_id, headers = answer.get("x-ms-copy-id", ""), answer
        until = monotonic() + _COPY_SECONDS
        try:
            while headers.get("x-ms-copy-status") == "pending":
                if monotonic() >= until:
                    raise AzureFailure(ErrorCode.STORE_UNREACHABLE, self._uncopied(key, f"within {_COPY_SECONDS} s"))
                pause(_COPY_PAUSE_SECONDS)
                headers = self._description(key) or {}
            if headers.get("x-ms-copy-id") == copy_id and headers.get("x-ms-copy-status") != "success":
                why = f"({headers.get('x-ms-copy-status')})"
                raise AzureFailure(ErrorCode.UNREADABLE, self._uncopied(key, why))
        except BaseException as error:  # an interruption, too
            if self._is_undone(key, copy_id):
                raise
            if not isinstance(error, TieredctlError):
                raise
            message = f"{error.message} An empty blob may be left under that key."
            raise AzureFailure(error.code, message, hint=error.hint) from None

    def _uncopied(self, key: str, why: str) -> str:
        return f"{self.url} did not copy to {key!r} {why}."

    def _is_undone(self, key: str, copy_id: str) -> bool:
        """Aborts a copy, and deletes the empty blob that it leaves under its key, unless others wrote to that since.
        Whether none is left, as far as Azure answers."""
        with suppress(AzureFailure):  # it ended just now, or goes on without us
            asked = {"comp": "copy", "copyid": copy_id}
            self._request("PUT", self._writable_name(key), asked, {"x-ms-copy-action": "abort"})
        try:
            left = self._description(key)
            if left is None or left.get("x-ms-copy-id") != copy_id or left.get("x-ms-copy-status") == "success":
                return True
            is_empty = left.get("x-ms-copy-status") in _UNCOPIED and left.get("content-length") == "0"
            if not is_empty or Capability.CONDITIONAL_DELETE not in self.capabilities:
                return False
            (deletion,) = self.delete([_described(key, left, self.url)])
        except TieredctlError:
            return False
        return deletion.outcome is not DeletionOutcome.FAILED

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        demand_batch(objects)
        batches = [objects[first : first + MOST_IN_A_BATCH] for first in range(0, len(objects), MOST_IN_A_BATCH)]
        return [deletion for deletions in concurrently(self._delete_batch, batches) for deletion in deletions]

    def _delete_batch(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        named = [(stored, self._name(stored.key)) for stored in objects]
        conditional = Capability.CONDITIONAL_DELETE in self.capabilities
        sent = [(name, stored.version if conditional else None) for stored, name in named if name is not None]
        answers = iter(delete_together(self.connection, self.url, self.container, sent))
        return [
            Deletion(stored, DeletionOutcome.FAILED, key_impossible(self.url, stored.key))
            if name is None
            else self._deletion(stored, next(answers))
            for stored, name in named
        ]

    def _deletion(self, stored: StoredObject, failure: AzureFailure | None) -> Deletion:
        if failure is None or failure.is_missing:
            return Deletion(stored, DeletionOutcome.GONE)
        if failure.reason not in _CHANGED:
            return Deletion(stored, DeletionOutcome.FAILED, failure)
        try:
            # What is not there has not this version either.
            current = self.head(stored.key)
        except TieredctlError as error:
            return Deletion(stored, DeletionOutcome.FAILED, error)
        return Deletion(stored, DeletionOutcome.GONE if current is None else DeletionOutcome.CHANGED)

    def delete_version(self, kept: KeptVersion) -> None:
        try:
            delete_kept(self._request, kept, self.address.root + kept.key)
        except AzureFailure as failure:
            if not failure.is_missing:
                raise

    def _description(self, key: str) -> Mapping[str, str] | None:
        """The headers of Get Blob Properties; None where there is no such object."""
        name = self._name(key)
        if name is None:
            return None
        try:
            headers = self._request("HEAD", name).headers
        except AzureFailure as failure:
            if failure.is_missing:
                return None
            raise
        return None if is_folder(headers) else headers

    def _read(self, key: str, start: int, end: int | None, version: str | None = None) -> bytes:
        name = self._name(key)
        if name is None:
            raise object_missing(self.url, key)
        headers = {"x-ms-range": f"bytes={start}-{'' if end is None else end - 1}"}
        if version is not None:
            headers["If-Match"] = version
        try:
            answer = self._request("GET", name, headers=headers)
        except AzureFailure as failure:
            if failure.reason == _BEYOND_ITS_END:
                return b""
            if failure.reason in _CHANGED:
                raise replaced_while_read(self.url, key) from None
            if failure.is_missing:
                raise object_missing(self.url, key) from None
            if failure.reason in _ARCHIVED:
                raise object_archived(self.url, key) from None
            raise
        if is_folder(answer.headers):
            raise object_missing(self.url, key)
        content_range = answer.headers.get("content-range", "")
        return asked_range(
            answer.body, start, end, status=answer.status, content_range=content_range, url=self.url, key=key
        )

    def _request(
        self,
        method: str,
        name: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        return self.connection.request(method, self.url, f"{self.container}/{name}", query, headers, body)

    def _request_container(self, method: str, query: Mapping[str, str]) -> Answer:
        return self.connection.request(method, self.url, self.container, {"restype": "container", **query})

    def _request_service(self, query: Mapping[str, str]) -> Answer:
        return self.connection.request("GET", self.url, query={"restype": "service", **query})

    def _name(self, key: str) -> str | None:
        name = self.address.name(key)
        if name is None or "\\" in name or _PATH_SEGMENTS_REFUSED & set(name.split("/")):
            return None
        return name


def _described(key: str, headers: Mapping[str, str], url: str) -> StoredObject:
    version, modified_ms = _version_and_time(headers, url)
    try:
        size = int(headers["content-length"])
    except (KeyError, ValueError):
        raise AzureFailure(ErrorCode.UNREADABLE, f"{url} gives no size of {key!r}.") from None
    return StoredObject(key, size, modified_ms, version, headers.get("x-ms-access-tier"))


def tags_header(body: bytes, url: str) -> str:
    """The tags of a blob, from the XML of Get Blob Tags, as a header names them. Raises AzureFailure."""
    try:
        tags = ElementTree.fromstring(body.removeprefix(b"\xef\xbb\xbf")).iter("Tag")
    except ElementTree.ParseError:
        message = f"{url} tells a blob's tags in a way that cannot be understood."
        raise AzureFailure(ErrorCode.UNREADABLE, message) from None
    return urlencode({tag.findtext("Key") or "": tag.findtext("Value") or "" for tag in tags}, quote_via=quote)


def _version_and_time(headers: Mapping[str, str], url: str) -> tuple[str, int]:
    try:
        return quoted(headers["etag"]), time_ms(headers["last-modified"])
    except (KeyError, ValueError):
        message = f"{url} describes a blob in a way that cannot be understood."
        raise AzureFailure(ErrorCode.UNREADABLE, message) from None
