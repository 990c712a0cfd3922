"""Does an object hold the batches that the control plane describes?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tieredctl.formats.log_scan import Damage
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl_inkless.model.finding_codes import DisklessCode
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows
from tieredctl_inkless.ops.diskless.finding_places import batch_documents, object_finding
from tieredctl_inkless.ops.diskless.walked_object import WalkedObject

LOG_APPEND_TIME = 1
"""A timestamp type."""


@dataclass(frozen=True, slots=True)
class Spans:
    """The record batches of an object that each row of the control plane covers."""

    firsts: Ints
    lasts: Ints
    """Inclusive."""
    framed: Flags
    """Whether they begin and end where the row says, and lie side by side. Elsewhere the two numbers mean nothing."""


def spans_of(walked: WalkedObject, rows: BatchRows) -> Spans:
    """By their bytes."""
    count = len(walked.positions)
    if not count:
        nothing = np.zeros(len(rows), np.int64)
        return Spans(nothing, nothing, np.zeros(len(rows), np.bool_))
    ends = walked.positions + walked.sizes
    firsts = np.minimum(np.searchsorted(walked.positions, rows.starts), count - 1)
    lasts = np.minimum(np.searchsorted(ends, rows.ends), count - 1)
    framed = (walked.positions[firsts] == rows.starts) & (ends[lasts] == rows.ends) & (firsts <= lasts)
    framed &= _sums(walked.sizes, firsts, lasts) == rows.sizes
    return Spans(firsts, lasts, framed)


def mismatches(walked: WalkedObject, rows: BatchRows, spans: Spans) -> list[str]:
    """How the object contradicts each row; empty where it does not."""
    sentences = [""] * len(rows)

    def note(wrong: Flags, sentence: str, *values: Ints) -> None:
        for row in np.flatnonzero(wrong).tolist():
            sentences[row] = sentences[row] or sentence.format(*(int(value[row]) for value in values))

    note(~spans.framed, "no record batches begin and end there")
    if not len(walked.positions):
        return sentences
    firsts, lasts = np.where(spans.framed, spans.firsts, 0), np.where(spans.framed, spans.lasts, 0)
    covered = lasts - firsts + 1
    offsets = rows.lasts - rows.bases + 1
    held = _sums(walked.counts, firsts, lasts)
    note(spans.framed & (held != offsets), "{} offsets are described, {} are there", offsets, held)
    latest = _greatest(walked.headers["maxTimestamp"].astype(np.int64), firsts, lasts)
    note(
        spans.framed & (latest != rows.max_timestamps),
        "the greatest timestamp described is {}, and {} is there",
        rows.max_timestamps,
        latest,
    )
    appended = _sums(walked.log_append_time.astype(np.int64), firsts, lasts)
    wanted = np.where(rows.timestamp_types == LOG_APPEND_TIME, covered, 0)
    note(spans.framed & (appended != wanted), "timestamp type {} is described, another is there", rows.timestamp_types)
    magics = _greatest(walked.headers["magic"].astype(np.int64), firsts, lasts)
    note(spans.framed & (magics != rows.magics), "magic {} is described, {} is there", rows.magics, magics)
    return sentences


def check_batches(
    key: str,
    walked: WalkedObject,
    rows: BatchRows,
    stated_size: int,
    names: Sequence[TopicIdPartition],
    reported: Flags,
) -> tuple[list[Finding], Ints]:
    """What is wrong with an object, each fault once: its size, damaged batches, batches other than those described. And
    the ids of the rows whose coordinates are doubted: not of those whose bytes are only damaged or lost.

    Of the rows that are `reported` already, whether they are as described is not said again.
    """
    findings: list[Finding] = []
    is_damaged = np.zeros(len(rows), np.bool_)
    for damage in walked.damages:
        hit = (rows.starts < damage.end) & (rows.ends > damage.position)
        is_damaged |= hit
        if hit.any() and walked.size == stated_size:
            findings.append(_corrupt(key, damage, rows.at(hit), names))
    sentences = mismatches(walked, rows, spans_of(walked, rows))
    wrong = np.array([bool(why) for why in sentences], np.bool_) & ~is_damaged
    if walked.size != stated_size:
        findings.append(resized(key, walked.size, stated_size, rows.at(wrong | is_damaged), names))
        wrong &= rows.ends <= walked.size
    elif (new := wrong & ~reported).any():
        findings.append(mismatched(key, rows.at(new), [sentences[row] for row in np.flatnonzero(new).tolist()], names))
    return findings, rows.ids[wrong]


def _corrupt(key: str, damage: Damage, rows: BatchRows, names: Sequence[TopicIdPartition]) -> Finding:
    first = int(rows.partitions[0])
    offsets = (int(rows.bases[0]), int(rows.lasts[0]))
    message = f"at byte {damage.position}: {damage.reason}; at risk are offsets {offsets[0]} to {offsets[1]} of "
    message += f"{names[first].topic}-{names[first].partition}"
    if len(rows) > 1:
        message += f", and {counted(len(rows) - 1, 'more batch', 'more batches')}"
    return object_finding(
        FindingCode.BATCH_CORRUPT,
        key,
        message,
        position=damage.position,
        topic=names[first].topic,
        topicId=names[first].topic_id,
        partition=names[first].partition,
        offsets=list(offsets),
        batches=batch_documents(rows, names),
    )


def resized(key: str, size: int, committed: int, lost: BatchRows, names: Sequence[TopicIdPartition]) -> Finding:
    """An object that has not the size with which it was committed; of these batches something is lost."""
    message = f"the object has {size} bytes, and was committed with {committed}"
    if len(lost):
        message += f"; {counted(len(lost), 'batch', 'batches')} cannot be read"
    documents = batch_documents(lost, names)
    return object_finding(
        FindingCode.SIZE_MISMATCH, key, message, storedSize=size, committedSize=committed, batches=documents
    )


def mismatched(key: str, wrong: BatchRows, sentences: Sequence[str], names: Sequence[TopicIdPartition]) -> Finding:
    """An object that contradicts some batches, and how."""
    partition = names[int(wrong.partitions[0])]
    message = f"{counted(len(wrong), 'batch is', 'batches are')} not as described: "
    message += (
        f"{partition.topic}-{partition.partition} at offset {wrong.bases[0]}, byte {wrong.starts[0]}: {sentences[0]}"
    )
    return object_finding(
        DisklessCode.BATCH_MISMATCH,
        key,
        message,
        position=int(wrong.starts[0]),
        offsets=[int(wrong.bases[0]), int(wrong.lasts[0])],
        topic=partition.topic,
        topicId=partition.topic_id,
        partition=partition.partition,
        batches=batch_documents(wrong, names),
    )


def _sums(values: Ints, firsts: Ints, lasts: Ints) -> Ints:
    running = np.append(0, np.cumsum(values))
    sums: Ints = running[lasts + 1] - running[firsts]
    return sums


def _greatest(values: Ints, firsts: Ints, lasts: Ints) -> Ints:
    """The greatest value of each span; where a span is not one, anything."""
    bounds = np.stack([firsts, np.maximum(lasts, firsts) + 1], axis=1).ravel()
    greatest: Ints = np.maximum.reduceat(np.append(values, values[-1]), bounds)[::2]
    return greatest
