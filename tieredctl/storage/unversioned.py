"""The answers of stores that keep nothing but objects: no versions, no checksums, no connections, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import KeptVersion, Retention, StoredObject


class UnversionedStore:
    """The part of a `WritableObjectStore` that is the same in all such stores."""

    __slots__ = ()

    def reconnected(self) -> Self:
        return self

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def time_ms(self) -> int | None:
        return None

    def retention(self) -> Retention:
        return Retention()

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:  # noqa: ARG002
        return iter(())

    def read_version(self, kept: KeptVersion) -> bytes:
        raise TieredctlError(ErrorCode.OBJECT_MISSING, f"This store keeps no version of {kept.key}.")

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:  # noqa: ARG002
        return ()

    def delete_version(self, kept: KeptVersion) -> None:
        """Nothing is kept here."""
