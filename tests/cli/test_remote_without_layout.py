"""`remote ls` of a store that no layout explains: its objects, and that nothing is known of their segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl

FIELDS = ("segmentId", "topicId", "partition", "part")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Objects of somebody else."""
    for name in ("backup/a.tar", "backup/b.tar"):
        path = tmp_path / "bucket" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    return f"file:{tmp_path / 'bucket'}"


def test_objects_are_listed_and_what_is_not_known_of_them_is_null(store: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "ls", "--store", store, "-o", "jsonl")

    assert outcome.exit_code == 0
    assert [(one["key"], one["size"]) for one in outcome.lines()] == [("backup/a.tar", 5), ("backup/b.tar", 5)]
    assert {one[name] for one in outcome.lines() for name in FIELDS} == {None}
    assert outcome.err.startswith("No layout explains the first keys of file:")
    assert outcome.err.endswith("Objects are listed without segments.\n")


def test_people_get_totals(store: str, tieredctl: Tieredctl) -> None:
    assert tieredctl("remote", "ls", "--store", store).err.splitlines()[-1] == "2 objects, 10 B."


@pytest.mark.parametrize("words", [("--topic", "orders"), ("--partition", "0")], ids=" ".join)
def test_what_is_selected_needs_a_layout(store: str, tieredctl: Tieredctl, words: tuple[str, ...]) -> None:
    outcome = tieredctl("remote", "ls", "--store", store, *words)

    assert (outcome.exit_code, outcome.out) == (tieredctl("remote", "du", "--store", store).exit_code, "")


def test_an_empty_store_is_not_listed_as_if_it_were_known(tmp_path: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "ls", "--store", f"file:{tmp_path}")

    assert outcome.exit_code != 0
    assert "holds no object that shows its layout" in outcome.err
