"""Every byte of an object that a batch refers to: altered, it is found, and once."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows
from tieredctl_inkless.ops.diskless.object_check import check_batches
from tieredctl_inkless.ops.diskless.walked_object import walk

from tests.conftest import inputs
from tests.rigs.inkless import InklessCapture
from tests.shares import divided
from tieredctl.model.ids import TopicIdPartition

KEYS = [
    "kafka-prod/diskless/j8sPwINeRtKiPiZlT01R0w",
    "kafka-prod/diskless/NuZ7emvLS0S947EUTMLT_w",
    "kafka-prod/diskless/_J3SWEwmRvyvK2oFPJBMUw",
]
"""Wholly referenced; in part, after a topic was deleted; in part, since the commit refused the rest."""


@pytest.fixture(params=KEYS)
def described(request: pytest.FixtureRequest, captures: Path) -> tuple[bytes, BatchRows]:
    """An object, and the control plane's batches in it."""
    capture = InklessCapture.now(captures / "inkless")
    (file,) = (row for row in capture.tables["files"] if row["object_key"] == request.param)
    batches = [row for row in capture.tables["batches"] if row["file_id"] == file["file_id"]]
    batches.sort(key=lambda row: int(row["byte_offset"]))
    names = ("base_offset", "last_offset", "byte_offset", "byte_size", "magic", "timestamp_type", "batch_max_timestamp")
    columns = [np.array([row[name] for row in batches], np.int64) for name in ("batch_id", "file_id", *names)]
    rows = BatchRows(columns[0], np.arange(len(batches)), *columns[1:])
    return (capture.folder / "bucket" / request.param).read_bytes(), rows


def found(data: bytes, size: int, rows: BatchRows) -> list[str]:
    """The codes of what is found in an object that was committed with a size."""
    names = [TopicIdPartition("", "t", number) for number in range(len(rows))]
    nothing = np.zeros(len(rows), np.bool_)
    findings, doubted = check_batches("key", walk([data], len(data)), rows, size, names, nothing)
    codes = [str(finding.code) for finding in findings]
    assert ("batch-mismatch" in codes) == bool(len(doubted)) or len(data) != size
    return codes


def test_an_altered_byte_is_found_once_if_a_batch_has_it(described: tuple[bytes, BatchRows]) -> None:
    data, rows = described
    referenced = np.zeros(len(data), np.bool_)
    for start, end in zip(rows.starts.tolist(), rows.ends.tolist(), strict=True):
        referenced[start:end] = True
    chance = random.Random(1)
    for position in divided(chance.sample(range(len(data)), min(len(data), inputs(300)))):
        altered = bytearray(data)
        altered[position] ^= 1 << chance.randrange(8)

        codes = found(bytes(altered), len(data), rows)

        assert codes == (["batch-corrupt"] if referenced[position] else []), position


def test_an_object_cut_or_grown_anywhere_is_found_once(described: tuple[bytes, BatchRows]) -> None:
    data, rows = described
    for size in divided(random.Random(2).sample(range(2 * len(data)), inputs(100))):
        if size != len(data):
            assert found((data + data)[:size], len(data), rows) == ["size-mismatch"]


def test_noise_of_the_same_size_is_found(described: tuple[bytes, BatchRows]) -> None:
    data, rows = described
    for seed in divided(range(inputs(20))):
        assert found(random.Random(seed).randbytes(len(data)), len(data), rows)
