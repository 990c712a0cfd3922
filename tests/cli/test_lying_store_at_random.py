"""Removal and restore on a store that lies whenever it likes: nothing is lost, and once it is honest all comes back.

`TIEREDCTL_LYING_SEEDS` says how many stories are told; one that fails says its seed, which gives the same story again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_bucket import UNFINISHED, FilledBucket, crashed_contents, store_words
from tests.cli.crashed_cluster import CAPTURE, ENOUGH, NO_AGE, CrashedCluster, planned_keys
from tests.rigs.buckets import S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Rule, Trouble
from tests.rigs.lies import dropped, half, one_bit_flipped, repeated, stored_altered, zeros
from tests.rigs.object_servers import ObjectServer
from tieredctl.ops.removal.own_objects import QUARANTINE

SEEDS = int(os.environ.get("TIEREDCTL_LYING_SEEDS", "3"))
SOURCE = "x-amz-copy-source"
MOST_RUNS = 3


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


def drawn_rule(chance: Random) -> Rule:
    """A lie about some copies into quarantine, or some deletions."""
    first, most = chance.randint(1, UNFINISHED), chance.choice([1, 3, None])
    if chance.random() < 0.6:
        lie = chance.choice([dropped, repeated, *map(stored_altered, (zeros, one_bit_flipped, half))])
        return Rule(lie, "PUT", QUARANTINE, SOURCE, first, most)
    return Rule(chance.choice([dropped, repeated]), "DELETE", "", None, first, most)


def make_trouble(proxy: FaultyProxy, chance: Random) -> None:
    proxy.rules = [drawn_rule(chance) for _ in range(chance.randint(1, 3))]
    troubles = [Trouble.NOT_DELIVERED, Trouble.ANSWER_LOST, Trouble.ANSWER_CUT]
    proxy.applies = lambda _: chance.random() < 0.02
    proxy.faults = [chance.choice(troubles) for _ in range(chance.choice([0, 0, 5]))]


def demand_nothing_lost(filled: FilledBucket, planned: set[str]) -> None:
    """What is not planned is as it was; what is planned is at its key, or its bytes are in quarantine."""
    kept = {key: one.data for key, one in filled.kept().items()}
    changed = {key for key, data in kept.items() if data != filled.contents[key]}
    gone = set(filled.contents) - set(kept)
    copies = {data for key in filled.in_quarantine() if (data := filled.bucket.read(filled.name(key)))}
    assert not changed
    assert gone <= planned
    assert not [key for key in gone if filled.contents[key] not in copies]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_and_all_comes_back(
    cluster: CrashedCluster, proxy: FaultyProxy, filled: FilledBucket, seed: int
) -> None:
    chance, planned = Random(seed), planned_keys(cluster.plan_file)
    for _ in range(chance.randint(1, MOST_RUNS)):
        make_trouble(proxy, chance)
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
