"""What some stores can do besides: copy objects of another store of their service, no byte of which passes through
here."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore


@runtime_checkable
class CopiesFromOthers(WritableObjectStore, Protocol):
    """A store that copies from others of its service."""

    def can_copy_from(self, other: ObjectStore) -> bool:
        """Whether both are of one service, asked by the same account, as far as settings tell. Makes no request."""
        ...

    def copying_in_parts(self) -> CopiesFromOthers | None:
        """The same store, making each copy in parts: some servers complete these only where nothing is, though they
        copy over what is there. None where there are no parts."""
        ...

    def copy_from(self, other: ObjectStore, source: StoredObject, key: str) -> StoredObject | None:
        """Makes an object of the bytes that `other` has as the version `source`. Asked only if `can_copy_from(other)`.

        None, and nothing is changed, where the key has an object already, or `other` has another version by now. The
        object is there when all of it is, and never before. It has the destination's defaults for all but its bytes;
        its time may be that of the answer. Raises TieredctlError where the service refuses.
        """
        ...
