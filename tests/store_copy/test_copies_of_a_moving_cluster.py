"""What brokers promise while a copy runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.cluster import LAYOUT
from tests.metadata_logs import copied, started, write_events
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.store_copy.comparison import By
from tieredctl.ports.layout import Part
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.store_copy import StoreCopying, TwoStores, store_copying

SIZE = 1000


def write_objects(store: Path, number: int) -> None:
    """All of segment `number`, which has ten records."""
    segment = started(number, 10 * number, 10 * number + 9)
    for part, key in LAYOUT.promised_objects(segment).items():
        (store / key).parent.mkdir(parents=True, exist_ok=True)
        (store / key).write_bytes(b"." * SIZE if part is Part.LOG else b"")


def write_metadata(log_dir: Path, *numbers: int) -> None:
    write_events(log_dir, *(event for one in numbers for event in copied(one, 10 * one, 10 * one + 9)))


@contextmanager
def copying(folder: Path) -> Iterator[StoreCopying]:
    """A copy that is planned when the cluster has segment 0 alone."""
    for name in ("source", "copy"):
        write_objects(folder / name, 0)
    write_metadata(folder / "data", 0)
    source, copy = (StorePlace(f"file:{folder / name}", {}, "local") for name in ("source", "copy"))
    stores = TwoStores(source, copy, MetadataPlace(log_dirs=(folder / "data",)), 0)
    with store_copying(stores, By.SIZE, to_apply=False) as planned:
        yield planned


def missing(planned: StoreCopying) -> int:
    planned.look_at_destination()
    return sum(one.code is FindingCode.OBJECT_MISSING for one in planned.findings)


def test_what_is_promised_since_the_copy_was_planned_and_the_source_has_is_not_missing(tmp_path: Path) -> None:
    with copying(tmp_path) as planned:
        write_objects(tmp_path / "source", 1)
        write_metadata(tmp_path / "data", 0, 1)

        assert missing(planned) == 0


def test_what_is_promised_since_and_the_source_lacks_is_missing(tmp_path: Path) -> None:
    with copying(tmp_path) as planned:
        write_metadata(tmp_path / "data", 0, 1)

        assert missing(planned) == 5


def test_what_was_promised_before_and_the_destination_lacks_is_missing(tmp_path: Path) -> None:
    with copying(tmp_path) as planned:
        write_metadata(tmp_path / "data", 0, 1)
        write_objects(tmp_path / "copy", 1)
        for file in (tmp_path / "copy").glob(f"*/{0:020d}-*"):
            file.unlink()

        assert missing(planned) == 5
