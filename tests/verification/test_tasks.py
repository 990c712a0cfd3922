"""A verification task is the same before and after it was a row of a table."""

from __future__ import annotations

from itertools import product

from tests.metadata_logs import started
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ops.verification.tasks import TASK_SCHEMA, task_batch, tasks_in
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject

NOT_UTF_8 = b"caf\xe9/0.index".decode("utf-8", "surrogateescape")
LISTED = {
    Part.LOG: StoredObject("t-0-x/ä/0.log", 1 << 30, 1_700_000_000_000, "etag", "GLACIER"),
    Part.OFFSET_INDEX: StoredObject(
        b"caf\xe9/0.index".decode("utf-8", "surrogateescape"), 8, 1_700_000_000_001, "", None
    ),
}


def task(level: Level, custom_metadata: bytes | None = None) -> SegmentTask:
    metadata = started(
        -5 % 2**128,  # an id with dashes and underscores
        3,
        900,
        {0: 3, 7: 500},
        custom_metadata=custom_metadata,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
        txn_idx_empty=True,
    )
    return SegmentTask(metadata, {part: one.key for part, one in LISTED.items()}, level, 4_097, LISTED)


def test_a_task_is_the_same_after_it_was_a_row() -> None:
    for level, custom_metadata in product(Level, (None, b"", b"\0\xff" * 9)):
        tasks = [task(level, custom_metadata), task(level)]

        batch = task_batch(tasks)

        assert batch.schema == TASK_SCHEMA, (level, custom_metadata)
        assert list(tasks_in(batch)) == tasks, (level, custom_metadata)


def test_a_whole_log_costs_all_its_bytes_and_its_headers_few() -> None:
    full, headers = task_batch([task(Level.FULL), task(Level.HEADERS)]).to_pylist()

    assert full["bytesToRead"] == (1 << 30) + 8
    assert headers["bytesToRead"] < 1 << 20
    assert headers["requests"] > full["requests"] == 2
