"""A bucket of its own that keeps versions, and may have Object Lock."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

RESERVED = ".tieredctl/"


class VersionedBucket:
    """A bucket of an S3 server, inside a `with`: it is emptied and removed afterwards."""

    def __init__(self, client: Any, endpoint: str) -> None:
        self._client = client
        self._endpoint = endpoint
        self._name = f"versioned-{uuid4().hex[:12]}"

    def __enter__(self) -> Self:
        self._client.create_bucket(Bucket=self._name, ObjectLockEnabledForBucket=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for found in self._found():
            place = {"Bucket": self._name, "Key": found["Key"], "VersionId": found["VersionId"]}
            if "Size" in found:
                self._client.put_object_legal_hold(**place, LegalHold={"Status": "OFF"})
            self._client.delete_object(**place, BypassGovernanceRetention=True)
        self._client.delete_bucket(Bucket=self._name)

    def store_words(self, endpoint: str | None = None) -> Sequence[str]:
        """The options that name it as a store."""
        options = (
            "--store-option",
            f"endpoint={endpoint or self._endpoint}",
            "--store-option",
            "addressing-style=path",
        )
        return ("--store", f"s3://{self._name}", *options)

    def fill(self, contents: Mapping[str, bytes]) -> None:
        for key, data in contents.items():
            self._client.put_object(Bucket=self._name, Key=key, Body=data)

    def delete(self, key: str) -> None:
        """As somebody does who does not think of versions."""
        self._client.delete_object(Bucket=self._name, Key=key)

    def lock(self, rule: Mapping[str, Any]) -> None:
        """Keeps what is written from now on; the bucket is empty still."""
        configuration = {"ObjectLockEnabled": "Enabled", "Rule": rule}
        self._client.put_object_lock_configuration(Bucket=self._name, ObjectLockConfiguration=configuration)

    def hold(self, keys: Collection[str]) -> None:
        """Keeps these objects until they are let go."""
        for key in keys:
            self._client.put_object_legal_hold(Bucket=self._name, Key=key, LegalHold={"Status": "ON"})

    def current(self) -> dict[str, bytes]:
        """What a listing shows, but tieredctl's own."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name)
        keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
        return {key: self._read(key) for key in keys if not key.startswith(RESERVED)}

    def kept(self, keys: Collection[str]) -> tuple[int, int]:
        """How many versions and how many delete markers there are of these keys."""
        found = [one for one in self._found() if one["Key"] in keys]
        versions = sum("Size" in one for one in found)
        return versions, len(found) - versions

    def kept_in_quarantine(self) -> int:
        """How many versions of copies there are."""
        return sum("Size" in one and one["Key"].startswith(f"{RESERVED}quarantine/") for one in self._found())

    def forget_own_versions(self) -> None:
        """Deletes all that is tieredctl's own."""
        for one in self._found():
            if one["Key"].startswith(RESERVED):
                self._client.delete_object(Bucket=self._name, Key=one["Key"], VersionId=one["VersionId"])

    def _found(self) -> Iterator[dict[str, Any]]:
        pages = list(self._client.get_paginator("list_object_versions").paginate(Bucket=self._name))
        for page in pages:
            yield from page.get("Versions", ())
            yield from page.get("DeleteMarkers", ())

    def _read(self, key: str) -> bytes:
        data: bytes = self._client.get_object(Bucket=self._name, Key=key)["Body"].read()
        return data
