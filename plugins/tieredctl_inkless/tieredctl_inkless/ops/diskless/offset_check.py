"""Do the batches of each partition make a log, from its log start to its high watermark?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import AnyFindingCode, FindingCode
from tieredctl.model.finding_kind import Severity
from tieredctl.model.findings import Finding
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables
from tieredctl_inkless.model.finding_codes import DisklessCode
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows, Partitions, column
from tieredctl_inkless.ops.diskless.finding_places import partition_finding

_GAP, _OVERLAP, _LOG = FindingCode.OFFSET_GAP, FindingCode.OFFSET_OVERLAP, DisklessCode.LOG_ROW_MISMATCH


def check_offsets(
    tables: ControlPlaneTables, rows: BatchRows, partitions: Partitions, doubted: Ints
) -> Iterator[Finding]:
    """Gaps and overlaps, and logs that say something else than their batches do.

    Rows come by partition and last offset. Those with the ids in `doubted` have other coordinates than they should,
    which is reported already: what they alone explain is not reported again.
    """
    check = _OffsetCheck(rows, partitions, np.isin(rows.ids, doubted))
    yield from check.seams()
    # Of a partition that was switched from a classic log, offsets before the switch are in no batch.
    starts = np.maximum(column(tables.logs, "logStartOffset"), column(tables.logs, "disklessStartOffset"))
    ends, sizes = column(tables.logs, "highWatermark"), column(tables.logs, "byteSize")
    for number, log in enumerate(partitions.logs.tolist()):
        if log < 0:
            yield from check.without_log(number)
        else:
            yield from check.ends(number, int(starts[log]), int(ends[log]), int(sizes[log]))


class _OffsetCheck:
    """The batches of every partition, side by side."""

    def __init__(self, rows: BatchRows, partitions: Partitions, doubted: Flags) -> None:
        self._rows, self._names = rows, partitions.names
        self._doubted = doubted
        self._bounds = np.searchsorted(rows.partitions, np.arange(len(partitions.names) + 1))
        self._odd = np.zeros(len(partitions.names), np.bool_)
        """Partitions about which something is reported: their bytes do not add up either."""
        self._odd[rows.partitions[doubted]] = True

    def seams(self) -> Iterator[Finding]:
        """Between two batches of a partition, and in a batch that ends before it begins."""
        rows = self._rows
        for row in np.flatnonzero((rows.bases > rows.lasts) & ~self._doubted).tolist():
            offsets = (int(rows.bases[row]), int(rows.lasts[row]))
            message = f"batch {rows.ids[row]} ends at offset {offsets[1]}, before it begins at {offsets[0]}"
            yield self._partition_finding(_OVERLAP, int(rows.partitions[row]), message, offsets, Severity.CRITICAL)
        same = rows.partitions[1:] == rows.partitions[:-1]
        for row in (np.flatnonzero(same & (rows.bases[1:] != rows.lasts[:-1] + 1)) + 1).tolist():
            number, before, base = int(rows.partitions[row]), int(rows.lasts[row - 1]) + 1, int(rows.bases[row])
            if base > before:
                yield from self._gap(number, before, base - 1)
            elif not (self._doubted[row] or self._doubted[row - 1]):
                message = f"offsets {base} to {before - 1} are in more than one batch"
                yield self._partition_finding(_OVERLAP, number, message, (base, before - 1), Severity.CRITICAL)

    def without_log(self, number: int) -> Iterator[Finding]:
        """A partition that only batches or producers name."""
        count = int(self._bounds[number + 1] - self._bounds[number])
        if count:
            batches = counted(count, "batch of it is", "batches of it are")
            yield self._partition_finding(_LOG, number, f"{batches} there, and its log is not", None, Severity.CRITICAL)

    def ends(self, number: int, start: int, end: int, size: int) -> Iterator[Finding]:
        """From a log's start to its high watermark (exclusive), and its bytes."""
        rows = self._rows.at(slice(int(self._bounds[number]), int(self._bounds[number + 1])))
        base, last = (int(rows.bases[0]), int(rows.lasts[-1])) if len(rows) else (end, end - 1)
        if start < base:
            yield from self._gap(number, start, base - 1)
        if last + 1 < end:
            yield from self._gap(number, last + 1, end - 1)
        if self._odd[number]:
            return
        if last + 1 > end:
            message = f"its batches end at offset {last}, and its high watermark is {end}: the rest is not served"
            yield self._partition_finding(_LOG, number, message, (end, last), Severity.CRITICAL)
        elif len(rows) and int(rows.lasts[0]) < start:
            message = f"a batch ends at offset {rows.lasts[0]}, before the log begins at {start}"
            yield self._partition_finding(_LOG, number, message, (base, int(rows.lasts[0])))
        elif (held := int(rows.sizes.sum())) != size:
            message = f"its batches have {held} bytes, and its log says {size}: retention by size acts wrongly"
            yield partition_finding(_LOG, self._names[number], message, batchBytes=held, logBytes=size)

    def _gap(self, number: int, first: int, last: int) -> Iterator[Finding]:
        """Offsets that no batch has, unless one whose coordinates are doubted lies there or beside them."""
        own = slice(int(self._bounds[number]), int(self._bounds[number + 1]))
        rows = self._rows
        there = (rows.bases[own] <= last + 1) & (rows.lasts[own] >= first - 1) & self._doubted[own]
        if not there.any():
            yield self._partition_finding(_GAP, number, f"offsets {first} to {last} are in no batch", (first, last))

    def _partition_finding(
        self,
        code: AnyFindingCode,
        number: int,
        message: str,
        offsets: tuple[int, int] | None,
        severity: Severity | None = None,
    ) -> Finding:
        self._odd[number] = True
        return partition_finding(code, self._names[number], message, offsets=offsets, severity=severity)
