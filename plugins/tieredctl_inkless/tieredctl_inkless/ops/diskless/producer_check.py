"""Is the state of each idempotent producer that of the batch it names?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl_inkless.model.finding_codes import DisklessCode
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows, ProducerRows
from tieredctl_inkless.ops.diskless.finding_places import partition_finding
from tieredctl_inkless.ops.diskless.object_check import Spans
from tieredctl_inkless.ops.diskless.walked_object import WalkedObject

_SEQUENCES = 1 << 31
_FIELDS = ("producer id", "epoch", "first sequence", "last sequence", "greatest timestamp")


def rows_of_producers(rows: BatchRows, producers: ProducerRows) -> Ints:
    """The row of the batch that has each producer state's offset; -1 where that batch is gone."""
    offsets = np.concatenate([rows.bases, producers.offsets])
    partitions = np.concatenate([rows.partitions, producers.partitions])
    is_state = np.arange(len(offsets)) >= len(rows)
    order = np.lexsort((is_state, offsets, partitions))
    latest = np.maximum.accumulate(np.where(is_state[order], -1, np.arange(len(order))))
    before = np.empty(len(order), np.int64)
    before[order] = np.where(latest >= 0, order[latest], -1)
    rows_of_states = before[len(rows) :]
    fits = rows_of_states >= 0
    fits[fits] = (rows.partitions[rows_of_states[fits]] == producers.partitions[fits]) & (
        rows.lasts[rows_of_states[fits]] >= producers.offsets[fits]
    )
    return np.where(fits, rows_of_states, -1)


def check_producers(
    key: str,
    walked: WalkedObject,
    rows: BatchRows,
    spans: Spans,
    states: tuple[ProducerRows, Ints],
    names: Sequence[TopicIdPartition],
) -> Iterator[Finding]:
    """`states` are producer states, and for each the row among `rows` that has its offset. Rows that the object
    contradicts are left out: their offsets are not known."""
    producers, owners = states
    before = np.append(0, np.cumsum(walked.counts))
    for number, row in enumerate(owners.tolist()):
        if not spans.framed[row]:
            continue
        first = int(spans.firsts[row])
        wanted = int(producers.offsets[number] - rows.bases[row]) + int(before[first])
        batch = int(np.searchsorted(before, wanted))
        stated, offset = _stated(producers, number), int(producers.offsets[number])
        if batch > spans.lasts[row] or before[batch] != wanted:
            message = f"the state of producer {stated[0]} names offset {offset}: no record batch begins there"
        else:
            held = _held(walked, batch)
            wrong = [name for name, one, other in zip(_FIELDS, stated, held, strict=True) if one != other]
            if not wrong:
                continue
            message = f"the state of producer {stated[0]} at offset {offset} has another {' and '.join(wrong)} "
            message += "than in the record batch there"
        yield partition_finding(
            DisklessCode.PRODUCER_STATE_MISMATCH,
            names[int(producers.partitions[number])],
            message,
            offsets=(offset, offset),
            key=key,
            producerId=stated[0],
        )


def _stated(producers: ProducerRows, number: int) -> tuple[int, ...]:
    columns = (
        producers.producer_ids,
        producers.epochs,
        producers.base_sequences,
        producers.last_sequences,
        producers.max_timestamps,
    )
    return tuple(int(values[number]) for values in columns)


def _held(walked: WalkedObject, batch: int) -> tuple[int, ...]:
    header = walked.headers[batch]
    base, delta = int(header["baseSequence"]), int(header["lastOffsetDelta"])
    last = (base + delta) % _SEQUENCES if base >= 0 else base
    return (int(header["producerId"]), int(header["producerEpoch"]), base, last, int(header["maxTimestamp"]))
