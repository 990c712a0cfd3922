"""`diskless verify` as a whole: what it counts, what happens meanwhile, and what it does not know."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import ONE_BATCH, TWO_PARTITIONS, flip, verified
from tests.rigs.inkless import Inkless
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.file import FileStore

FIRST = "kafka-prod/diskless/FrTjxG6RTAWZM9dBVln02Q"
"""The object of file 1, which is read first."""


def remove(inkless: Inkless) -> None:
    (inkless.bucket / TWO_PARTITIONS).unlink()


def test_an_object_is_missing_only_if_the_control_plane_still_has_it(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention deletes files while they are verified."""
    asked = PostgresControlPlane.states_of

    def meanwhile(self: PostgresControlPlane, keys: Any) -> Any:
        tidy.run("DELETE FROM batches WHERE file_id = 2", "UPDATE files SET state = 'deleting' WHERE file_id = 2")
        return asked(self, keys)

    monkeypatch.setattr(PostgresControlPlane, "states_of", meanwhile)
    remove(tidy)

    assert verified(tidy, tieredctl).exit_code == 0


def test_the_whole_capture_is_verified_and_what_is_left_behind_is_reported(
    inkless: Inkless, tieredctl: Tieredctl
) -> None:
    objects = {row["object_key"]: row for row in inkless.capture.tables["files"]}
    physical = [
        batch
        for one in inkless.capture.document["objects"]
        if one["in_bucket"] and one["live_batch_rows"]
        for batch in one["physical"]
    ]

    outcome = verified(inkless, tieredctl)

    document = outcome.document()
    summary = document["summary"]
    assert outcome.exit_code == 3
    assert (summary["files"], summary["batchRows"], summary["complete"]) == (len(objects), 30, True)
    assert summary["batches"] == len(physical)
    assert summary["records"] == sum(batch["record_count"] for batch in physical)
    assert summary["bytesRead"] == sum(batch["size"] for batch in physical)
    causes = {item["evidence"]["cause"]: item["evidence"]["objects"] for item in document["items"]}
    assert causes == {"no-metadata": 2, "delete-never-finished": 1}


def test_a_table_begins_with_a_sentence(tidy: Inkless, tieredctl: Tieredctl) -> None:
    remove(tidy)

    outcome = tieredctl("diskless", "verify", "--level", "listing", *tidy.places)

    assert outcome.exit_code == 4
    assert outcome.err.startswith("Verified 14 files, 30 batches (listing): 1 finding. Not read: what the objects hold")
    assert outcome.out.startswith("critical: object-missing: ")


def test_what_is_committed_while_the_bucket_is_listed_is_not_missing(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = FileStore.list

    def before_it_was_uploaded(self: FileStore, *words: str) -> Any:
        return (stored for stored in listing(self, *words) if stored.key != TWO_PARTITIONS)

    monkeypatch.setattr(FileStore, "list", before_it_was_uploaded)

    outcome = verified(tidy, tieredctl)

    assert (outcome.exit_code, outcome.document()["summary"]["objects"]) == (0, 12)


def test_what_is_missing_is_unknown_while_the_control_plane_cannot_be_asked_again(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(self: PostgresControlPlane, keys: Any) -> Any:
        raise TieredctlError(ErrorCode.CONTROL_PLANE_UNREACHABLE, "The control plane does not answer: gone")

    monkeypatch.setattr(PostgresControlPlane, "states_of", silent)
    remove(tidy)

    outcome = verified(tidy, tieredctl)

    finding = outcome.finding(5)
    assert (finding["code"], outcome.document()["summary"]["complete"]) == ("unreadable", False)


def test_a_store_that_stops_answering_makes_the_rest_unknown(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, asked = FileStore.stream, count()

    def stopping(self: FileStore, key: str, *words: int) -> Any:
        if next(asked) >= 5:
            raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "The store does not answer.")
        return stream(self, key, *words)

    monkeypatch.setattr(FileStore, "stream", stopping)

    outcome = verified(tidy, tieredctl)

    summary = outcome.document()["summary"]
    assert outcome.finding(5)["code"] == "unreadable"
    assert (summary["objects"], summary["notLookedAt"], summary["complete"]) == (5, 7, False)


def _silent(*_: Any) -> Any:
    raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")


@pytest.mark.parametrize("answer", [(PostgresControlPlane, "states_of"), (FileStore, "head")], ids=lambda one: one[1])
def test_what_was_found_is_reported_though_nothing_answers_at_the_end(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, answer: tuple[type, str]
) -> None:
    flip(TWO_PARTITIONS, 1000)(inkless)
    monkeypatch.setattr(*answer, _silent)

    outcome = verified(inkless, tieredctl)

    assert outcome.exit_code == 4
    assert sorted(item["code"] for item in outcome.document()["items"]) == ["batch-corrupt", "unreadable"]
    assert not outcome.document()["summary"]["complete"]


def test_what_was_found_is_reported_though_the_store_dies_while_objects_are_read(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, asked = FileStore.stream, count()

    def stopping(self: FileStore, key: str, *words: int) -> Any:
        if next(asked) >= 5:
            monkeypatch.setattr(FileStore, "head", _silent)
            _silent()
        return stream(self, key, *words)

    flip(FIRST, 1000)(inkless)
    monkeypatch.setattr(FileStore, "stream", stopping)

    outcome = verified(inkless, tieredctl)

    assert outcome.exit_code == 4
    assert sorted(item["code"] for item in outcome.document()["items"]) == ["batch-corrupt", "unreadable"]


def test_contradictions_of_the_control_plane_are_reported_though_the_store_answers_nothing_more(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidy.run("DELETE FROM batches WHERE batch_id = 8")
    (tidy.bucket / ONE_BATCH).unlink()
    monkeypatch.setattr(FileStore, "head", _silent)

    outcome = verified(tidy, tieredctl)

    assert outcome.exit_code == 4
    assert sorted(item["code"] for item in outcome.document()["items"]) == ["offset-gap", "unreadable"]
    assert outcome.document()["summary"]["notLookedAt"] == 12


def test_an_object_that_is_altered_on_the_way_is_not_called_damaged(
    tidy: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, asked = FileStore.stream, count()

    def once_altered(self: FileStore, key: str, *words: int) -> Any:
        for piece in stream(self, key, *words):
            is_first = key == ONE_BATCH and next(asked) == 0
            yield bytes([piece[0] ^ 1]) + piece[1:] if is_first else piece

    monkeypatch.setattr(FileStore, "stream", once_altered)

    assert verified(tidy, tieredctl).finding(3)["code"] == "altered-in-transit"


@pytest.mark.parametrize("output", ["table", "wide", "json", "jsonl", "csv", "yaml"])
@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("verify", "--level", "listing", "--progress", "none"),
        ("orphans", "scan"),
        ("inspect", TWO_PARTITIONS),
        ("explain", "orders:0@45"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_has_every_output_format(
    tidy: Inkless, tieredctl: Tieredctl, words: tuple[str, ...], output: str
) -> None:
    metrics = tidy.bucket.parent / "metrics"

    outcome = tieredctl("diskless", *words, *tidy.places, "-o", output, "--metrics-file", metrics)

    assert outcome.exit_code == 0
    assert outcome.out or words[0] == "verify"
    assert "tieredctl_" in metrics.read_text()


def test_an_object_that_may_not_be_read_is_not_called_lost(tidy: Inkless, tieredctl: Tieredctl) -> None:
    path: Path = tidy.bucket / TWO_PARTITIONS
    path.unlink()
    path.symlink_to("/proc/self/mem")

    outcome = verified(tidy, tieredctl)

    assert outcome.exit_code != 0
    assert "object-missing" not in outcome.out
