"""Every command that asks the control plane, as it is typed for the captured one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.cli.command_line import Outcome
from tests.diskless.changes import ONE_BATCH
from tests.diskless.removals import Removal

READING: Mapping[str, tuple[str, ...]] = {
    "status": ("status",),
    "verify": ("verify",),
    "explain": ("explain", "orders:1@8"),
    "inspect": ("inspect", ONE_BATCH),
    "scan": ("orphans", "scan", "--min-age", "1h"),
}
"""Those that change nothing. What they name is in `ONE_BATCH`."""


def with_copies_in_quarantine(removal: Removal) -> None:
    """There is something to purge, and a plan for the rest."""
    first = replace(removal, plan_file=removal.plan_file.with_name("first"))
    outcomes = [first.plan("--cause", "delete-never-finished"), first.apply(), removal.plan()]
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 0], outcomes


def read(removal: Removal, *names: str) -> dict[str, Outcome]:
    """Of those that change nothing, some."""
    places = (*removal.inkless.places, "-o", "json")
    return {name: removal.run("diskless", *READING[name], *places) for name in names}


def all_outcomes(removal: Removal) -> dict[str, Outcome]:
    """Of each; the one that applies has the plan that is there."""
    elsewhere = replace(removal, plan_file=removal.plan_file.with_name("another"))
    words = ("-o", "json")
    changing = {"plan": elsewhere.plan(*words), "apply": removal.apply(*words), "purge": removal.purge(*words)}
    return read(removal, *READING) | changing
