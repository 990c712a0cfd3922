"""A store that says or does what is not so: what each command makes of it, and that nothing is lost by it.

The server is real, and asks nobody who they are; the lies are told by a proxy in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_bucket import ROOT, UNFINISHED, FilledBucket, crashed_contents, store_words
from tests.cli.crashed_cluster import CAPTURE, ENOUGH, NO_AGE, CrashedCluster, planned_keys
from tests.rigs.buckets import S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Lie, Rule
from tests.rigs.lies import Delayed, dropped, half, one_bit_flipped, repeated, stored_altered, zeros
from tests.rigs.object_servers import ObjectServer
from tieredctl.ops.removal.own_objects import QUARANTINE

SOURCE = "x-amz-copy-source"
OBJECTS = f"/{ROOT}tiered/"
LieAbout = Callable[[Lie], Rule]


def copies(lie: Lie) -> Rule:
    """Copies into quarantine."""
    return Rule(lie, "PUT", QUARANTINE, SOURCE)


def copies_back(lie: Lie) -> Rule:
    return Rule(lie, "PUT", OBJECTS, SOURCE)


def deletions(lie: Lie) -> Rule:
    return Rule(lie, "DELETE", OBJECTS)


def purges(lie: Lie) -> Rule:
    return Rule(lie, "DELETE", QUARANTINE)


@pytest.fixture(scope="module")
def filled(moto: ObjectServer, captures: Path) -> FilledBucket:
    return FilledBucket(S3Bucket(moto.endpoint), crashed_contents(captures))


@pytest.fixture
def proxy(filled: FilledBucket, moto: ObjectServer) -> Iterator[FaultyProxy]:
    filled.empty()
    filled.fill()
    with FaultyProxy(moto.endpoint) as proxy:
        yield proxy


@pytest.fixture
def cluster(
    tieredctl: Tieredctl, captures: Path, filled: FilledBucket, proxy: FaultyProxy, tmp_path: Path
) -> CrashedCluster:
    """With a plan that has not been used, for a store behind the proxy."""
    store = store_words(filled.bucket, proxy.endpoint)
    cluster = CrashedCluster(tieredctl, captures / CAPTURE / "data", tmp_path, store)
    assert cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished").exit_code == 0
    return cluster


def data_of(filled: FilledBucket) -> Mapping[str, bytes]:
    return {key: one.data for key, one in filled.kept().items()}


def lied_to(proxy: FaultyProxy, rule: Rule, command: Callable[[], Outcome]) -> Outcome:
    """What a command says while the rule holds."""
    proxy.rules.append(rule)
    outcome = command()
    proxy.rules.remove(rule)
    assert rule.met > 0
    return outcome


ALTERED_COPIES = {
    "zeros of the same length": (stored_altered(zeros), "does not hold the same bytes"),
    "one bit flipped": (stored_altered(one_bit_flipped), "does not hold the same bytes"),
    "cut short": (stored_altered(half), "does not hold the same bytes"),
    "not made at all": (dropped, "could not be copied"),
}


@pytest.mark.parametrize(("lie", "words"), list(ALTERED_COPIES.values()), ids=list(ALTERED_COPIES))
def test_nothing_is_removed_whose_copy_is_not_the_same(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, lie: Lie, words: str
) -> None:
    outcome = lied_to(proxy, copies(lie), lambda: cluster.apply("-o", "json"))

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, 0, UNFINISHED)
    assert words in outcome.out + outcome.err
    assert data_of(filled) == filled.contents
    assert filled.in_quarantine() == []


@pytest.mark.parametrize(("lie", "words"), list(ALTERED_COPIES.values()), ids=list(ALTERED_COPIES))
def test_nothing_counts_as_put_back_that_is_not_the_same(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, lie: Lie, words: str
) -> None:
    cluster.apply()

    lied = lied_to(proxy, copies_back(lie), lambda: cluster.restore("-o", "json"))
    left = set(data_of(filled))
    restored = cluster.restore("-o", "json")

    assert (lied.exit_code, lied.document()["summary"]["failed"]) == (5, UNFINISHED)
    assert not left & planned_keys(cluster.plan_file)
    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, UNFINISHED)
    assert filled.kept() == filled.as_filled()


def test_a_deletion_that_is_acknowledged_and_not_done_has_failed(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket
) -> None:
    lied = lied_to(proxy, deletions(dropped), lambda: cluster.apply("-o", "json"))
    kept = data_of(filled)
    applied = cluster.apply("-o", "json")

    summary = lied.document()["summary"]
    assert (lied.exit_code, summary["done"], summary["failed"]) == (5, 0, UNFINISHED)
    assert "is still there" in lied.out + lied.err
    assert kept == filled.contents
    assert (applied.exit_code, applied.document()["summary"]["done"]) == (0, UNFINISHED)
    assert not planned_keys(cluster.plan_file) & set(filled.keys())


def test_a_deletion_that_comes_late_is_found_done_by_the_next_run(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket
) -> None:
    late = Delayed()

    lied = lied_to(proxy, deletions(late), lambda: cluster.apply("-o", "json"))
    late.happen()
    applied = cluster.apply("-o", "json")
    restored = cluster.restore("-o", "json")

    assert (lied.exit_code, lied.document()["summary"]["failed"]) == (5, UNFINISHED)
    assert (applied.exit_code, applied.document()["summary"]["done"]) == (0, UNFINISHED)
    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, UNFINISHED)
    assert filled.kept() == filled.as_filled()


@pytest.mark.parametrize("rule", [copies, deletions], ids=["copies", "deletions"])
def test_what_is_done_twice_is_done_once(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, rule: LieAbout
) -> None:
    applied = lied_to(proxy, rule(repeated), lambda: cluster.apply("-o", "json"))
    restored = cluster.restore("-o", "json")

    assert (applied.exit_code, applied.document()["summary"]["done"]) == (0, UNFINISHED)
    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, UNFINISHED)
    assert filled.kept() == filled.as_filled()


def test_a_copy_in_quarantine_that_was_not_deleted_is_not_purged(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket
) -> None:
    cluster.apply()

    lied = lied_to(proxy, purges(dropped), lambda: cluster.purge("--older-than", "0s", "--allow-young", "-o", "json"))

    summary = lied.document()["summary"]
    assert (lied.exit_code, summary["done"], summary["failed"]) == (5, 0, UNFINISHED)
    assert len(filled.in_quarantine()) == UNFINISHED


def test_receipts_say_how_copies_were_compared(cluster: CrashedCluster) -> None:
    cluster.apply()

    receipts = cluster.receipts_file.read_text()

    assert receipts.count('"comparedBy":"') == 2 * UNFINISHED
