"""tieredctl's own objects in a store, skipped and counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.listing import Listing
from tieredctl.ports.object_store import RESERVED_FOLDER, UNFINISHED


@dataclass(slots=True)
class UnreservedObjects:
    """The objects of a listing without those that are reserved, and how many those were so far."""

    listing: Listing
    passed_over: int = 0
    bytes_passed_over: int = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches by LISTING_SCHEMA."""
        for batch in self.listing.batches():
            reserved = are_reserved(batch.column("key"))
            if not reserved.true_count:
                yield batch
                continue
            self.passed_over += reserved.true_count
            self.bytes_passed_over += int(numbers_in(batch.filter(reserved).column("size")).sum())
            yield batch.filter(pc.invert(reserved))

    def summary(self) -> Document:
        """The sums of what was passed over."""
        return {"objects": self.passed_over, "bytes": self.bytes_passed_over}


def are_reserved(keys: Any) -> Any:
    """`is_reserved` for each."""
    reserved: Any = pc.starts_with(keys, pattern=RESERVED_FOLDER)
    like_unfinished: Any = pc.match_substring(keys, UNFINISHED)
    if not like_unfinished.true_count:
        return reserved
    return pc.or_(reserved, pc.match_substring_regex(keys, f"(^|/){re.escape(UNFINISHED)}[^/]*$"))
