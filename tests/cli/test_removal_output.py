"""What `orphans plan`, `apply`, `restore` and `purge` print, and keys that are no trouble to them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
import yaml

from tests.cli.command_line import Outcome
from tests.cli.crashed_cluster import (
    AGED,
    AT_ONCE,
    ENOUGH,
    LONG_AGO,
    ORPHANS,
    CrashedClusterOnDisk,
    plan_lines,
    planned_keys,
    without_own,
)
from tests.cli.openmetrics import read_metrics
from tieredctl.ops.guards.quarantine_keys import quarantined

BYTES = 57_787
FORMATS = ("table", "wide", "json", "jsonl", "csv", "yaml")


def items_in(outcome: Outcome, form: str) -> int:
    """How many items there are in a form of output."""
    lines = outcome.out.splitlines()
    if form == "json":
        return len(json.loads(outcome.out)["items"])
    if form == "yaml":
        return len(yaml.safe_load(outcome.out)["items"])
    if form == "jsonl":
        return len([json.loads(line) for line in lines])
    if form == "csv":
        return len(list(csv.DictReader(lines)))
    return max(0, len(lines) - 1)


@pytest.mark.parametrize("form", FORMATS)
def test_every_command_has_every_form(cluster: CrashedClusterOnDisk, form: str) -> None:
    planned = cluster.plan(*AGED, *ENOUGH, "-o", form)
    applied = cluster.apply("-o", form)
    restored = cluster.restore("-o", form)
    purged = cluster.purge(*AT_ONCE, "-o", form)

    each_object = 0 if form in ("table", "wide") else ORPHANS
    assert [one.exit_code for one in (planned, applied, restored, purged)] == [0, 0, 0, 0]
    assert items_in(planned, form) == 2
    assert items_in(applied, form) == items_in(restored, form) == each_object
    assert items_in(purged, form) == 0


def test_summaries_count(cluster: CrashedClusterOnDisk) -> None:
    planned = cluster.plan(*AGED, *ENOUGH, "-o", "json").document()
    applied = cluster.apply("-o", "json").document()
    restored = cluster.restore("-o", "json").document()
    cluster.plan(*AGED, *ENOUGH, "-o", "json", "--force")
    purged = cluster.purge(*AT_ONCE, "-o", "json").document()

    kinds = [one["kind"] for one in (planned, applied, restored, purged)]
    assert kinds == ["RemovalPlan", "Removal", "Restoration", "Purge"]
    assert planned["summary"] | {"planned": ORPHANS, "bytes": BYTES, "left": 0, "uploads": 0} == planned["summary"]
    expected = {"planned": ORPHANS, "done": ORPHANS, "failed": 0, "skipped": 0, "bytes": BYTES, "stopped": None}
    for document in (applied, restored, purged):
        assert document["summary"] | expected == document["summary"]


def test_each_item_says_where_its_object_went(planned: CrashedClusterOnDisk) -> None:
    plan_id = plan_lines(planned.plan_file)[0]["planId"]

    items = planned.apply("-o", "jsonl").lines()

    assert {item["key"] for item in items} == planned_keys(planned.plan_file)
    copies = {item["key"]: quarantined(item["quarantineKey"]) for item in items}
    assert all(copy and (copy.key, copy.plan_id) == (key, plan_id) for key, copy in copies.items())
    assert {(item["status"], item["error"]) for item in items} == {("removed", None)}


def test_a_plan_says_why_each_object_is_nobodys(planned: CrashedClusterOnDisk) -> None:
    lines = [line for line in plan_lines(planned.plan_file) if "key" in line]

    assert {(line["status"], line["cause"]) for line in lines} == {
        ("orphan", "delete-never-finished"),
        ("orphan", "copy-never-finished"),
    }
    assert {line["evidence"]["state"] for line in lines} == {"DELETE_SEGMENT_STARTED", "COPY_SEGMENT_STARTED"}
    assert all(line["version"] for line in lines)


def test_metrics_of_each_command(cluster: CrashedClusterOnDisk, tmp_path: Path) -> None:
    to = ("--metrics-file", tmp_path / "metrics.prom")
    read = (tmp_path / "metrics.prom").read_text

    cluster.plan(*AGED, *ENOUGH, *to)
    planned = read()
    cluster.apply(*to)
    applied = read()
    cluster.restore(*to)
    restored = read()
    cluster.purge(*AT_ONCE, *to)
    purged = read()

    commands = {"plan": planned, "apply": applied, "restore": restored, "purge": purged}
    for command, text in commands.items():
        assert read_metrics(text)
        assert f'tieredctl_planned{{command="orphans {command}"}} {ORPHANS}\n' in text
        assert f'tieredctl_bytes{{command="orphans {command}"}} {BYTES}\n' in text
        assert f'tieredctl_exit_code{{command="orphans {command}"}} 0\n' in text


def test_quiet_says_nothing(planned: CrashedClusterOnDisk) -> None:
    outcomes = [planned.apply("--quiet"), planned.restore("--quiet"), planned.purge(*AT_ONCE, "--quiet")]

    assert [outcome.err for outcome in outcomes] == ["", "", ""]


def test_what_is_deleted_for_good_has_no_way_back(cluster: CrashedClusterOnDisk) -> None:
    cluster.plan(*AGED, *ENOUGH, "--delete")

    applied = cluster.apply()
    restored = cluster.restore("-o", "json")

    assert (applied.exit_code, restored.exit_code) == (0, 5)
    assert "Undo with" not in applied.err
    assert "deleted without a copy" in restored.document()["items"][0]["error"]
    assert not planned_keys(cluster.plan_file) & set(cluster.objects())


HOSTILE = {
    "spaces": b"tiered/  two  spaces  ",
    "lines": b"tiered/one\nline\r\nand another\n",
    "per cents": b"tiered/100%25%2e%00%",
    "quotes": b"tiered/'quoted' \"twice\" $(echo) `id`",
    "no UTF-8": b"tiered/\xff\xfe\x80",
    "emoji": "tiered/🗑/é́".encode(),
    "control characters": b"tiered/\x1b[31mred\x07\x7f",
    "long": b"tiered/" + b"/".join([b"x" * 99] * 9),
    "like a plan's end": b'tiered/"},{"sha256":"0',
    "dots": b"tiered/...",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_any_key_can_be_planned_removed_and_put_back(cluster: CrashedClusterOnDisk, name: bytes) -> None:
    key = os.fsdecode(name)
    file = cluster.bucket / key
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"bytes")
    os.utime(file, (LONG_AGO, LONG_AGO))
    before = cluster.objects()

    planned = cluster.plan(*AGED, *ENOUGH, "--unknown", key, "--max-objects", "1000")
    applied = cluster.apply("-o", "jsonl")
    is_gone = not file.exists()
    restored = cluster.restore("-o", "jsonl")

    assert (planned.exit_code, applied.exit_code, restored.exit_code) == (0, 0, 0)
    assert key in planned_keys(cluster.plan_file)
    assert is_gone
    assert without_own(cluster.objects()) == before
