"""What stores say of multipart uploads that have none, or cannot list them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tieredctl.ports.object_store import Capability, MultipartUpload
from tieredctl.storage.refusals import incapable


class _Store(Protocol):
    @property
    def url(self) -> str: ...


class NoMultipartUploads:
    """The methods of a store without Capability.MULTIPART_UPLOADS: each raises TieredctlError `store-incapable`."""

    __slots__ = ()

    def multipart_uploads(self: _Store, prefix: str = "") -> Iterator[MultipartUpload]:  # noqa: ARG002
        raise incapable(self.url, Capability.MULTIPART_UPLOADS)

    def multipart_upload_bytes(self: _Store, upload: MultipartUpload) -> int:  # noqa: ARG002
        raise incapable(self.url, Capability.MULTIPART_UPLOADS)

    def abort_multipart_upload(self: _Store, upload: MultipartUpload) -> None:  # noqa: ARG002
        raise incapable(self.url, Capability.MULTIPART_UPLOADS)
