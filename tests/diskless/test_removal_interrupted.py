"""`diskless orphans apply`, `restore` and `purge`, interrupted by real signals: what is said next finishes the work."""

from __future__ import annotations

import json

import pytest

from tests.diskless.removals import CLUSTER, ENOUGH, Removal
from tests.rigs.stopped_process import INT, TERM, TWICE, Change, Stop
from tieredctl.ops.guards.own_objects import QUARANTINE


def recorded(removal: Removal, step: str) -> set[str]:
    lines = map(json.loads, removal.plan_file.with_name("plan.receipts").read_text().splitlines())
    return {line["key"] for line in lines if line.get("step") == step}


@pytest.fixture
def applying(removal: Removal) -> Change:
    assert removal.plan().exit_code == 0
    before, planned = removal.objects(), removal.planned()
    words = ["diskless", "orphans", "apply", str(removal.plan_file), *removal.inkless.control_plane, "--yes", *CLUSTER]

    def is_whole() -> bool:
        return recorded(removal, "removed") == before - removal.objects()

    is_done = lambda: not planned & removal.objects()  # noqa: E731
    return Change(words, removal.inkless.bucket, r"remove (?!\.tieredctl)", is_whole, is_done, is_last=True)


@pytest.fixture
def restoring(removal: Removal) -> Change:
    removal.plan()
    before, planned = removal.objects(), removal.planned()
    assert removal.apply().exit_code == 0
    words = ["diskless", "orphans", "restore", f"{removal.plan_file}.receipts"]

    def is_whole() -> bool:
        return recorded(removal, "restored") == planned & removal.objects()

    is_done = lambda: removal.objects() == before  # noqa: E731
    return Change(words, removal.inkless.bucket, r"rename (?!\.tieredctl)", is_whole, is_done, is_last=True)


@pytest.fixture
def purging(removal: Removal) -> Change:
    removal.plan()
    assert removal.apply().exit_code == 0
    left = removal.objects()
    words = ["diskless", "orphans", "purge", "--older-than", "0s", "--allow-young", *ENOUGH, "--yes", *CLUSTER]
    return Change(
        *([*words, *removal.inkless.places], removal.inkless.bucket, f"remove {QUARANTINE}"),
        *(lambda: removal.objects() == left, lambda: not any(QUARANTINE in name for name in removal.own_files())),
        is_last=True,
    )


@pytest.mark.parametrize("stop", [INT, TERM, TWICE])
@pytest.mark.parametrize("name", ["applying", "restoring", "purging"])
def test_what_is_said_finishes_the_work(name: str, stop: Stop, request: pytest.FixtureRequest) -> None:
    change: Change = request.getfixturevalue(name)

    change.demand_finished(stop)
