"""`tieredctl wal verify`: everything that can be wrong with a combined object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import cut, flip_last, objects, remove


def flip_first_batch(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)


OF_OBJECTS: dict[str, tuple[Callable[[Path], None], str, int, str]] = {
    "gone": (remove, "listing", 4, "wal-object-missing"),
    "cut short": (cut, "listing", 4, "wal-object-damaged"),
    "with another index": (flip_first_batch, "headers", 4, "wal-object-damaged"),
    "with another last byte": (flip_last, "full", 4, "wal-object-damaged"),
}


@pytest.mark.parametrize("fault", OF_OBJECTS)
def test_an_object_is_found_to_be(fault: str, uploaded: Path, tieredctl: Tieredctl) -> None:
    break_it, level, code, finding = OF_OBJECTS[fault]
    break_it(objects(uploaded)[0])

    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "--level", level, "-o", "json")

    assert outcome.finding(code)["code"] == finding
    assert outcome.document()["summary"]["complete"]


@pytest.mark.parametrize("level", ["listing", "headers", "full"])
def test_what_is_sound_has_no_findings_at_any_level(level: str, uploaded: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "--level", level, "-o", "json")

    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])


def test_a_strangers_object_needs_attention(uploaded: Path, tieredctl: Tieredctl) -> None:
    (uploaded / "notes.txt").write_text("?")

    outcome = tieredctl("wal", "verify", "--store", f"file:{uploaded}", "-o", "json")

    assert outcome.finding(3)["code"] == "wal-object-unreferenced"


def test_of_a_bucket_that_is_given_by_mistake_not_all_objects_are_findings(store: Path, tieredctl: Tieredctl) -> None:
    for number in range(1_100):
        (store / f"{number}.log").touch()

    document = tieredctl("wal", "verify", "--store", f"file:{store}", "-o", "json").document()

    assert (document["summary"]["otherObjects"], len(document["items"])) == (1_100, 1_000)
