"""What objects are judged by: one moment of a control plane, read as a whole or asked for some files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tieredctl.formats.windows import Ints
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables, FoundFiles
from tieredctl_inkless.ops.diskless.file_check import NOT_MARKED, FileRows
from tieredctl_inkless.ops.diskless.file_keys import FileKeys

_NONE: Ints = np.zeros(0, np.int64)
_LOST = "The control plane lost files that have batches."


@dataclass(frozen=True, slots=True)
class Moment:
    """Times in ms, by the control plane's own clock."""

    read_ms: int
    files: FileRows
    """The file of each object that is to be judged, if it has one."""
    all_keys: FileKeys
    """The keys of all files, which tell the folders into which its brokers write."""
    newest_commit_ms: int
    """The newest commit of any file."""
    doubt: str | None
    """Why nothing is known to be orphaned by it; None where nothing speaks against that."""
    is_standby: bool
    made_ms: int
    """When its schema was made, at the latest."""


def whole_moment(tables: ControlPlaneTables, files: FileRows, doubt: str | None) -> Moment:
    """All that a control plane knew; `doubt` is why nothing may be removed by it."""
    newest_commit_ms = int(files.committed_ms.max(initial=0))
    return Moment(tables.read_ms, files, files.keys, newest_commit_ms, doubt, tables.is_standby, tables.made_ms)


def moment_of(answer: FoundFiles, all_keys: FileKeys) -> Moment:
    """What it answered about some files."""
    files = [*answer.files.values()]
    marked = [NOT_MARKED if one.marked_ms is None else one.marked_ms for one in files]
    rows = FileRows(
        FileKeys(pa.chunked_array([[*answer.files]], pa.string())),
        _column([one.file_id for one in files]),
        _column([0] * len(files)),
        _column([one.state for one in files]),
        _column(marked),
        _column([one.committed_ms for one in files]),
        _NONE,
        np.cumsum(_column([0, *(one.batch_count for one in files)])),
        _NONE,
    )
    return Moment(
        *(answer.read_ms, rows, all_keys, answer.newest_commit_ms, _LOST if answer.lacks_files else None),
        is_standby=answer.database is None,
        made_ms=answer.made_ms,
    )


def _column(values: list[int]) -> Ints:
    return np.array(values, np.int64)
