"""Whatever of a control plane is emptied, cut, hidden or renamed: no command calls anything orphaned or sound by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tests.cli.command_line import Outcome
from tests.diskless.asking_commands import all_outcomes, read, with_copies_in_quarantine
from tests.diskless.removals import Removal
from tests.rigs.inkless import CAPTURED, TABLES, Inkless

_IN_PART = {
    "files": "file_id = 15",
    "batches": "file_id = 15",
    "logs": "topic_name = 'orders' AND partition = 1",
    "flyway_schema_history": "version = '20'",
}
_COLUMNS = {
    "files": "state",
    "batches": "base_offset",
    "logs": "high_watermark",
    "producer_state": "assigned_offset",
    "flyway_schema_history": "checksum",
}


class Damage(NamedTuple):
    """What happens to a control plane, and what undoes it."""

    name: str
    statements: tuple[str, ...]
    undone: tuple[str, ...] = ()
    """Filling the tables again undoes others."""


def lost_rows() -> Iterator[Damage]:
    """Of each table. Nothing tells that rows of producer_state are lost: producers need not be idempotent; and no
    object is judged by them."""
    for table, part in _IN_PART.items():
        yield Damage(f"{table} emptied", (f"DELETE FROM {table}",))
        yield Damage(f"{table} cut", (f"DELETE FROM {table} WHERE {part}",))
    yield Damage("batches and logs emptied", ("DELETE FROM batches", "DELETE FROM logs"))
    yield Damage("files and batches emptied", ("DELETE FROM batches", "DELETE FROM files"))
    yield Damage("all emptied", tuple(f"DELETE FROM {table}" for table in ("batches", "files", "logs")))


def altered_schemas() -> Iterator[Damage]:
    """Of each table."""
    for table in TABLES:
        column = _COLUMNS[table]
        yield Damage(
            f"{table} missing", (f"ALTER TABLE {table} RENAME TO away",), (f"ALTER TABLE away RENAME TO {table}",)
        )
        yield Damage(
            f"{table} hidden",
            (f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",),
            (f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",),
        )
        yield Damage(
            f"{table}.{column} renamed",
            (f"ALTER TABLE {table} RENAME {column} TO other",),
            (f"ALTER TABLE {table} RENAME other TO {column}",),
        )


def test_by_a_control_plane_that_lost_rows_no_command_judges_or_removes(removal: Removal) -> None:
    with_copies_in_quarantine(removal)
    inkless, objects, copies = removal.inkless, removal.objects(), removal.own_files()
    for damage in lost_rows():
        inkless.run(*damage.statements)

        outcomes = all_outcomes(removal)

        for name, outcome in outcomes.items():
            assert outcome.exit_code in (2, 3, 4, 5), (damage.name, name, outcome)
            assert not _judged(outcome), (damage.name, name, outcome.out)
        assert outcomes["scan"].exit_code in (2, 5), (damage.name, outcomes["scan"])
        assert outcomes["status"].exit_code == 5, (damage.name, outcomes["status"])
        assert removal.objects() == objects, damage.name
        assert {*copies} <= {*removal.own_files()}, damage.name
        inkless.capture.fill(inkless.server, inkless.database)
    assert (removal.apply().exit_code, removal.purge().exit_code) == (0, 0)


def test_an_altered_schema_is_refused_also_by_commands_that_do_not_read_what_was_altered(
    removal: Removal, inkless_alone: Inkless
) -> None:
    alone = replace(removal, inkless=inkless_alone)
    for damage in altered_schemas():
        inkless_alone.run(*damage.statements)

        outcomes = read(alone, "status", "explain", "inspect")

        for name, outcome in outcomes.items():
            assert outcome.exit_code in (1, 5), (damage.name, name, outcome)
            assert not outcome.out, (damage.name, name, outcome)
        inkless_alone.run(*damage.undone)
    assert read(alone, "status")["status"].exit_code == 0


def _judged(outcome: Outcome) -> list[str]:
    """What is called orphaned, foreign, missing or unreferenced."""
    if not outcome.out.strip():
        return []
    document = outcome.document()
    items, summary = document["items"], document["summary"]
    findings = summary.get("findings") if isinstance(summary.get("findings"), list) else []
    statuses = [item["status"] for item in items if item.get("status") in ("orphan", "foreign")]
    codes = [one.get("code") for one in [*items, *findings]]
    return [*statuses, *(code for code in codes if code in ("object-missing", "object-unreferenced"))]


def test_a_sound_control_plane_is_not_doubted(inkless: Inkless, removal: Removal) -> None:
    assert inkless.database == CAPTURED

    status, scan = (
        removal.run("diskless", *words, *inkless.places, "-o", "json")
        for words in (("status",), ("orphans", "scan", "--min-age", "1h"))
    )

    assert (status.exit_code, status.document()["summary"]["findings"]) == (0, [])
    assert (scan.exit_code, scan.document()["summary"]["complete"]) == (3, True)
