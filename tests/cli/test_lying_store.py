"""A store that says or does what is not so: what each command makes of it, and that nothing is lost by it.

The servers are real, and the lies are told by a proxy in front of them. `TIEREDCTL_LYING_SEEDS` says how many stories
of random lies are told; one that fails says its seed, which gives the same story again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_bucket import ROOT, UNFINISHED, FilledBucket, crashed_contents, planned_cluster
from tests.cli.crashed_cluster import CrashedCluster, planned_keys
from tests.rigs.buckets import AzureContainer, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Lie, Rule, Trouble
from tests.rigs.lies import Change, Delayed, half, one_bit_flipped, repeated, zeros
from tests.rigs.object_servers import AZURE_ACCOUNT, ObjectServer
from tests.rigs.told_lies import AzureLanguage, Language, S3Language
from tests.shares import divided
from tieredctl.ops.guards.own_objects import QUARANTINE

SEEDS = int(os.environ.get("TIEREDCTL_LYING_SEEDS", "3"))
MOST_RUNS = 3
OBJECTS = f"/{ROOT}tiered/"
EXHAUSTIVE = pytest.mark.exhaustive
TellLie = Callable[[Language], Lie]
LieAbout = Callable[[Language, Lie], Rule]


def altered(change: Change) -> TellLie:
    return lambda language: language.stored_altered(change)


def not_done(language: Language) -> Lie:
    return language.dropped


def copies(language: Language, lie: Lie) -> Rule:
    """Copies into quarantine."""
    return language.copies(lie, QUARANTINE)


def copies_back(language: Language, lie: Lie) -> Rule:
    return language.copies(lie, OBJECTS)


def deletions(language: Language, lie: Lie) -> Rule:
    return language.deletions(lie, OBJECTS)


def purges(language: Language, lie: Lie) -> Rule:
    return language.deletions(lie, QUARANTINE)


@pytest.fixture(scope="module", params=["moto", pytest.param("azurite", marks=EXHAUSTIVE)])
def server(request: pytest.FixtureRequest) -> ObjectServer:
    running: ObjectServer = request.getfixturevalue(request.param)
    return running


@pytest.fixture(scope="module")
def filled(server: ObjectServer, captures: Path) -> FilledBucket:
    kind = AzureContainer if AZURE_ACCOUNT in server.endpoint else S3Bucket
    return FilledBucket(kind(server.endpoint), crashed_contents(captures))


@pytest.fixture
def language(filled: FilledBucket) -> Language:
    return AzureLanguage(filled.bucket) if isinstance(filled.bucket, AzureContainer) else S3Language()


@pytest.fixture
def proxy(filled: FilledBucket, server: ObjectServer) -> Iterator[FaultyProxy]:
    filled.refill()
    with FaultyProxy(server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def cluster(
    tieredctl: Tieredctl, captures: Path, filled: FilledBucket, server: ObjectServer, proxy: FaultyProxy, tmp_path: Path
) -> CrashedCluster:
    return planned_cluster(tieredctl, captures, filled, proxy.endpoint + urlsplit(server.endpoint).path, tmp_path)


def data_of(filled: FilledBucket) -> Mapping[str, bytes]:
    return {key: one.data for key, one in filled.kept().items()}


def lied_to(proxy: FaultyProxy, rule: Rule, command: Callable[[], Outcome]) -> Outcome:
    """What a command says while the rule holds."""
    proxy.rules.append(rule)
    outcome = command()
    proxy.rules.remove(rule)
    assert rule.met > 0
    return outcome


ALTERED_COPIES = [
    pytest.param(altered(zeros), id="zeros of the same length", marks=EXHAUSTIVE),
    pytest.param(altered(one_bit_flipped), id="one bit flipped"),
    pytest.param(altered(half), id="cut short", marks=EXHAUSTIVE),
    pytest.param(not_done, id="not made at all", marks=EXHAUSTIVE),
]


@pytest.mark.parametrize("lie", ALTERED_COPIES)
def test_nothing_is_removed_whose_copy_is_not_the_same(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, language: Language, lie: TellLie
) -> None:
    outcome = lied_to(proxy, copies(language, lie(language)), lambda: cluster.apply("-o", "json"))

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, 0, UNFINISHED)
    assert data_of(filled) == filled.contents
    assert filled.in_quarantine() == []


@pytest.mark.parametrize("lie", ALTERED_COPIES)
def test_nothing_counts_as_put_back_that_is_not_the_same(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, language: Language, lie: TellLie
) -> None:
    cluster.apply()

    lied = lied_to(proxy, copies_back(language, lie(language)), lambda: cluster.restore("-o", "json"))
    left = set(data_of(filled))
    restored = cluster.restore("-o", "json")

    assert (lied.exit_code, lied.document()["summary"]["failed"]) == (5, UNFINISHED)
    assert not left & planned_keys(cluster.plan_file)
    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, UNFINISHED)
    assert filled.kept() == filled.as_filled()


def test_a_deletion_that_is_acknowledged_and_not_done_has_failed(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, language: Language
) -> None:
    lied = lied_to(proxy, deletions(language, language.dropped), lambda: cluster.apply("-o", "json"))
    kept = data_of(filled)
    applied = cluster.apply("-o", "json")

    summary = lied.document()["summary"]
    assert (lied.exit_code, summary["done"], summary["failed"]) == (5, 0, UNFINISHED)
    assert kept == filled.contents
    assert (applied.exit_code, applied.document()["summary"]["done"]) == (0, UNFINISHED)
    assert not planned_keys(cluster.plan_file) & set(filled.keys())


def test_a_deletion_that_comes_late_is_found_done_by_the_next_run(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, language: Language
) -> None:
    late = Delayed(language.dropped)

    lied = lied_to(proxy, deletions(language, late), lambda: cluster.apply("-o", "json"))
    late.happen()
    applied = cluster.apply("-o", "json")
    restored = cluster.restore("-o", "json")

    assert (lied.exit_code, lied.document()["summary"]["failed"]) == (5, UNFINISHED)
    assert (applied.exit_code, applied.document()["summary"]["done"]) == (0, UNFINISHED)
    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, UNFINISHED)
    assert filled.kept() == filled.as_filled()


@pytest.mark.parametrize("rule", [pytest.param(copies, marks=EXHAUSTIVE), deletions], ids=["copies", "deletions"])
def test_what_is_done_twice_is_done_once(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, language: Language, rule: LieAbout
) -> None:
    applied = lied_to(proxy, rule(language, repeated), lambda: cluster.apply("-o", "json"))
    restored = cluster.restore("-o", "json")

    assert (applied.exit_code, applied.document()["summary"]["done"]) == (0, UNFINISHED)
    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, UNFINISHED)
    assert filled.kept() == filled.as_filled()


def test_a_copy_in_quarantine_that_was_not_deleted_is_not_purged(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, language: Language
) -> None:
    cluster.apply()

    lied = lied_to(
        proxy,
        purges(language, language.dropped),
        lambda: cluster.purge("--older-than", "0s", "--allow-young", "-o", "json"),
    )

    summary = lied.document()["summary"]
    assert (lied.exit_code, summary["done"], summary["failed"]) == (5, 0, UNFINISHED)
    assert len(filled.in_quarantine()) == UNFINISHED


def test_receipts_say_how_copies_were_compared(cluster: CrashedCluster) -> None:
    cluster.apply()

    receipts = cluster.receipts_file.read_text()

    assert receipts.count('"comparedBy":"') == 2 * UNFINISHED


def drawn_rule(language: Language, chance: Random) -> Rule:
    """A lie about some copies into quarantine, or some deletions."""
    first, most = chance.randint(1, UNFINISHED), chance.choice([1, 3, None])
    if chance.random() < 0.6:
        altered_copies = map(language.stored_altered, (zeros, one_bit_flipped, half))
        return language.copies(chance.choice([language.dropped, repeated, *altered_copies]), QUARANTINE, first, most)
    return language.deletions(chance.choice([language.dropped, repeated]), "", first, most)


def make_trouble(proxy: FaultyProxy, language: Language, chance: Random) -> None:
    proxy.rules = [drawn_rule(language, chance) for _ in range(chance.randint(1, 3))]
    troubles = [Trouble.NOT_DELIVERED, Trouble.ANSWER_LOST, Trouble.ANSWER_CUT]
    proxy.applies = lambda _: chance.random() < 0.02
    proxy.faults = [chance.choice(troubles) for _ in range(chance.choice([0, 0, 5]))]


def demand_nothing_lost(filled: FilledBucket, planned: set[str]) -> None:
    """What is not planned is as it was; what is planned is at its key, or its bytes are in quarantine."""
    kept = data_of(filled)
    changed = {key for key, data in kept.items() if data != filled.contents[key]}
    gone = set(filled.contents) - set(kept)
    copies = {data for key in filled.in_quarantine() if (data := filled.bucket.read(filled.name(key)))}
    assert not changed
    assert gone <= planned
    assert not [key for key in gone if filled.contents[key] not in copies]


@pytest.mark.parametrize("seed", divided(range(SEEDS)))
def test_nothing_is_lost_and_all_comes_back(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, language: Language, seed: int
) -> None:
    chance, planned = Random(seed), planned_keys(cluster.plan_file)
    for _ in range(chance.randint(1, MOST_RUNS)):
        make_trouble(proxy, language, chance)
        cluster.apply()
        demand_nothing_lost(filled, planned)
    proxy.rules, proxy.faults = [], []

    applied = cluster.apply("-o", "json")
    demand_nothing_lost(filled, planned)
    gone = not planned & set(filled.keys())
    restored = cluster.restore()

    assert gone, applied
    assert restored.exit_code == 0, restored
    assert filled.kept() == filled.as_filled()
