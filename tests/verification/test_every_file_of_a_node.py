"""`store inspect` knows every file in the log directories of real nodes, running and stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.inspection.inspect import FileKind, identify, inspect

OF_A_STOPPED_BROKER = {
    FileKind.META_PROPERTIES,
    FileKind.PARTITION_METADATA,
    FileKind.LOG,
    FileKind.CHECKPOINT,
    FileKind.LEADER_EPOCH_CHECKPOINT,
    FileKind.KRAFT_SNAPSHOT,
    FileKind.QUORUM_STATE,
}
CAPTURES = ["kafka-4.3.1", "kafka-3.9.1", "rlmm-3.4.1", "aiven-plain-4.3.1", "aiven-crash-4.3.1"]


def kinds_of(folder: Path) -> Iterator[FileKind]:
    """The kind of each file, by its name alone, once it was read to its end."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        kind = identify(path.name, b"")
        assert kind is not None, path
        try:
            for _ in inspect(path).entries:
                pass
        except TieredctlError as error:
            if error.code is not ErrorCode.PATH_MISSING:  # a running broker may remove a file meanwhile
                raise
        yield kind


@pytest.mark.parametrize("capture", CAPTURES)
def test_of_a_stopped_broker(captures: Path, capture: str) -> None:
    found = set(kinds_of(captures / capture / "data"))

    assert found >= (OF_A_STOPPED_BROKER if capture != "rlmm-3.4.1" else {FileKind.LOG})


def test_of_a_running_node(driven: DrivenBroker) -> None:
    found = set(kinds_of(driven.broker.log_dir))

    assert found >= OF_A_STOPPED_BROKER | {FileKind.LOCK}
