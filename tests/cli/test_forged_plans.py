"""A plan that somebody else wrote, well made, that names what is live: nothing live is touched, whatever it says."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.crashed_cluster import (
    AFTER_IT_RAN,
    AGED,
    ENOUGH,
    FOREIGN,
    FOREIGN_TOPIC_ID,
    LISTED,
    ORPHANS,
    CrashedClusterOnDisk,
    plan_lines,
    planned_keys,
    put,
    without_own,
)
from tieredctl.storage.file import FileStore

Line = dict[str, Any]
TRUSTED = ("--trust-plan", "--min-age", "1h", "--max-percent", "100")
UNKNOWN = "tiered/notes.txt"


def rewrite(plan: Path, change: Callable[[list[Line]], None], objects: int | None = None) -> None:
    """Alters a plan's lines, and seals them as anybody can; its totals say how many objects there are. It is another
    plan then, of which nothing is done yet."""
    lines = plan_lines(plan)[:-1]
    lines[0]["planId"] = uuid4().hex
    plan.with_name(f"{plan.name}.receipts").unlink(missing_ok=True)
    change(lines)
    counted = sum("status" in line for line in lines) if objects is None else objects
    lines[-1] |= {"objects": counted, "listedObjects": 1_000_000}
    data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    seal = {"sha256": hashlib.sha256(data).hexdigest(), "hmacSha256": None}
    plan.write_bytes(data + json.dumps(seal, separators=(",", ":")).encode() + b"\n")


def named(cluster: CrashedClusterOnDisk, key: str, status: str, **fields: Any) -> Line:
    """The line of an object that is there, as if it had been planned."""
    stat = (cluster.bucket / key).stat()
    found = {"size": stat.st_size, "lastModifiedMs": stat.st_mtime_ns // 1_000_000, "version": None}
    return {"key": key, **found, "status": status, "cause": None, "evidence": None} | fields


def alone(line: Line, **header: Any) -> Callable[[list[Line]], None]:
    """Puts one line in place of all objects."""

    def change(lines: list[Line]) -> None:
        lines[0] |= header
        lines[1:-1] = [line]

    return change


def keys_that_are(cluster: CrashedClusterOnDisk, status: str) -> list[str]:
    return [line["key"] for line in cluster.scan("-o", "jsonl").lines() if line["status"] == status]


def test_owned_objects_never_go_whatever_a_plan_calls_them(planned: CrashedClusterOnDisk) -> None:
    owned = keys_that_are(planned, "owned")[:10]
    typed = ("--foreign", "G4i52LJdRBel-FDnehx_Kw", *(word for key in owned for word in ("--unknown", key)))
    before = without_own(planned.objects())
    for said, mode in itertools.product(("owned", "orphan", "unknown", "foreign"), ("quarantine", "delete")):

        def change(lines: list[Line], said: str = said, mode: str = mode) -> None:
            names = {"foreignTopicIds": ["G4i52LJdRBel-FDnehx_Kw"], "unknownKeys": owned}
            lines[0] |= {"mode": mode, "minAgeMs": 0, "maxPercent": 100, **names}
            lines[1:-1] = [named(planned, key, said) for key in owned]

        rewrite(planned.plan_file, change)
        deleting = ("--delete",) if mode == "delete" else ()

        unsigned, trusted = planned.apply(), planned.apply(*TRUSTED, *deleting, *typed)

        assert (unsigned.exit_code, trusted.exit_code) == (2, 5), (said, mode)
        assert "is not signed with your key" in unsigned.err
        assert without_own(planned.objects()) == before, (said, mode)


def test_a_plan_of_others_deletes_for_good_only_if_that_is_asked_for_here(planned: CrashedClusterOnDisk) -> None:
    rewrite(planned.plan_file, lambda lines: lines[0].update({"mode": "delete"}))
    before = planned.objects()

    refused = planned.apply(*TRUSTED)
    was_left = planned.objects() == before
    asked = planned.apply(*TRUSTED, "--delete")

    assert (refused.exit_code, was_left, asked.exit_code) == (2, True, 0)
    assert not planned_keys(planned.plan_file) & set(planned.objects())


def test_an_owned_object_among_orphans_stops_its_batch_before_anything_of_it_is_touched(
    planned: CrashedClusterOnDisk,
) -> None:
    owned = keys_that_are(planned, "owned")[0]
    rewrite(planned.plan_file, lambda lines: lines.insert(-1, named(planned, owned, "orphan")))
    before = planned.objects()

    outcome = planned.apply(*TRUSTED)

    assert outcome.exit_code == 5
    assert without_own(planned.objects()) == before
    assert not any("quarantine" in key for key in planned.objects())


@pytest.mark.parametrize(("key", "status"), [(FOREIGN, "foreign"), (UNKNOWN, "unknown")])
def test_what_a_plan_names_by_itself_needs_to_be_named_once_more(
    planned: CrashedClusterOnDisk, key: str, status: str
) -> None:
    put(planned, key, modified=AFTER_IT_RAN)
    typed = ("--foreign", FOREIGN_TOPIC_ID, "--unknown", UNKNOWN)
    line = named(planned, key, status)

    def change(lines: list[Line]) -> None:
        lines[0] |= {"foreignTopicIds": [FOREIGN_TOPIC_ID], "unknownKeys": [UNKNOWN]}
        lines[1:-1] = [line]

    rewrite(planned.plan_file, alone(line))
    not_in_the_plan = planned.apply(*TRUSTED, *typed)
    rewrite(planned.plan_file, change)
    unnamed = planned.apply(*TRUSTED)
    was_left = key in planned.objects()
    by_name = planned.apply(*TRUSTED, *typed)

    assert (not_in_the_plan.exit_code, unnamed.exit_code, was_left) == (5, 5, True)
    assert "name them with --foreign" in unnamed.err
    assert (by_name.exit_code, key in planned.objects()) == (0, False)


def test_age_time_share_and_totals_are_the_stores_own_whatever_a_plan_says(planned: CrashedClusterOnDisk) -> None:
    plan, key = planned.plan_file.read_bytes(), min(planned_keys(planned.plan_file))
    version = {line["key"]: line.get("version") for line in plan_lines(planned.plan_file) if "status" in line}[key]
    before = without_own(planned.objects())

    rewrite(planned.plan_file, lambda lines: lines[0].update({"maxPercent": 100.0}))
    share = planned.apply("--trust-plan", "--min-age", "1h")
    planned.plan_file.write_bytes(plan)
    rewrite(planned.plan_file, lambda lines: lines[-1].update({"uploads": len(lines) - 2}), objects=0)
    totals = planned.apply("--trust-plan", "--min-age", "1h")
    assert [share.exit_code, totals.exit_code] == [2, 2]
    assert "more than 10 %" in share.err
    assert f"has {ORPHANS} objects, but its totals give 0" in totals.err

    os.utime(planned.bucket / key)
    made_up: list[tuple[Line, Line]] = [
        ({"minAgeMs": 0, "createdMs": 0}, named(planned, key, "orphan")),
        ({}, named(planned, key, "orphan", lastModifiedMs=1_000, version=version)),
    ]
    for header, line in made_up:
        planned.plan_file.write_bytes(plan)
        rewrite(planned.plan_file, alone(line, **header))
        assert planned.apply(*TRUSTED).exit_code == 5, header
    assert without_own(planned.objects()) == before


def test_what_is_tieredctls_own_never_goes(planned: CrashedClusterOnDisk) -> None:
    name = min(planned_keys(planned.plan_file)).removeprefix("tiered/")
    for folder in (".tieredctl/quarantine/0123/tiered", ".tieredctl", "tiered/.tieredctl/quarantine/0123"):
        key = f"{folder}/{name}"
        put(planned, key)
        for status in ("orphan", "unknown", "foreign"):
            rewrite(planned.plan_file, alone(named(planned, key, status), unknownKeys=[key]))

            assert planned.apply(*TRUSTED, "--unknown", key).exit_code in (2, 5), (key, status)
            assert key in planned.objects(), status


def test_another_store_below_the_root_that_a_plan_names_is_found_out(planned: CrashedClusterOnDisk) -> None:
    other = put(planned, f"backup/{FOREIGN}")
    rewrite(planned.plan_file, alone(named(planned, f"backup/{FOREIGN}", "orphan")))

    outcome = planned.apply(*TRUSTED, "--layout-option", "key-prefix=tiered/")

    assert (outcome.exit_code, other.exists()) == (2, True)


def test_a_signed_plan_keeps_what_was_typed_to_make_it(cluster: CrashedClusterOnDisk) -> None:
    put(cluster, UNKNOWN)
    assert cluster.plan(*AGED, *ENOUGH, "--unknown", UNKNOWN).exit_code == 0

    applied = cluster.apply("-o", "json")

    assert (applied.exit_code, applied.document()["summary"]["done"]) == (0, ORPHANS + 1)


def test_a_plan_of_somebody_with_another_key_is_refused_and_may_be_looked_at(
    planned: CrashedClusterOnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "somebody-else"))
    before = planned.objects()

    refused = planned.apply()
    looked_at = planned.apply_unconfirmed("--dry-run", *TRUSTED[1:])

    assert (refused.exit_code, looked_at.exit_code) == (2, 0)
    assert without_own(planned.objects()) == before


def planned_apart(cluster: CrashedClusterOnDisk, folder: Path, cause: str, *words: str) -> CrashedClusterOnDisk:
    """The same cluster with another plan."""
    folder.mkdir()
    apart = replace(cluster, folder=folder)
    assert apart.plan(*AGED, "--cause", cause, "--max-percent", "100", *words).exit_code == 0
    return apart


@pytest.mark.parametrize("words", [(), ("--delete",)], ids=["quarantine", "delete"])
def test_the_second_of_two_plans_is_not_too_large_for_what_the_first_removed(
    cluster: CrashedClusterOnDisk, tmp_path: Path, words: tuple[str, ...]
) -> None:
    first = planned_apart(cluster, tmp_path / "first", "delete-never-finished", *words)
    several = len(planned_keys(first.plan_file))
    second = planned_apart(cluster, tmp_path / "second", "copy-never-finished", *words)
    few = len(planned_keys(second.plan_file))
    percent = str(few * 100 / (LISTED - several / 2))

    applied = [first.apply(), second.apply("--max-percent", percent)]

    assert 0 < few < several
    assert [outcome.exit_code for outcome in applied] == [0, 0]
    assert not (planned_keys(first.plan_file) | planned_keys(second.plan_file)) & set(cluster.objects())


def test_a_made_up_time_makes_what_is_named_no_older(planned: CrashedClusterOnDisk) -> None:
    put(planned, UNKNOWN)
    os.utime(planned.bucket / UNKNOWN)
    young = FileStore(str(planned.bucket)).head(UNKNOWN)
    assert young is not None

    def change(lines: list[Line]) -> None:
        lines[0] |= {"unknownKeys": [UNKNOWN]}
        lines[1:-1] = [named(planned, UNKNOWN, "unknown", lastModifiedMs=1_000, version=young.version)]

    rewrite(planned.plan_file, change)

    refused = planned.apply(*TRUSTED, "--unknown", UNKNOWN)
    was_left = UNKNOWN in planned.objects()
    allowed = planned.apply(*TRUSTED[:1], "--min-age", "0s", "--allow-young", *TRUSTED[3:], "--unknown", UNKNOWN)

    assert (refused.exit_code, was_left) == (5, True)
    assert (allowed.exit_code, UNKNOWN in planned.objects()) == (0, False)
