"""`diskless inspect`: an object as its record batches, with a control plane and without."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import FOLDER, ONE_BATCH
from tests.rigs.inkless import Inkless

REFUSED_INSIDE = f"{FOLDER}_J3SWEwmRvyvK2oFPJBMUw"
"""Its commit refused three of its six record batches."""
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


def captured(inkless: Inkless) -> dict[str, list[dict[str, Any]]]:
    """The record batches of each object in the bucket, as they were written."""
    objects = inkless.capture.document["objects"]
    return {one["object_key"]: one["physical"] for one in objects if one["in_bucket"]}


def from_bytes(batch: dict[str, Any]) -> dict[str, Any]:
    """What the object itself says of a captured record batch."""
    return {
        "position": batch["byte_offset"],
        "size": batch["size"],
        "records": batch["record_count"],
        "compression": COMPRESSIONS[batch["compression"]],
        "timestampType": "LogAppendTime" if batch["timestamp_type"] else "CreateTime",
        "baseTimestamp": batch["first_timestamp"],
        "maxTimestamp": batch["max_timestamp"],
        "producerId": batch["producer_id"],
        "producerEpoch": batch["producer_epoch"],
        "baseSequence": batch["base_sequence"],
        "crc": batch["crc"],
    }


def coordinates(batch: dict[str, Any]) -> tuple[object, ...]:
    """Whose a captured record batch is, as far as a live batch refers to it."""
    if not batch.get("referenced"):
        return (None, None, None, None)
    base = batch["assigned_base_offset"]
    return (batch["topic"], batch["partition"], base, base + batch["last_offset_delta"])


def test_every_object_is_shown_as_it_was_written(inkless: Inkless, tieredctl: Tieredctl) -> None:
    for key, batches in captured(inkless).items():
        outcome = tieredctl("diskless", "inspect", key, *inkless.places, "-o", "jsonl")

        assert outcome.exit_code == 0
        for item, batch in zip(outcome.lines(), batches, strict=True):
            assert item.items() >= from_bytes(batch).items()
            names = ("topic", "partition", "baseOffset", "lastOffset")
            assert tuple(item[name] for name in names) == coordinates(batch)


def test_without_a_control_plane_an_object_is_walked(inkless: Inkless, tieredctl: Tieredctl) -> None:
    for key, batches in captured(inkless).items():
        for words in ((key, "--store", f"file:{inkless.bucket}"), (inkless.bucket / key,)):
            outcome = tieredctl("diskless", "inspect", *words, "-o", "json")

            document = outcome.document()
            assert (outcome.exit_code, document["summary"]["file"]) == (0, None)
            for item, batch in zip(document["items"], batches, strict=True):
                assert item.items() >= from_bytes(batch).items()
                assert item["topic"] is None


def test_the_summary_tells_the_file_and_what_is_not_referenced(inkless: Inkless, tieredctl: Tieredctl) -> None:
    summary = tieredctl("diskless", "inspect", REFUSED_INSIDE, *inkless.places, "-o", "json").document()["summary"]

    assert (summary["size"], summary["batches"], summary["referencedBytes"]) == (1787, 6, 310 + 310 + 229)
    assert summary["file"].items() >= {"fileId": 3, "state": "uploaded", "uploaderBrokerId": 1}.items()


def test_a_table_says_it_in_sentences(inkless: Inkless, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "inspect", REFUSED_INSIDE, *inkless.places)

    assert outcome.err == "1.7 KiB, 6 record batches, 17 records.\nFile 3, uploaded; 938 B not referenced.\n"
    assert "payments          0  8..10" in outcome.out


def test_an_orphan_is_unknown_to_the_control_plane(inkless: Inkless, tieredctl: Tieredctl) -> None:
    orphan = inkless.capture.document["roles"]["orphan_broker_killed"]

    outcome = tieredctl("diskless", "inspect", orphan, *inkless.places)

    assert outcome.exit_code == 0
    assert "The control plane has no file with this key.\n" in outcome.err


@pytest.mark.parametrize("with_control_plane", [True, False])
def test_damage_is_found_and_the_rest_is_shown(
    inkless: Inkless, tieredctl: Tieredctl, with_control_plane: bool
) -> None:
    path = inkless.bucket / REFUSED_INSIDE
    data = bytearray(path.read_bytes())
    data[100] ^= 0x80
    path.write_bytes(data)
    places = inkless.places if with_control_plane else inkless.places[2:]

    outcome = tieredctl("diskless", "inspect", REFUSED_INSIDE, *places)

    assert outcome.exit_code == 4
    assert f"critical: batch-corrupt: {REFUSED_INSIDE}: " in outcome.err
    assert len(outcome.out.splitlines()) == 1 + 5


def test_the_object_of_a_file_that_was_replaced_is_contradicted(inkless: Inkless, tieredctl: Tieredctl) -> None:
    other = (inkless.bucket / ONE_BATCH).read_bytes()
    (inkless.bucket / REFUSED_INSIDE).write_bytes(other)

    outcome = tieredctl("diskless", "inspect", REFUSED_INSIDE, *inkless.places)

    assert outcome.exit_code == 4
    assert "size-mismatch" in outcome.err


REFUSED = {
    "no such file": (("no-such-file",), 2, "There is no file no-such-file"),
    "a folder": (("/",), 2, "There is no file /"),
    "no such object": (("no/such", "--store", "file:{bucket}"), 1, "has no object no/such"),
    "a file beside a control plane": (("x", "--control-plane", "service=x"), 2, "knows objects by their keys"),
    "a name that is not UTF-8": (("\udcff", "--store", "file:{bucket}"), 1, "has no object \\udcff"),
    "a key with a dot-dot": (("../x", "--store", "file:{bucket}"), 1, "has no object ../x"),
}


@pytest.mark.parametrize(("words", "exit_code", "sentence"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_inspected_is_a_sentence(
    inkless: Inkless, tieredctl: Tieredctl, words: tuple[str, ...], exit_code: int, sentence: str
) -> None:
    outcome = tieredctl("diskless", "inspect", *(word.format(bucket=inkless.bucket) for word in words))

    assert (outcome.exit_code, outcome.out) == (exit_code, "")
    assert sentence in outcome.err


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 100, b"x" * 5000, bytes(61)])
def test_bytes_that_are_no_object_are_a_wrong_argument(inkless: Inkless, tieredctl: Tieredctl, data: bytes) -> None:
    path = inkless.bucket / "strange"
    path.write_bytes(data)

    outcome = tieredctl("diskless", "inspect", path)

    assert (outcome.exit_code, outcome.out) == (2, "")


@pytest.mark.parametrize("key", ["\udcff", "nul\0"])
def test_a_key_that_no_database_can_hold_is_an_object_without_a_file(
    inkless: Inkless, tieredctl: Tieredctl, key: str
) -> None:
    outcome = tieredctl("diskless", "inspect", key, *inkless.places)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "has no object" in outcome.err
