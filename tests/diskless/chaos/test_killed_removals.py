"""`diskless orphans apply`, killed, cut off from its database and refused by its store, beside brokers that commit.

No object that any row needs is ever lost: it is in its place when a run ends, and until then at least in quarantine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane
from tieredctl_inkless.diskless.control_plane import FoundFiles
from tieredctl_inkless.ops.diskless import judgement
from tieredctl_inkless.ops.diskless.fresh_control_plane import FreshControlPlane

from tests.diskless.chaos.trial import Trial, demand_all_back, demand_ended_well, demand_nothing_lost
from tests.diskless.chaos.writer import Writer, make_template
from tests.removal.chaos.children import in_child
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, S3Bucket
from tests.rigs.inkless import InklessCapture
from tests.rigs.memory import IN_MEMORY
from tests.rigs.postgres import PostgresServer
from tests.shares import divided
from tieredctl.ops.orphan_removal.apply import Removal
from tieredctl.ops.orphan_removal.owners import Found
from tieredctl.ops.orphan_removal.purge import Purge
from tieredctl.ports.object_store import StoredObject, WritableObjectStore
from tieredctl.storage.file import FileStore
from tieredctl.storage.registry import open_writable_store

SEEDS = int(os.environ.get("TIEREDCTL_DISKLESS_CHAOS_SEEDS", "10"))
EVERY = int(os.environ.get("TIEREDCTL_DISKLESS_CHAOS_EVERY", "3"))
"""At which boundaries a run is killed in turn: at each with 1."""
SEED = 4711
DATABASE = "chaos"
_prefixes = count()
OpenBucket = Callable[[Path], Callable[[], WritableObjectStore]]


@pytest.fixture(scope="module")
def chaos_server(captured_server: PostgresServer, capture: InklessCapture) -> PostgresServer:
    make_template(captured_server, capture, DATABASE)
    return captured_server


@pytest.fixture(autouse=True)
def any_later_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that the control plane knows what was uploaded before: nobody waits for ten minutes here."""
    monkeypatch.setattr(judgement, "COMMITTED_WITHIN_MS", 0)


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tieredctl-chaos-", dir=IN_MEMORY) as name:
        yield Path(name)


def on_disk(folder: Path) -> Callable[[], WritableObjectStore]:
    bucket = folder / "bucket"
    bucket.mkdir()
    return lambda: FileStore(str(bucket))


SERVERS: dict[str, type[Bucket]] = {"versitygw": S3Bucket, "azurite": AzureContainer}


@pytest.fixture(params=SERVERS)
def on_server(request: pytest.FixtureRequest) -> OpenBucket:
    bucket = SERVERS[request.param](request.getfixturevalue(request.param).endpoint)

    def opened(_folder: Path) -> Callable[[], WritableObjectStore]:
        url = f"{bucket.scheme}://{BUCKET}/chaos{next(_prefixes)}"
        return lambda: open_writable_store(url, bucket.options)

    return opened


def begun(server: PostgresServer, folder: Path, seed: int, open_bucket: OpenBucket = on_disk) -> Trial:
    return Trial(folder, Writer(server, DATABASE, open_bucket(folder), seed))


def run_apply(trial: Trial, chance: Random, cut_rate: float = 0.0, **circumstances: Any) -> None:
    """One run, in a process of its own where it may be killed, and what has to hold after it."""
    world = trial.world(chance, **circumstances)
    if world.kill_at is None:
        ended = trial.apply(world, cut_rate=cut_rate)
    else:
        child = in_child(lambda: trial.apply(world, cut_rate=cut_rate), trial.folder)
        trial.free_lease()
        if child.was_killed:
            demand_nothing_lost(trial)
            return
        ended = child.result
    demand_nothing_lost(trial)
    demand_ended_well(trial, ended)


def finish(trial: Trial, chance: Random) -> None:
    """A run beside brokers that go on ends the work, or finds that the world has changed."""
    run_apply(trial, chance, broker_activity=0.1)


def undo(trial: Trial, chance: Random) -> None:
    if trial.receipts_file.exists():
        told = trial.restore(trial.world(chance, broker_activity=0.1))
        assert told.is_complete, told
        demand_all_back(trial)
    demand_nothing_lost(trial)


def purge(trial: Trial, chance: Random) -> None:
    told = trial.purge(trial.world(chance, broker_activity=0.1))
    assert not told.violations
    demand_nothing_lost(trial)


def try_seed(server: PostgresServer, folder: Path, seed: int, open_bucket: OpenBucket = on_disk) -> None:
    """Everything at random."""
    chance = Random(seed)
    trial = begun(server, folder, seed, open_bucket)
    for _ in range(chance.randint(0, 2)):
        run_apply(
            trial,
            chance,
            cut_rate=chance.choice([0.0, 0.0, 0.3]),
            kill_at=chance.choice([None, chance.randint(1, 70)]),
            broker_activity=chance.choice([0.02, 0.1]),
            fault_rate=chance.choice([0.0, 0.0, 0.02]),
            lie_rate=chance.choice([0.0, 0.0, 0.02]),
        )
    finish(trial, chance)
    chance.choice([undo, purge])(trial, chance)


def try_purge_after_late_commits(server: PostgresServer, folder: Path, seed: int) -> None:
    """Brokers commit what was removed when nobody looks any more."""
    trial, chance = begun(server, folder, seed), Random(seed)
    run_apply(trial, chance, broker_activity=0.0)
    while not trial.writer.is_at_rest:
        trial.writer.act(0)
    purge(trial, chance)


def failures_of(seeds: Sequence[int], attempt: Callable[[Path, int], object], folder: Path, most: int = 3) -> list[str]:
    failures = []
    for seed in seeds:
        own = folder / f"{seed}"
        own.mkdir()
        try:
            attempt(own, seed)
        except AssertionError as failure:
            failures.append(str(failure))
        if len(failures) == most:
            break
    return failures


def test_killed_at_boundaries_in_turn(chaos_server: PostgresServer, folder: Path) -> None:
    def few_objects(own: Path) -> Trial:
        return Trial(own, Writer(chaos_server, DATABASE, on_disk(own), SEED), batch_objects=2, max_objects=3)

    def try_kill_at(own: Path, boundary: int) -> None:
        trial, chance = few_objects(own), Random(boundary)
        run_apply(trial, chance, kill_at=boundary, broker_activity=0.0)
        finish(trial, chance)
        undo(trial, chance)

    (folder / "whole").mkdir()
    whole = few_objects(folder / "whole")
    world = whole.world(Random(0), broker_activity=0.0)
    assert whole.apply(world).is_complete

    failures = failures_of(divided(range(1, world.boundaries + 1, EVERY)), try_kill_at, folder)

    assert world.boundaries > 50
    assert not failures, "\n".join(failures)


def is_asked_once(patch: pytest.MonkeyPatch) -> None:
    """What the control plane said first is believed for good."""
    files_of, said = PostgresControlPlane.files_of, dict[tuple[str, ...], FoundFiles]()

    def remembered(self: PostgresControlPlane, keys: Sequence[str]) -> FoundFiles:
        asked = (str(id(self)), *sorted(keys))
        if asked not in said:
            said[asked] = files_of(self, keys)
        return said[asked]

    patch.setattr(PostgresControlPlane, "files_of", remembered)


def verdicts_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """The control plane is asked, but the objects are not held against it."""

    def only_ask(self: FreshControlPlane, batch: Sequence[Found], _limits: object) -> None:
        self.statuses(stored for _, stored in batch)

    patch.setattr(FreshControlPlane, "demand_removable", only_ask)


def nothing_is_put_back(patch: pytest.MonkeyPatch) -> None:
    """What was committed after it was removed stays removed."""
    patch.setattr(Removal, "_put_owned_back", lambda *_: None)


def purge_does_not_ask(patch: pytest.MonkeyPatch) -> None:
    """The quarantine is emptied of what rows need by now."""

    def everything(_: Purge, batch: Sequence[tuple[StoredObject, object]], _result: object) -> list[StoredObject]:
        return [copy for copy, _original in batch]

    patch.setattr(Purge, "_demand_unowned", everything)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("broken", "attempt"),
    [
        (is_asked_once, try_seed),
        (verdicts_are_not_looked_at, try_seed),
        (nothing_is_put_back, try_seed),
        (purge_does_not_ask, try_purge_after_late_commits),
    ],
)
def test_a_build_that_lacks_a_safeguard_is_found_out(
    chaos_server: PostgresServer,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[pytest.MonkeyPatch], None],
    attempt: Callable[[PostgresServer, Path, int], None],
) -> None:
    broken(monkeypatch)

    assert failures_of(range(200), partial(attempt, chaos_server), folder, most=1)


def test_what_is_committed_after_its_removal_is_not_purged(chaos_server: PostgresServer, folder: Path) -> None:
    failures = failures_of(divided(range(3)), partial(try_purge_after_late_commits, chaos_server), folder)

    assert not failures, "\n".join(failures)


def test_everything_at_random(chaos_server: PostgresServer, folder: Path) -> None:
    failures = failures_of(divided(range(SEEDS)), partial(try_seed, chaos_server), folder)

    assert not failures, "\n".join(failures)


def test_everything_at_random_on_a_bucket(chaos_server: PostgresServer, folder: Path, on_server: OpenBucket) -> None:
    failures = failures_of(divided(range(4)), partial(try_seed, chaos_server, open_bucket=on_server), folder)

    assert not failures, "\n".join(failures)
