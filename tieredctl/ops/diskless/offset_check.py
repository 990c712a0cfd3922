"""Do the batches of each partition make a log, from its log start to its high watermark?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tieredctl.diskless.control_plane import ControlPlaneTables
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import Severity
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.diskless.batch_rows import BatchRows, Partitions, column
from tieredctl.ops.diskless.finding_places import partition_finding

_GAP, _OVERLAP, _LOG = FindingCode.OFFSET_GAP, FindingCode.OFFSET_OVERLAP, FindingCode.LOG_ROW_MISMATCH


def check_offsets(
    tables: ControlPlaneTables, rows: BatchRows, partitions: Partitions, contradicted: Ints
) -> Iterator[Finding]:
    """Gaps and overlaps, and logs that say something else than their batches do.

    Rows come by partition and last offset. Those with the ids in `contradicted` are reported already: what does not fit
    beside them is not reported again.
    """
    doubted = np.zeros(len(partitions.names), np.bool_)
    doubted[rows.partitions[np.isin(rows.ids, contradicted)]] = True
    yield from _between(rows, partitions, doubted)
    yield from _at_the_ends(tables, rows, partitions, doubted)


def _between(rows: BatchRows, partitions: Partitions, doubted: Flags) -> Iterator[Finding]:
    """Marks the partitions in which it finds something as doubted."""
    same = rows.partitions[1:] == rows.partitions[:-1]
    step = rows.bases[1:] - (rows.lasts[:-1] + 1)
    inverted = np.flatnonzero(rows.bases > rows.lasts)
    for row in inverted.tolist():
        number = int(rows.partitions[row])
        if not doubted[number]:
            offsets = (int(rows.bases[row]), int(rows.lasts[row]))
            message = f"batch {rows.ids[row]} ends at offset {offsets[1]}, before it begins at {offsets[0]}"
            yield partition_finding(
                _OVERLAP, partitions.names[number], message, offsets=offsets, severity=Severity.CRITICAL
            )
    found = np.flatnonzero(same & (step != 0)) + 1
    reported = [row for row in found.tolist() if not doubted[rows.partitions[row]]]
    for row in reported:
        name = partitions.names[int(rows.partitions[row])]
        before, base = int(rows.lasts[row - 1]) + 1, int(rows.bases[row])
        ids = [int(rows.ids[row - 1]), int(rows.ids[row])]
        if base > before:
            message = f"offsets {before} to {base - 1} are in no batch"
            yield partition_finding(_GAP, name, message, offsets=(before, base - 1), batchIds=ids)
        else:
            shared = (base, before - 1)
            message = f"offsets {base} to {before - 1} are in more than one batch"
            yield partition_finding(_OVERLAP, name, message, offsets=shared, severity=Severity.CRITICAL, batchIds=ids)
    doubted[rows.partitions[[*reported, *inverted.tolist()]]] = True


def _at_the_ends(
    tables: ControlPlaneTables, rows: BatchRows, partitions: Partitions, doubted: Flags
) -> Iterator[Finding]:
    # Of a partition that was switched from a classic log, offsets before the switch are in no batch.
    starts = np.maximum(column(tables.logs, "logStartOffset"), column(tables.logs, "disklessStartOffset"))
    ends = column(tables.logs, "highWatermark")
    stated = column(tables.logs, "byteSize")
    bounds = np.searchsorted(rows.partitions, np.arange(len(partitions.names) + 1))
    for number, log in enumerate(partitions.logs.tolist()):
        first, after = int(bounds[number]), int(bounds[number + 1])
        if doubted[number]:
            continue
        name = partitions.names[number]
        if log < 0:
            if first < after:
                message = f"{after - first} of its batches are there, and its log is not"
                yield partition_finding(_LOG, name, message, severity=Severity.CRITICAL)
            continue
        start, end = int(starts[log]), int(ends[log])
        base, last = (int(rows.bases[first]), int(rows.lasts[after - 1])) if first < after else (start, start - 1)
        if base > start or last + 1 < end:
            yield from _missing(name, start, base, last, end)
            continue
        if last + 1 > end:
            message = (
                f"its batches end at offset {last}, and its high watermark is {end}: records after it are not read"
            )
            yield partition_finding(_LOG, name, message, offsets=(end, last), severity=Severity.CRITICAL)
            continue
        if first < after and int(rows.lasts[first]) < start:
            message = f"a batch ends at offset {rows.lasts[first]}, before the log begins at {start}"
            yield partition_finding(_LOG, name, message, offsets=(base, int(rows.lasts[first])))
        held = int(rows.sizes[first:after].sum())
        if held != stated[log]:
            message = f"its batches have {held} bytes, and its log says {stated[log]}: retention by size acts wrongly"
            yield partition_finding(_LOG, name, message, batchBytes=held, logBytes=int(stated[log]))


def _missing(name: TopicIdPartition, start: int, base: int, last: int, end: int) -> Iterator[Finding]:
    for first, after in ((start, base), (last + 1, end)):
        if first < after:
            message = f"offsets {first} to {after - 1} are in no batch"
            yield partition_finding(_GAP, name, message, offsets=(first, after - 1))
