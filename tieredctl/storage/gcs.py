"""A bucket of Google Cloud Storage as an object store."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import (
    UPLOAD_PART_BYTES,
    Capability,
    Deletion,
    DeletionOutcome,
    KeptVersion,
    ObjectStore,
    Pieces,
    Retention,
    StoredObject,
    Versioning,
)
from tieredctl.process.progress import begin_listing, note_listed
from tieredctl.storage.bucket_store import BucketStore, concurrently, date_ms
from tieredctl.storage.byte_ranges import asked_range
from tieredctl.storage.gcs_connection import ONCE, GcsConnection, GcsFailure, failing_as_tieredctl, refusal
from tieredctl.storage.gcs_upload import upload_in_chunks
from tieredctl.storage.no_multipart_uploads import NoMultipartUploads
from tieredctl.storage.refusals import (
    demand,
    demand_batch,
    key_impossible,
    object_missing,
    replaced_while_read,
)
from tieredctl.storage.upload_parts import Upload

GCS_CAPABILITIES = frozenset(Capability) - {Capability.MULTIPART_UPLOADS, Capability.MODIFICATION_TIMES}
"""Resumable uploads cannot be listed."""

_PAGE_OBJECTS = 1_000
_LISTED_FIELDS = "items(name,size,generation,timeCreated,storageClass),nextPageToken"
# A path of these would lead the request to the bucket's own address.
_NAMES_REFUSED = {".", ".."}
_KEPT_BY_A_COPY = (
    "cache_control",
    "content_disposition",
    "content_encoding",
    "content_language",
    "content_type",
    "custom_time",
    "metadata",
    "storage_class",
)


@dataclass(frozen=True, slots=True)
class GcsStore(NoMultipartUploads, BucketStore[GcsConnection]):
    """An object's version is its generation."""

    capabilities: frozenset[Capability] = GCS_CAPABILITIES

    def _listing(self, prefix: str, start_after: str) -> Iterator[StoredObject]:
        begin_listing(prefix, start_after)
        asked = {"prefix": self.address.root + prefix, "fields": _LISTED_FIELDS, "page_size": _PAGE_OBJECTS}
        if start := self.address.start(start_after):
            asked["start_offset"] = start
        try:
            yield from map(self._stored, self._blobs(asked))
        except GcsFailure as failure:
            raise (self._bucket_missing() if failure.is_missing else failure) from None

    def _blobs(self, asked: Mapping[str, Any]) -> Iterator[Any]:
        """What a listing holds, as the library's Blobs."""
        try:
            with failing_as_tieredctl(self.url):
                pages = self._client.list_blobs(self.address.bucket, **asked, **ONCE).pages
                for page in self.address.pages_that_end(pages, lambda page: not page.num_items):
                    note_listed(page.num_items)
                    yield from page
        except (AttributeError, KeyError, TypeError, ValueError):
            raise GcsFailure(ErrorCode.UNREADABLE, f"{self.url} does not answer with a listing.") from None

    def head(self, key: str) -> StoredObject | None:
        blob = self._description(key)
        return None if blob is None else self._stored(blob)

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        blob = self._description(stored.key)
        if blob is None or str(blob.generation) != stored.version:
            return {}
        md5 = {"md5": b64decode(blob.md5_hash).hex()} if blob.md5_hash else {}
        return md5 | ({"crc32c": blob.crc32c} if blob.crc32c else {})

    def time_ms(self) -> int | None:
        listing = f"{self._client._connection.API_BASE_URL}/storage/v1/b/{self.address.bucket}/o"
        with failing_as_tieredctl(self.url):
            answer = self._client._http.get(listing, params={"maxResults": 1, "fields": "kind"})
        if not answer.ok:
            raise refusal(answer.status_code, self.url)
        return date_ms(answer.headers)

    def retention(self) -> Retention:
        try:
            with failing_as_tieredctl(self.url):
                bucket = self._client.get_bucket(self.address.bucket, **ONCE)
        except GcsFailure as failure:
            if failure.code not in (ErrorCode.STORE_FORBIDDEN, ErrorCode.UNREADABLE):
                raise
            return Retention(Versioning.UNKNOWN)
        seconds = bucket.soft_delete_policy.retention_duration_seconds
        lock = f"A retention policy keeps objects for {bucket.retention_period} seconds"
        return Retention(
            Versioning.ENABLED if bucket.versioning_enabled else Versioning.OFF,
            lock if bucket.retention_period else None,
            int(seconds) / 86_400 if seconds else None,
        )

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        return (kept for kept in self.version_entries(prefix) if kept is not None)

    def version_entries(self, prefix: str = "") -> Iterator[KeptVersion | None]:
        """As `kept_versions`, with None for each version that a listing shows too."""
        name, versions_listed = "", set[str]()
        for blob in self._blobs({"prefix": self.address.root + prefix, "versions": True}):
            stored = self._stored(blob)
            if blob.name != name:
                is_new, name, versions_listed = blob.name.encode() > name.encode(), blob.name, set()
            else:
                is_new = stored.version not in versions_listed
            if not is_new:
                raise GcsFailure(ErrorCode.UNREADABLE, f"{self.url} lists {stored.key!r} out of order, or twice.")
            versions_listed.add(stored.version)
            modified_ms, storage_class = stored.last_modified_ms, stored.storage_class
            kept = KeptVersion(stored.key, stored.version, stored.size, modified_ms, False, storage_class)
            yield kept if blob._properties.get("timeDeleted") else None

    def read_version(self, kept: KeptVersion) -> bytes:
        name, generation = self.address.root + kept.key, int(kept.version_id)
        blob = self._client.bucket(self.address.bucket).blob(name, generation=generation)
        try:
            with failing_as_tieredctl(self.url):
                data: bytes = blob.download_as_bytes(raw_download=True, **ONCE)
        except GcsFailure as failure:
            if failure.is_missing:
                raise object_missing(self.url, kept.key) from None
            raise
        return data

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        name = self.address.root + key
        try:
            found = [blob for blob in self._blobs({"prefix": name, "soft_deleted": True}) if blob.name == name]
        except GcsFailure as failure:
            told = failure.code is ErrorCode.UNREADABLE and self.retention()
            if told and told.versioning is not Versioning.UNKNOWN and told.soft_delete_days is None:
                return ()
            raise
        # Servers that do not know the question list what is there.
        stored = [self._stored(blob) for blob in found if blob._properties.get("softDeleteTime")]
        return [
            KeptVersion(key, one.version, one.size, one.last_modified_ms, False, one.storage_class) for one in stored
        ]

    def write(self, key: str, data: bytes) -> StoredObject:
        return self._put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        return self._put_if(key, data, 0)

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        demand(Capability.CONDITIONAL_UPLOAD, self.capabilities, self.url)
        if size < part_bytes:
            return self._put_if(key, next(Upload(key, size, pieces).parts(part_bytes)), 0)
        blob = self._blob(self._writable_name(key))
        try:
            blob._set_properties(upload_in_chunks(self._client, self.url, blob, Upload(key, size, pieces), part_bytes))
        except GcsFailure as failure:
            if failure.is_changed:
                return None
            raise (self._bucket_missing() if failure.is_missing else failure) from None
        return self._stored(blob)

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        return self._put_if(current.key, data, int(current.version))

    def _put_if(self, key: str, data: bytes, generation: int) -> StoredObject | None:
        demand(Capability.CONDITIONAL_WRITE, self.capabilities, self.url)
        try:
            return self._put(key, data, if_generation_match=generation)
        except GcsFailure as failure:
            if failure.is_changed:
                return None
            raise

    def _put(self, key: str, data: bytes, **condition: int) -> StoredObject:
        blob = self._blob(self._writable_name(key))
        try:
            with failing_as_tieredctl(self.url):
                blob.upload_from_string(data, "application/octet-stream", **condition, **ONCE)
        except GcsFailure as failure:
            raise (self._bucket_missing() if failure.is_missing else failure) from None
        return self._stored(blob)

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:  # noqa: ARG002
        target = self._blob(self._writable_name(key))
        original = self._description(source.key)
        condition = {"if_source_generation_match": int(source.version)}
        if Capability.CONDITIONAL_COPY not in self.capabilities:
            condition = {}
            original = original if original and str(original.generation) == source.version else None
        if original is None:
            return None
        if original.kms_key_name:
            key_name = original.kms_key_name.partition("/cryptoKeyVersions/")[0]
            target = self._client.bucket(self.address.bucket).blob(target.name, kms_key_name=key_name)
        for field in _KEPT_BY_A_COPY:
            # A copy that sets one of these must set all: the others would be lost.
            if getattr(original, field) is not None:
                setattr(target, field, getattr(original, field))
        return self._rewritten(original, target, source, condition)

    def can_copy_from(self, other: ObjectStore) -> bool:
        return isinstance(other, GcsStore) and other.connection == self.connection

    def copying_in_parts(self) -> None:
        return None

    def copy_from(self, other: ObjectStore, source: StoredObject, key: str) -> StoredObject | None:
        if not isinstance(other, GcsStore):
            raise TypeError(f"{other.url} is not a store of Google Cloud Storage")
        original = self._client.bucket(other.address.bucket).blob(other.address.root + source.key)
        condition = {"if_generation_match": 0, "if_source_generation_match": int(source.version)}
        target = self._blob(self._writable_name(key))
        # Described, it takes none of the source's content type and metadata along.
        target.content_type = "application/octet-stream"
        return self._rewritten(original, target, source, condition)

    def _rewritten(
        self, original: Any, target: Any, source: StoredObject, condition: Mapping[str, int]
    ) -> StoredObject | None:
        try:
            with failing_as_tieredctl(self.url):
                token, copied, _ = target.rewrite(original, **condition, **ONCE)
                while token:
                    before = copied
                    token, copied, _ = target.rewrite(original, token, **condition, **ONCE)
                    if token and not before < copied < source.size:
                        raise GcsFailure(ErrorCode.UNREADABLE, f"{self.url} does not finish copying {source.key!r}.")
        except GcsFailure as failure:
            if failure.is_changed or failure.is_missing:
                return None
            raise
        return self._stored(target)

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        demand_batch(objects)
        # A batch request holds a hundred at most, and is a hundred requests to Google all the same.
        return concurrently(self._deletion, objects)

    def _deletion(self, stored: StoredObject) -> Deletion:
        name = self._name(stored.key)
        if name is None:
            return Deletion(stored, DeletionOutcome.FAILED, key_impossible(self.url, stored.key))
        conditional = Capability.CONDITIONAL_DELETE in self.capabilities
        condition = {"if_generation_match": int(stored.version)} if conditional else {}
        try:
            with failing_as_tieredctl(self.url):
                self._blob(name).delete(**condition, **ONCE)
        except GcsFailure as failure:
            if failure.is_changed:
                return Deletion(stored, DeletionOutcome.CHANGED)
            if not failure.is_missing:
                return Deletion(stored, DeletionOutcome.FAILED, failure)
            return self._missing(stored)
        return Deletion(stored, DeletionOutcome.GONE)

    def _missing(self, stored: StoredObject) -> Deletion:
        """Gone, unless the bucket itself is."""
        try:
            current = self.head(stored.key)
        except TieredctlError as error:
            return Deletion(stored, DeletionOutcome.FAILED, error)
        return Deletion(stored, DeletionOutcome.GONE if current is None else DeletionOutcome.CHANGED)

    def delete_version(self, kept: KeptVersion) -> None:
        blob = self._client.bucket(self.address.bucket).blob(
            self.address.root + kept.key, generation=int(kept.version_id)
        )
        try:
            with failing_as_tieredctl(self.url):
                blob.delete(**ONCE)
        except GcsFailure as failure:
            if not failure.is_missing:
                raise

    def _description(self, key: str) -> Any:
        """The library's Blob, filled in; None where there is no such object."""
        name = self._name(key)
        if name is None:
            return None
        with failing_as_tieredctl(self.url):
            blob = self._client.bucket(self.address.bucket).get_blob(name, **ONCE)
        if blob is None:
            # The answer is the same where there is no bucket; a listing can tell.
            next(self._listing(key, ""), None)
        return blob

    def _read(self, key: str, start: int, end: int | None, version: str | None = None) -> bytes:
        name = self._name(key)
        if name is None:
            raise object_missing(self.url, key)
        blob, answers, last = self._blob(name), list[Any](), None if end is None else end - 1
        # The library hands out nothing that says which range it was given, but takes its answer's headers here.
        blob._extract_headers_from_download = answers.append
        condition = {} if version is None else {"if_generation_match": int(version)}
        try:
            with failing_as_tieredctl(self.url):
                # Raw: else compressed objects would be decompressed in transit.
                data: bytes = blob.download_as_bytes(start=start, end=last, raw_download=True, **condition, **ONCE)
        except GcsFailure as failure:
            if failure.is_beyond_its_end:
                return b""
            if failure.is_changed:
                raise replaced_while_read(self.url, key) from None
            if failure.is_missing:
                next(self._listing(key, ""), None)
                raise object_missing(self.url, key) from None
            raise
        (answer,) = answers
        status, content_range = answer.status_code, answer.headers.get("Content-Range", "")
        return asked_range(data, start, end, status=status, content_range=content_range, url=self.url, key=key)

    @property
    def _client(self) -> Any:
        return self.connection.client(self.url)

    def _blob(self, name: str) -> Any:
        return self._client.bucket(self.address.bucket).blob(name)

    def _name(self, key: str) -> str | None:
        name = self.address.name(key)
        return None if name in _NAMES_REFUSED else name

    def _stored(self, blob: Any) -> StoredObject:
        try:
            created: datetime = blob.time_created
            modified_ms = int(created.timestamp() * 1_000)
            key = self.address.key(blob.name)
            return StoredObject(key, int(blob.size), modified_ms, str(blob.generation), blob.storage_class)
        except (AttributeError, OverflowError, TypeError, ValueError):
            raise GcsFailure(
                ErrorCode.UNREADABLE, f"{self.url} describes an object in a way that cannot be understood."
            ) from None

    def _bucket_missing(self) -> TieredctlError:
        return TieredctlError(ErrorCode.BUCKET_MISSING, f"There is no bucket for {self.url}.")
