"""The checksums of all bytes that an S3 server tells of an object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ALGORITHMS = ("CRC64NVME", "CRC32C", "CRC32", "SHA256", "SHA1")
_OF_PARTS = "-of-parts"
_MD5 = re.compile(r'"([0-9a-f]{32})(-\d{1,5})?"')
_ETAG_IS_RANDOM = ("aws:kms", "aws:kms:dsse")


def checksums_in(description: Mapping[str, Any]) -> dict[str, str]:
    """What `ObjectStore.checksums` gives, from HeadObject's answer to a request with ChecksumMode.

    For an object uploaded in parts, some checksums and the ETag are of the parts' checksums: they depend on where the
    parts end, and have names of their own. The ETag of an object encrypted with a customer's key says nothing.
    """
    of_parts = description.get("ChecksumType") == "COMPOSITE"
    checksums = {}
    for algorithm in _ALGORITHMS:
        if value := description.get(f"Checksum{algorithm}"):
            checksums[algorithm.lower() + (_OF_PARTS if of_parts or "-" in value else "")] = value
    is_random = description.get("ServerSideEncryption") in _ETAG_IS_RANDOM or "SSECustomerAlgorithm" in description
    if not is_random and (etag := _MD5.fullmatch(description["ETag"])):
        digest, parts = etag.groups()
        checksums["md5" if parts is None else "md5" + _OF_PARTS] = digest + (parts or "")
    return checksums
