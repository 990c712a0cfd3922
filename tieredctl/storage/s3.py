"""A bucket of S3, or of an S3-compatible server, as an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any
from urllib.parse import unquote_plus

from tieredctl.errors import ErrorCode
from tieredctl.ports.object_store import (
    UPLOAD_PART_BYTES,
    Capability,
    Deletion,
    DeletionOutcome,
    KeptVersion,
    MultipartUpload,
    ObjectStore,
    Pieces,
    Retention,
    StoredObject,
)
from tieredctl.process.progress import begin_listing, note_listed
from tieredctl.storage.bucket_store import BucketStore, concurrently, date_ms
from tieredctl.storage.byte_ranges import asked_range
from tieredctl.storage.refusals import (
    demand,
    demand_batch,
    key_impossible,
    object_archived,
    object_missing,
    replaced_while_read,
)
from tieredctl.storage.s3_checksums import checksums_in
from tieredctl.storage.s3_connection import Answer, Onward, Operation, S3Connection, S3Failure, following, refusal
from tieredctl.storage.s3_copy import COPIED_PART_BYTES, copy_at_once, copy_if_absent, copy_in_parts
from tieredctl.storage.s3_listing_page import LISTED, whole_seconds_ms
from tieredctl.storage.s3_upload import content_md5, upload_in_parts
from tieredctl.storage.s3_versions import bucket_retention, version_entries
from tieredctl.storage.upload_parts import Upload

_MISSING = {"NoSuchKey", "404", "KeyTooLongError"}
_CHANGED = {"PreconditionFailed", "412"}
_NO_REASON = {"400", "403", "404"}
_ARCHIVED = {"InvalidObjectState", "ObjectNotInActiveTierError"}
_USUAL_CLASS = "STANDARD"
"""HeadObject names every storage class but this one."""
_BEYOND_ITS_END = "InvalidRange"
_service = attrgetter("endpoint", "profile", "route")
"""What tells services apart: by two proxies, one endpoint may be two servers."""
_LARGEST_COPY_AT_ONCE = 1 << 30
"""S3 allows 5 GiB, but says nothing until it is done."""


@dataclass(frozen=True, slots=True)
class S3Store(BucketStore[S3Connection]):
    """An object's version is its ETag."""

    capabilities: frozenset[Capability] = frozenset(Capability) - {Capability.MODIFICATION_TIMES}
    largest_copy_at_once: int = _LARGEST_COPY_AT_ONCE

    def _listing(self, prefix: str, start_after: str) -> Iterator[StoredObject]:
        begin_listing(prefix, start_after)
        parameters = {"Prefix": self.address.root + prefix}
        if start := self.address.start(start_after):
            parameters["StartAfter"] = start
        for page in self.address.pages_that_end(self._pages(parameters), lambda page: not page[LISTED]):
            note_listed(len(page[LISTED]))
            for name, *described in page[LISTED]:
                yield StoredObject(self.address.key(name), *described)

    def _pages(self, parameters: dict[str, Any]) -> Iterator[Answer]:
        while True:
            page = self._request("list_objects_v2", **parameters)
            if LISTED not in page:
                raise S3Failure(ErrorCode.UNREADABLE, f"{self.url} does not answer with a listing.")
            yield page
            marker = following(page, "NextContinuationToken")
            if marker is None:
                return
            (parameters["ContinuationToken"],) = marker

    def head(self, key: str) -> StoredObject | None:
        description = self._description(key)
        return None if description is None else _described(key, description)

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        description = self._description(stored.key, ChecksumMode="ENABLED")
        return {} if description is None or description["ETag"] != stored.version else checksums_in(description)

    def time_ms(self) -> int | None:
        return date_ms(self._request("head_bucket")["ResponseMetadata"]["HTTPHeaders"])

    def retention(self) -> Retention:
        return bucket_retention(self._request)

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        return (kept for kept in self.version_entries(prefix) if kept is not None)

    def version_entries(self, prefix: str = "") -> Iterator[KeptVersion | None]:
        """As `kept_versions`, with None for each version that a listing shows too."""
        for kept in version_entries(self._request, self.address, self.address.root + prefix):
            yield kept and kept._replace(key=self.address.key(kept.key))

    def read_version(self, kept: KeptVersion) -> bytes:
        try:
            answer = self._request("get_object", Key=self.address.root + kept.key, VersionId=kept.version_id)
            return self.connection.body(answer, self.url)
        except S3Failure as failure:
            if failure.reason in (*_MISSING, "NoSuchVersion"):
                raise object_missing(self.url, kept.key) from None
            if failure.reason in _ARCHIVED:
                raise object_archived(self.url, kept.key) from None
            raise

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:  # noqa: ARG002 - S3 has nothing but versions
        return ()

    def multipart_uploads(self, prefix: str = "") -> Iterator[MultipartUpload]:
        demand(Capability.MULTIPART_UPLOADS, self.capabilities, self.url)
        parameters = {"Prefix": self.address.root + prefix, "EncodingType": "url"}
        for page in self.address.pages_that_end(self._upload_pages(parameters), lambda page: not page.get("Uploads")):
            decoded = _decoding(page)
            for item in page.get("Uploads", ()):
                name = decoded(item["Key"])
                # Some servers list those of all prefixes.
                if name.startswith(parameters["Prefix"]):
                    yield MultipartUpload(self.address.key(name), item["UploadId"], whole_seconds_ms(item["Initiated"]))

    def _upload_pages(self, parameters: dict[str, str]) -> Iterator[Answer]:
        onward = Onward(self.url)
        while True:
            page = self._request("list_multipart_uploads", **parameters)
            yield page
            marker = following(page, "NextKeyMarker", "NextUploadIdMarker")
            if marker is None:
                return
            name = _decoding(page)(marker[0])
            onward.demand(name, marker[1])
            parameters |= {"KeyMarker": name, "UploadIdMarker": marker[1]}

    def multipart_upload_bytes(self, upload: MultipartUpload) -> int:
        demand(Capability.MULTIPART_UPLOADS, self.capabilities, self.url)
        parameters: dict[str, Any] = {"Key": self.address.root + upload.key, "UploadId": upload.upload_id}
        sizes: dict[int, int] = {}
        try:
            for page in self.address.pages_that_end(self._part_pages(parameters), lambda page: not page.get("Parts")):
                page_sizes = {int(part["PartNumber"]): int(part["Size"]) for part in page.get("Parts", ())}
                if page_sizes.keys() & sizes.keys():
                    raise S3Failure(
                        ErrorCode.UNREADABLE, f"{self.url} lists parts of an upload of {upload.key!r} twice."
                    )
                sizes |= page_sizes
        except S3Failure as failure:
            if failure.reason == "NoSuchUpload":
                return 0
            raise
        return sum(sizes.values())

    def _part_pages(self, parameters: dict[str, Any]) -> Iterator[Answer]:
        while True:
            page = self._request("list_parts", **parameters)
            yield page
            marker = following(page, "NextPartNumberMarker")
            if marker is None:
                return
            (parameters["PartNumberMarker"],) = marker

    def write(self, key: str, data: bytes) -> StoredObject:
        return self._put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        return self._put_if(key, data, IfNoneMatch="*")

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        demand(Capability.CONDITIONAL_UPLOAD, self.capabilities, self.url)
        if size < part_bytes:
            data = next(Upload(key, size, pieces).parts(part_bytes))
            return self._unless_refused(lambda: self._uploaded(key, size, self._send(key, data, IfNoneMatch="*")))
        name = self._writable_name(key)
        try:
            answer = upload_in_parts(self._request, name, Upload(key, size, pieces), part_bytes)
        except S3Failure as failure:
            if failure.reason in _CHANGED:
                return None
            raise
        return self._uploaded(key, size, answer)

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        return self._put_if(current.key, data, IfMatch=current.version)

    def _put_if(self, key: str, data: bytes, **condition: str) -> StoredObject | None:
        demand(Capability.CONDITIONAL_WRITE, self.capabilities, self.url)
        return self._unless_refused(lambda: self._put(key, data, **condition))

    @staticmethod
    def _unless_refused(put: Callable[[], StoredObject]) -> StoredObject | None:
        try:
            return put()
        except S3Failure as failure:
            if failure.reason in _CHANGED | _MISSING:
                return None
            raise

    def _put(self, key: str, data: bytes, **condition: str) -> StoredObject:
        return self._written(key, len(data), self._send(key, data, **condition)["ETag"])

    def _send(self, key: str, data: bytes, **condition: str) -> Answer:
        name = self._writable_name(key)
        return self._request("put_object", Key=name, Body=data, ContentMD5=content_md5(data), **condition)

    def _uploaded(self, key: str, size: int, answer: Answer) -> StoredObject:
        """The uploaded object by the answer alone: whoever copies a million objects looks at each again."""
        answered_ms = date_ms(answer["ResponseMetadata"]["HTTPHeaders"])
        if answered_ms is None:
            return self._written(key, size, answer["ETag"])
        return StoredObject(key, size, answered_ms, answer["ETag"])

    def _written(self, key: str, size: int, version: str) -> StoredObject:
        stored = self.head(key)
        if stored and stored.version == version:
            return stored
        # Replaced by another writer since: report what was written all the same, with the time of the answer.
        return StoredObject(key, size, stored.last_modified_ms if stored else 0, version)

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:  # noqa: ARG002
        name = self._writable_name(key)
        description = self._description(source.key)
        if description is None:
            return None
        what: dict[str, Any] = {"CopySource": {"Bucket": self.address.bucket, "Key": self.address.root + source.key}}
        if Capability.CONDITIONAL_COPY in self.capabilities:
            what["CopySourceIfMatch"] = source.version
        elif description["ETag"] != source.version:
            return None
        try:
            if description["ContentLength"] <= self.largest_copy_at_once:
                copy_at_once(self._request, name, what, description)
            else:
                part_bytes = min(self.largest_copy_at_once, COPIED_PART_BYTES)
                copy_in_parts(self._request, name, what, description, part_bytes)
        except S3Failure as failure:
            if failure.reason in _CHANGED | _MISSING:
                return None
            if failure.reason in _ARCHIVED:
                raise object_archived(self.url, source.key) from None
            raise
        return self.head(key)

    def can_copy_from(self, other: ObjectStore) -> bool:
        if not isinstance(other, S3Store):
            return False
        return _service(other.connection) == _service(self.connection)

    def copying_in_parts(self) -> S3Store:
        return replace(self, largest_copy_at_once=0)

    def copy_from(self, other: ObjectStore, source: StoredObject, key: str) -> StoredObject | None:
        if not isinstance(other, S3Store):
            raise TypeError(f"{other.url} is not a store of S3")
        where = {"Bucket": other.address.bucket, "Key": other.address.root + source.key}
        what = {"CopySource": where, "CopySourceIfMatch": source.version}
        copied = partial(copy_if_absent, self._request, self._writable_name(key), what, source.size)
        return self._unless_refused(lambda: self._uploaded(key, source.size, copied(self.largest_copy_at_once)))

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        demand_batch(objects)
        if Capability.CONDITIONAL_DELETE in self.capabilities:
            return concurrently(self._delete_if_unchanged, objects)
        # XML cannot carry these, and a server would read some of them as other keys.
        apart = [stored for stored in objects if not stored.key.isprintable()]
        together = [stored for stored in objects if stored.key.isprintable()]
        done = [*concurrently(self._delete_alone, apart), *self._delete_together(together)]
        by_key = {deletion.stored.key: deletion for deletion in done}
        return [by_key[stored.key] for stored in objects]

    def delete_version(self, kept: KeptVersion) -> None:
        try:
            self._request("delete_object", Key=self.address.root + kept.key, VersionId=kept.version_id)
        except S3Failure as failure:
            if failure.reason not in ("NoSuchKey", "NoSuchVersion"):
                raise

    def abort_multipart_upload(self, upload: MultipartUpload) -> None:
        demand(Capability.MULTIPART_UPLOADS, self.capabilities, self.url)
        try:
            name = self.address.root + upload.key
            self._request("abort_multipart_upload", Key=name, UploadId=upload.upload_id)
        except S3Failure as failure:
            if failure.reason != "NoSuchUpload":
                raise

    def _delete_if_unchanged(self, stored: StoredObject) -> Deletion:
        return self._deletion(stored, IfMatch=stored.version)

    def _delete_alone(self, stored: StoredObject) -> Deletion:
        return self._deletion(stored)

    def _deletion(self, stored: StoredObject, **condition: str) -> Deletion:
        name = self.address.name(stored.key)
        if name is None:
            return Deletion(stored, DeletionOutcome.FAILED, key_impossible(self.url, stored.key))
        try:
            self._request("delete_object", Key=name, **condition)
        except S3Failure as failure:
            if failure.reason == "NoSuchKey":
                return Deletion(stored, DeletionOutcome.GONE)
            if failure.reason in _CHANGED:
                return Deletion(stored, DeletionOutcome.CHANGED)
            return Deletion(stored, DeletionOutcome.FAILED, failure)
        return Deletion(stored, DeletionOutcome.GONE)

    def _delete_together(self, objects: Sequence[StoredObject]) -> Iterator[Deletion]:
        names = [{"Key": self.address.root + stored.key} for stored in objects]
        if not names:
            return
        try:
            answer = self._request("delete_objects", Delete={"Objects": names, "Quiet": False})
        except S3Failure as failure:
            yield from (Deletion(stored, DeletionOutcome.FAILED, failure) for stored in objects)
            return
        gone = {item["Key"] for item in answer.get("Deleted", ())}
        refused = {item["Key"]: item.get("Code", "") for item in answer.get("Errors", ())}
        for stored in objects:
            name = self.address.root + stored.key
            if name in refused and refused[name] != "NoSuchKey":
                yield Deletion(stored, DeletionOutcome.FAILED, refusal(refused[name], 0, self.url))
            elif name in gone or name in refused:
                yield Deletion(stored, DeletionOutcome.GONE)
            else:
                silent = S3Failure(ErrorCode.STORE_UNREACHABLE, f"{self.url} does not report on {stored.key!r}.")
                yield Deletion(stored, DeletionOutcome.FAILED, silent)

    def _description(self, key: str, **more: str) -> Answer | None:
        """What HeadObject says. It refuses without a reason, so a byte is read to learn the reason."""
        name = self.address.name(key)
        if name is None:
            return None
        try:
            description = self._request("head_object", Key=name, **more)
        except S3Failure as failure:
            if failure.reason not in _NO_REASON:
                raise
        else:
            if "ETag" not in description:
                raise S3Failure(
                    ErrorCode.UNREADABLE, f"{self.url} gives {key!r} no ETag, by which to tell its versions."
                )
            return description
        try:
            self._request("get_object", Key=name, Range="bytes=0-0")["Body"].close()
        except S3Failure as failure:
            if failure.reason in _MISSING:
                return None
            if failure.reason != _BEYOND_ITS_END:
                raise
        return self._request("head_object", Key=name, **more)

    def _read(self, key: str, start: int, end: int | None, version: str | None = None) -> bytes:
        name = self.address.name(key)
        if name is None:
            raise object_missing(self.url, key)
        span = f"bytes={start}-{'' if end is None else end - 1}"
        condition = {} if version is None else {"IfMatch": version}
        try:
            answer = self._request("get_object", Key=name, Range=span, **condition)
            return self._range(key, answer, start, end)
        except S3Failure as failure:
            if failure.reason == _BEYOND_ITS_END:
                return b""
            if failure.reason in _CHANGED:
                raise replaced_while_read(self.url, key) from None
            if failure.reason in _MISSING:
                raise object_missing(self.url, key) from None
            if failure.reason in _ARCHIVED:
                raise object_archived(self.url, key) from None
            raise

    def _range(self, key: str, answer: Answer, start: int, end: int | None) -> bytes:
        body, content_range = self.connection.body(answer, self.url), answer.get("ContentRange", "")
        status = answer["ResponseMetadata"]["HTTPStatusCode"]
        return asked_range(body, start, end, status=status, content_range=content_range, url=self.url, key=key)

    def _request(self, operation: Operation, **parameters: Any) -> Answer:
        return self.connection.request(operation, self.url, Bucket=self.address.bucket, **parameters)


def _decoding(page: Answer) -> Callable[[str], str]:
    return unquote_plus if page.get("EncodingType") == "url" else str


def _described(key: str, description: Mapping[str, Any]) -> StoredObject:
    modified_ms = whole_seconds_ms(description["LastModified"])
    storage_class = description.get("StorageClass", _USUAL_CLASS)
    return StoredObject(key, description["ContentLength"], modified_ms, description["ETag"], storage_class)
