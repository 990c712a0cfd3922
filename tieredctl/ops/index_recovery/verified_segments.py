"""The segments that a `verify` result calls in need of their indexes. The file is a claim: which of them need anything
is found out from the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.ids import is_uuid
from tieredctl.ops.file_reading import demand_size, reading, regular_size

_KIND = "Verification"
_MENDED = frozenset(
    {
        FindingCode.OBJECT_MISSING,
        FindingCode.SIZE_MISMATCH,
        FindingCode.INDEX_DAMAGED,
        FindingCode.PRODUCER_SNAPSHOT_DAMAGED,
        FindingCode.PRODUCER_SNAPSHOT_MISSING,
        FindingCode.TRANSACTION_INDEX_MISSING,
        FindingCode.TRANSACTION_INDEX_DAMAGED,
    }
)
_LARGEST_BYTES = 1 << 30
_HINT = "Give what `tieredctl verify -o json` wrote."


class VerifiedSegments(NamedTuple):
    """What a result says."""

    segment_ids: frozenset[str]
    cluster_id: str | None
    """Of the metadata that it was verified by."""


def read_verified_segments(path: Path) -> VerifiedSegments:
    """The segments of a file. Raises TieredctlError where it cannot be read, or is something else."""
    with reading(path):
        demand_size(path, regular_size(path), _LARGEST_BYTES, "It is not what verify wrote.")
        data = path.read_bytes()
    try:
        document = json.loads(data)
        if document["kind"] != _KIND:
            raise ValueError(document["kind"])
        ids = frozenset(filter(None, map(_segment_id, document["items"])))
        return VerifiedSegments(ids, document["source"].get("clusterId"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TieredctlError(ErrorCode.USAGE, f"{path} is not a result of verify.", hint=_HINT) from None


def _segment_id(item: dict[str, Any]) -> str | None:
    """Of a finding about a part that may be made again; an id that is none is a fault of the file."""
    found = item["evidence"].get("segmentId") if item["code"] in _MENDED else None
    if found is not None and not (isinstance(found, str) and is_uuid(found)):
        raise ValueError(found)
    return found
