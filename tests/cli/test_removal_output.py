"""What `orphans plan`, `apply`, `restore` and `purge` print, and keys that are no trouble to them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import yaml

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import (
    AGED,
    AT_ONCE,
    CAPTURE,
    ENOUGH,
    LONG_AGO,
    ORPHANS,
    CrashedClusterOnDisk,
    crashed_cluster_on_disk,
    plan_lines,
    planned_keys,
    put,
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


def test_every_command_has_every_form(cluster: CrashedClusterOnDisk) -> None:
    for form in FORMATS:
        cluster.receipts_file.unlink(missing_ok=True)
        planned = cluster.plan(*AGED, *ENOUGH, "--force", "-o", form)
        applied = cluster.apply("-o", form)
        restored = cluster.restore("-o", form)
        purged = cluster.purge(*AT_ONCE, "-o", form)

        each_object = 0 if form in ("table", "wide") else ORPHANS
        assert [one.exit_code for one in (planned, applied, restored, purged)] == [0, 0, 0, 0], form
        assert items_in(planned, form) == 2, form
        assert items_in(applied, form) == items_in(restored, form) == each_object, form
        assert items_in(purged, form) == 0, form


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
    """And the plan, why it is nobody's."""
    lines = [line for line in plan_lines(planned.plan_file) if "key" in line]
    plan_id = plan_lines(planned.plan_file)[0]["planId"]

    items = planned.apply("-o", "jsonl").lines()

    assert {item["key"] for item in items} == planned_keys(planned.plan_file)
    copies = {item["key"]: quarantined(item["quarantineKey"]) for item in items}
    assert all(copy and (copy.key, copy.plan_id) == (key, plan_id) for key, copy in copies.items())
    assert {(item["status"], item["error"]) for item in items} == {("removed", None)}
    assert {(line["status"], line["cause"]) for line in lines} == {
        ("orphan", "delete-never-finished"),
        ("orphan", "copy-never-finished"),
    }
    assert {line["evidence"]["state"] for line in lines} == {"DELETE_SEGMENT_STARTED", "COPY_SEGMENT_STARTED"}
    assert all(line["version"] for line in lines)


def test_metrics_of_each_command(cluster: CrashedClusterOnDisk, tmp_path: Path) -> None:
    """Which is quiet where that is asked."""
    metrics = tmp_path / "metrics.prom"
    for command, words in {"plan": (*AGED, *ENOUGH), "apply": (), "restore": (), "purge": AT_ONCE}.items():
        outcome = getattr(cluster, command)(*words, "--metrics-file", metrics, "--quiet")

        text = metrics.read_text()
        assert (bool(read_metrics(text)), outcome.err) == (True, ""), command
        assert f'tieredctl_planned{{command="orphans {command}"}} {ORPHANS}\n' in text
        assert f'tieredctl_bytes{{command="orphans {command}"}} {BYTES}\n' in text
        assert f'tieredctl_exit_code{{command="orphans {command}"}} 0\n' in text


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


def test_any_key_can_be_planned_removed_and_put_back(cluster: CrashedClusterOnDisk) -> None:
    keys = {os.fsdecode(name) for name in HOSTILE.values()}
    for key in keys:
        put(cluster, key)
    before = cluster.objects()
    named = [word for key in sorted(keys) for word in ("--unknown", key)]

    planned = cluster.plan(*AGED, *ENOUGH, *named, "--max-objects", "1000")
    applied = cluster.apply("-o", "jsonl")
    left = keys & set(cluster.objects())
    restored = cluster.restore("-o", "jsonl")

    assert (planned.exit_code, applied.exit_code, restored.exit_code) == (0, 0, 0)
    assert (keys - planned_keys(cluster.plan_file), left) == (set(), set())
    assert without_own(cluster.objects()) == before


def test_a_file_that_was_put_back_has_its_time_and_mode(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> None:
    cluster = crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)
    for key, data in cluster.objects().items():
        put(cluster, key, data).chmod(0o640)
    cluster.plan(*ENOUGH, *AGED)
    planned = planned_keys(cluster.plan_file)

    applied, restored = cluster.apply(), cluster.restore()
    again = cluster.plan(*ENOUGH, *AGED, "--force")

    files = [cluster.bucket / key for key in planned]
    assert (applied.exit_code, restored.exit_code, again.exit_code) == (0, 0, 0)
    assert {(file.stat().st_mtime, file.stat().st_mode & 0o777) for file in files} == {(LONG_AGO, 0o640)}
    assert planned_keys(cluster.plan_file) == planned
